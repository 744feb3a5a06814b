"""docs/reference/cli.md is what the commands say of themselves."""

from pathlib import Path

import pytest
from docs.generate.cli_reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == reference(), "stale: run python -m docs.generate"


def test_it_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = reference()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERMINAL_WIDTH", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert reference() == wide
    assert "\x1b" not in wide
    assert "[/" not in wide  # rich's markup
