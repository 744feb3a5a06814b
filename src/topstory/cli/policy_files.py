"""Policies that may be given as files or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topstory.cli.arguments import inapplicable, parse_names, parse_policies
from topstory.policies.entries import Setting
from topstory.policies.registry import REGISTRY

if TYPE_CHECKING:
    from topstory.policies import Policy


def given_policies(
    texts: Sequence[str], numbers: Mapping[str, Setting | None], seed: int
) -> dict[str, str | Policy]:
    """Each as it was given: a file's policy, or the name of one that is yet to be trained.

    A usage error names what is neither, and an option that none of the named policies takes.
    """
    from topstory.policies import Policy

    given = list(dict.fromkeys(name for text in texts for name in parse_names(text) or ()))
    if not given:
        raise typer.BadParameter("give at least one policy", param_hint="--policy")
    found: dict[str, str | Policy] = {}
    for text in given:
        if text in REGISTRY:
            found[text] = text
        elif Path(text).is_file():
            found[text] = Policy.load(text)
        else:
            raise typer.BadParameter(
                f"{text!r} is neither a file nor a policy; the policies are {', '.join(REGISTRY)}",
                param_hint="--policy",
            )
    named = [text for text in given if text in REGISTRY]
    if named:
        parse_policies(named, numbers, seed)
    for number, value in numbers.items():
        if value is not None and not named:
            raise inapplicable(f"--{number.replace('_', '-')}", given)
    return found
