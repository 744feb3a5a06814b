"""A report's files."""

from __future__ import annotations

from pathlib import Path

from topstory.report.records import Report


def write(report: Report, folder: Path) -> Path:
    """Write them."""
    return folder / "report.html"
