"""Run the benchmarks: `python -m benchmarks [--quick] [--markdown PAGE] [PART …]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from benchmarks import (
    ROOT,
    beside,
    claims,
    exports,
    features,
    fleet,
    growth,
    hops,
    importing,
    live,
    machine,
    memory,
    off_policy,
    overload,
    pages,
    policies,
    replay,
    serving,
    simulation,
    startup,
    storage,
    study,
    training,
    wide,
    workers,
)
from benchmarks.capacity import run as capacity
from benchmarks.policies import tempering
from benchmarks.tables import Section, fill_in

PARTS: dict[str, Callable[[bool], Section]] = {
    "replay": replay.run,
    "wide": wide.run,
    "train": training.run,
    "off_policy": off_policy.run,
    "growth": growth.run,
    "memory": memory.run,
    "startup": startup.run,
    "live": live.run,
    "log": storage.run,
    "import": importing.run,
    "exports": exports.run,
    "simulate": simulation.run,
    "features": features.run,
    "study": study.run,
    "policies": policies.run,
    "tempering": tempering.run,
    "claims": claims.run,
    "serve": serving.run,
    "workers": workers.run,
    "fleet": fleet.run,
    "capacity": capacity.run,
    "overload": overload.run,
    "beside": beside.run,
    "pages": pages.run,
    "hops": hops.run,
}
RESULTS = ROOT / ".cache" / "bench" / "results.json"


def main() -> int:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does it all still run?")
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="PAGE",
        help="write the tables into a page, and pages beside it, at their marks",
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="policies: folder of the real logs"
    )
    given = parser.parse_args()
    PARTS["policies"] = partial(policies.run, data=given.data)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    found = machine.facts()
    sections: dict[str, Section] = {}
    loads: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for name in given.parts or PARTS:
        began, before = perf_counter(), os.getloadavg()[0]
        sections[name] = PARTS[name](given.quick)
        seconds[name] = perf_counter() - began
        loads[name] = os.getloadavg()[0]
        sections[name].notes.append(
            f"The machine's load average was {before:.2f} before and {loads[name]:.2f} after."
        )
        sections[name].print(console)
    about = machine.section(found, loads, given.quick)
    about.print(console)
    if given.markdown:
        shown = {"machine": about, **sections}
        fill_in(given.markdown, {name: part.markdown() for name, part in shown.items()})
        for name, part in sections.items():
            for page, other in part.beside.items():
                fill_in(given.markdown.parent / page, {name: other.markdown()})
    _keep(
        {
            "machine": found,
            "quick": given.quick,
            "load": loads,
            "seconds": seconds,
            "parts": {name: part.figures for name, part in sections.items()},
        }
    )
    console.print(
        f"{sum(seconds.values()):.0f} s; figures in {RESULTS.relative_to(ROOT)}", highlight=False
    )
    return 0


def _keep(results: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
