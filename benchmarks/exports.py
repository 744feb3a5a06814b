"""Importing an untidy export by a mapping: the news site's, with few bad rows and with many."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

from examples.news_site.export import write_export

from benchmarks import ROOT, mixed_profiles
from benchmarks.measuring import say
from benchmarks.tables import Section, Table
from topstory.events.formats.importing import import_log

FIT_EVENTS, TARGET_FIT, TARGET_PROFILE = 1_000_000, 10, 50  # seconds, microseconds
FEW, MANY = 0.01, 0.5  # shares of bad rows
TARGET, TARGET_RATIO = 50, 0.5  # MB a second of one core; with many bad rows × that with few


def run(quick: bool) -> Section:
    """MB of CSV a second of processor, all threads counted."""
    events, repetitions = (20_000, 2) if quick else (400_000, 5)
    rates: dict[float, float] = {}
    sizes: dict[float, float] = {}
    with tempfile.TemporaryDirectory() as name:
        for share in (FEW, MANY):
            say(f"importing an export with {share:.0%} of bad rows")
            folder = Path(name, str(share))
            impressions, _ = write_export(folder, events, share)
            mapping = folder / "mapping.toml"
            shutil.copy(ROOT / "examples" / "news_site" / "mapping.toml", mapping)
            sizes[share] = impressions.stat().st_size / 1e6
            taken = []
            for _ in range(repetitions + 1):  # the first one loads libraries
                began = process_time()
                import_log("csv", impressions, folder / "log", map=mapping, max_bad=1.0)
                taken.append(process_time() - began)
            rates[share] = sizes[share] / median(taken[1:])
    ratio = rates[MANY] / rates[FEW]
    met = rates[FEW] >= TARGET, ratio >= TARGET_RATIO
    table = Table(
        f"An export of {events:,} impressions, {sizes[FEW]:.0f} MB of CSV, by a mapping",
        ("bad rows", "MB a second of processor", "target", "met"),
        [
            (f"{FEW:.0%}", f"{rates[FEW]:.0f}", f"≥ {TARGET}", "yes" if met[0] else "no"),
            (
                f"{MANY:.0%}",
                f"{rates[MANY]:.0f}",
                f"≥ {TARGET_RATIO:g} × that with few",
                "yes" if met[1] else "no",
            ),
        ],
    )
    say("fitting features on mixed profiles")
    users = events // 2
    found = mixed_profiles.measure(FIT_EVENTS if not quick else events, users)
    profiles = Table(
        "Features of such profiles, ten fields of all kinds",
        ("what", "measured", "target", "met"),
        [
            (
                f"seconds, `--method direct`, {FIT_EVENTS if not quick else events:,} events of "
                f"{users:,} users",
                f"{found['direct']:.1f}",
                f"≤ {TARGET_FIT}",
                "yes" if found["direct"] <= TARGET_FIT else "no",
            ),
            (
                "µs of processor for one profile",
                f"{found['mixed']:.1f}",
                f"≤ {TARGET_PROFILE}",
                "yes" if found["mixed"] <= TARGET_PROFILE else "no",
            ),
        ],
    )
    notes = [
        "A second of processor counts all threads, and includes writing the log twice: the export "
        "is not in time order, so the log is sorted.",
    ]
    figures = {f"{share:.0%}": {"processor": rate} for share, rate in rates.items()}
    return Section([table, profiles], {**figures, "profiles": found}, notes)
