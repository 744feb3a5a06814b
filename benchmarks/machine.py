"""The machine and the versions that the figures hold for."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.tables import Section, Table

BUSY = 1.5  # load average: the benchmark alone makes 1


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def facts() -> dict[str, Any]:
    """What a reader needs to know."""
    frequency: Any = psutil.cpu_freq()  # None where the system does not say
    return {
        "cpu": _cpu(),
        "mhz": round(frequency.current) if frequency else None,
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numba": version("numba"),
        "llvmlite": version("llvmlite"),
        "numpy": version("numpy"),
        "pyarrow": version("pyarrow"),
        "topstory": version("topstory"),
        "load_before": round(os.getloadavg()[0], 2),
    }


def section(found: dict[str, Any], loads: dict[str, float], quick: bool) -> Section:
    """The facts as a table; `loads` is the load average as each part of the run ended."""
    versions = ("python", "numba", "numpy", "pyarrow", "topstory")
    clock = f", {found['mhz']} MHz" if found["mhz"] else ""
    rows = [
        ("processor", f"{found['cpu']}{clock}, {found['cores']} cores"),
        ("memory", f"{found['memory_gb']} GB"),
        ("system", str(found["system"])),
        ("versions", ", ".join(f"{name} {found[name]}" for name in versions)),
        ("load average before", f"{found['load_before']:.2f}"),
        ("load average after each part", ", ".join(f"{k} {v:.2f}" for k, v in loads.items())),
    ]
    notes = ["This was a quick run: far too small to quote."] if quick else []
    before = {"the beginning": float(found["load_before"])}
    busy = [name for name, load in (before | loads).items() if load > BUSY]
    if busy:
        notes.append(f"Other work was running during {', '.join(busy)}: expect better when quiet.")
    return Section([Table("Machine", ("what", "value"), rows)], {}, notes)
