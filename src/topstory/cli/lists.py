"""Numbers, several of which an option takes: with commas between them, or by field."""

from __future__ import annotations

import typer


def numbers(text: str | None, option: str) -> list[float] | None:
    """What was listed; None if nothing was said.

    >>> numbers("1,0.3", "--sizes")
    [1.0, 0.3]
    """
    if text is None:
        return None
    try:
        listed = [float(each) for each in text.split(",") if each.strip()]
    except ValueError:
        listed = []
    if not listed:
        raise typer.BadParameter(
            f"numbers with commas between them, such as 0.1,0.3, got {text!r}", param_hint=option
        )
    return listed


def shares(given: list[str] | None, option: str) -> float | dict[str, float] | None:
    """A number, or numbers by field; None if nothing was said.

    >>> shares(None, "--support"), shares(["0.05"], "--support")
    (None, 0.05)
    >>> shares(["likes=0.01", "age=0"], "--support")
    {'likes': 0.01, 'age': 0.0}
    """
    if not given:
        return None
    found: dict[str, float] = {}
    for text in given:
        field, _, number = text.rpartition("=")
        try:
            found[field] = float(number)
        except ValueError:
            raise typer.BadParameter(
                f"not a number, nor FIELD=NUMBER: {text!r}", param_hint=option
            ) from None
    if "" not in found:
        return found
    if len(found) > 1:
        raise typer.BadParameter(
            "give one number, or FIELD=NUMBER for each field", param_hint=option
        )
    return found[""]
