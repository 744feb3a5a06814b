"""Options that follow from the registry: the names of policies, and the numbers they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, TypeVar

import typer

from topstory.policies.entries import Parameter, Setting
from topstory.policies.registry import NUMBERS, REGISTRY, TUNED, described

Command = TypeVar("Command", bound=Callable[..., None])

TUNABLE = tuple(name for name, entry in REGISTRY.items() if entry.tuned)
PolicyToTrain = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Which policy: {', '.join(TUNABLE[:-1])} or {TUNABLE[-1]}. Default: "
        "linucb-hybrid-prior, or linucb-disjoint-prior or ucb-prior where articles, or users too, "
        "have no features; with --ridge the same without a prior (--ridge paper: as in the paper).",
    ),
]


def with_policy_numbers(command: Command) -> Command:
    """Give a command an option for every number that a policy takes, in place of `**numbers`.

    They come after what is required, before the other options.

    >>> @with_policy_numbers
    ... def replay(log: str, **numbers: float | None) -> None: ...
    >>> [name for name in inspect.signature(replay).parameters][:3]
    ['log', 'alpha', 'delta']
    """
    return _with_options(command, _numbers())


def with_policy_grids(command: Command) -> Command:
    """Give a command an option for every grid that has a name, in place of `**grids`.

    >>> @with_policy_grids
    ... def study(out: str, **grids: str | None) -> None: ...
    >>> [name for name in inspect.signature(study).parameters]
    ['out', 'epsilons', 'alphas']
    """
    return _with_options(command, _grids())


def given_grids(grids: Mapping[str, str | None]) -> Iterator[tuple[str, str, str]]:
    """Parameter, option and text of those that were given.

    >>> list(given_grids({"epsilons": None, "alphas": "0.1,1"}))
    [('alpha', '--alphas', '0.1,1')]
    """
    for name, each in TUNED.items():
        text = grids[each.plural] if each.plural else None
        if text is not None:
            yield name, f"--{each.plural}", text


def _with_options(command: Command, options: Iterator[inspect.Parameter]) -> Command:
    signature = inspect.signature(command, eval_str=True)
    named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    required = [each for each in named if each.default is each.empty]
    others = [each.replace(kind=each.KEYWORD_ONLY) for each in named if each not in required]
    parameters = [*required, *options, *others]
    # typer reads a command's options off its signature.
    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    return command


def _numbers() -> Iterator[inspect.Parameter]:
    for name, number in NUMBERS.items():
        said: dict[str, Any] = {"metavar": number.metavar, "help": f"{described(number)}."}
        if number.words:
            said["parser"] = partial(_number_or_word, number)
        kind = Any if number.words else float | None
        yield _parameter(name, Annotated[kind, typer.Option(**said)])


def _number_or_word(number: Parameter, text: str) -> Setting:
    """A setting as it was typed."""
    if text in number.words:
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"expected a number or {' or '.join(number.words)}, got {text!r}"
        ) from None


def _grids() -> Iterator[inspect.Parameter]:
    for name, each in TUNED.items():
        if each.plural:
            listed = f"{each.metavar},…"
            help = f"Values of {name} to try: --values {name}={listed}"
            yield _parameter(
                each.plural, Annotated[str | None, typer.Option(metavar=listed, help=help)]
            )


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotation)
