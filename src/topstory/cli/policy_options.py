"""Options that follow from the registry: the names of policies, and the numbers they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

import typer

from topstory.policies.registry import NUMBERS, REGISTRY, described

Command = TypeVar("Command", bound=Callable[..., None])

TUNABLE = tuple(name for name, entry in REGISTRY.items() if entry.tuned)


def with_policy_numbers(command: Command) -> Command:
    """Give a command an option for every number that a policy takes, in place of `**numbers`.

    They come after what is required, before the other options.

    >>> @with_policy_numbers
    ... def replay(log: str, **numbers: float | None) -> None: ...
    >>> [name for name in inspect.signature(replay).parameters][:3]
    ['log', 'alpha', 'delta']
    """
    signature = inspect.signature(command, eval_str=True)
    named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    required = [each for each in named if each.default is each.empty]
    others = [each.replace(kind=each.KEYWORD_ONLY) for each in named if each not in required]
    parameters = [*required, *_options(), *others]
    # typer reads a command's options off its signature.
    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    return command


def _options() -> Iterator[inspect.Parameter]:
    for name, number in NUMBERS.items():
        option = typer.Option(metavar=number.metavar, help=f"{described(number)}.")
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[float | None, option],
        )
