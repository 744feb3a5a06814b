"""Numbers, several of which an option takes, with commas between them."""

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
