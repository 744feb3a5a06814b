"""Which policy earns most: true values in simulated worlds, and what real logs say."""

from __future__ import annotations

from pathlib import Path

from benchmarks import ROOT
from benchmarks.measuring import say
from benchmarks.policies import digits, emails, simulated, upworthy
from benchmarks.policies.kept_runs import KeptRuns
from benchmarks.tables import Section

KEPT = ROOT / ".cache" / "bench" / "policies.jsonl"
REAL = (
    ("Upworthy", "upworthy/packages_201303_201420.parquet", upworthy.run),
    ("Hillstrom", "hillstrom/hillstrom.csv", emails.run),
    ("pendigits", "pendigits/pendigits.arff", digits.run),
)


def run(quick: bool, data: Path | None = None) -> Section:
    """All tables of the page; those of the real logs only if their folder is given.

    Simulated runs are kept in a file as they come: started again, it goes on where it was.
    """
    kept = KeptRuns(KEPT.with_suffix(".quick.jsonl") if quick else KEPT)
    page = simulated.run(quick, kept)
    if data is None:
        page.notes.append(
            "Real logs were left out: `--data FOLDER` names the folder that has them."
        )
    for name, file, part in REAL if data is not None else ():
        assert data is not None
        if not (data / file).exists():
            page.notes.append(f"{name} was left out: the folder has no {file}.")
            continue
        say(name)
        found = part(data / file, quick)
        page.tables.extend(found.tables)
        page.notes.extend(found.notes)
        page.figures.update(found.figures)
    pointer = "What policies earn is on the page *Which policy?* (guides/which-policy.md)."
    return Section([], page.figures, [pointer], {"../guides/which-policy.md": page})
