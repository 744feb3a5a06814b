"""Writes the reference pages anew: `python -m docs.generate`."""

from __future__ import annotations

from pathlib import Path

from docs.generate import cli_reference, config_reference, python_reference

FOLDER = Path(__file__).parents[1] / "reference"
PAGES = {
    "cli.md": cli_reference,
    "configuration.md": config_reference,
    "python.md": python_reference,
}

for name, page in PAGES.items():
    (FOLDER / name).write_text(page.reference(), "utf-8")
