"""Options that several commands share, and how their texts are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from topstory.policies.entries import Setting

LogFolder = Annotated[
    str, typer.Argument(metavar="LOG", help="Folder of the log, or its URL (s3://…, gs://…).")
]
Seed = Annotated[
    int, typer.Option(metavar="N", min=0, help="Random seed. The same seed gives the same result.")
]
Bucket = Annotated[
    str, typer.Option(metavar="BUCKET", help="Bucket whose CTR decides: deployment or learning.")
]
Repeats = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of seeds to average: SEED, SEED + 1, … Default: 3, and up to 20 if the log "
        "has fewer than 500,000 events.",
    ),
]
LearningShare = Annotated[
    float,
    typer.Option(
        metavar="S",
        min=0.0,
        max=1.0,
        help="Share of visits that learn, in the total over both buckets.",
    ),
]
EngineName = Annotated[
    str, typer.Option(metavar="NAME", help="Where to run: serial, local (all cores) or ray.")
]
Address = Annotated[
    str | None,
    typer.Option(metavar="A", help="ray: address of the cluster. Default: this machine."),
]
Support = Annotated[
    list[str] | None,
    typer.Option(
        metavar="S",
        help="For features learned from raw profiles: the smallest share of users that a category "
        "needs to be kept. A number for all fields (default 0.1; 0.01 in a simulated study), or "
        "FIELD=NUMBER for one field; may be repeated.",
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Train the policy that is recommended on every event of the log, as `topstory train` "
        "does, and write it to this file (safetensors).",
    ),
]
WarmFrom = Annotated[
    str | None,
    typer.Option(
        metavar="LOG2",
        help="warm, prior: log of random exploration to fit user-specific offsets or a prior on. "
        "Default: the first tenth of LOG; the rest is then used.",
    ),
]
PriorFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="prior: file that `topstory prior` wrote."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the answer as an HTML page, too: one picture, three sentences and the numbers.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def parse_policies(
    texts: Sequence[str], given: Mapping[str, Setting | None], seed: int
) -> dict[str, dict[str, Setting]]:
    """The policies named, each with those of the given parameters that it takes.

    Raises a usage error for an unknown name, or for a parameter that none of the policies takes. A
    bad value is an error here too, before a long log is read.

    >>> parse_policies(["ucb,egreedy"], {"alpha": 0.3, "epsilon": 0.1, "ridge": None}, seed=0)
    {'ucb': {'alpha': 0.3}, 'egreedy': {'epsilon': 0.1}}
    """
    # Imported here: replay needs compiled kernels, and --help does not.
    from topstory.evaluation.assignment import (
        ALL,
        assign_parameters,
        check_policies,
        policy_names,
        unused_parameters,
    )
    from topstory.policies.registry import NUMBERS, REGISTRY

    names = policy_names(name for text in texts for name in parse_names(text) or ())
    if not names:
        raise typer.BadParameter("give at least one policy", param_hint="--policy")
    for name in names:
        if name not in REGISTRY:
            raise typer.BadParameter(
                f"no policy is called {name!r}; choose from {ALL}, {', '.join(REGISTRY)}",
                param_hint="--policy",
            )
    known = {key: value for key, value in given.items() if value is not None}
    for number in NUMBERS.values():
        if number.name in known and number.sets in known:
            raise typer.BadParameter(
                f"give either --{number.sets} or --{number.name}, which sets {number.sets}",
                param_hint=f"--{number.name}",
            )
    for parameter in unused_parameters(names, known):
        raise inapplicable(f"--{parameter.replace('_', '-')}", names)
    assigned = assign_parameters(names, known)
    check_policies(assigned, seed)
    return assigned


def inapplicable(option: str, policies: Iterable[str]) -> typer.BadParameter:
    """The error that none of the policies takes an option."""
    return typer.BadParameter(f"it does not apply to {', '.join(policies)}", param_hint=option)


def check_exploration_options(
    policies: Iterable[str], warm_from: str | None, prior: Path | None
) -> None:
    """A usage error for --warm-from or --prior where no policy has use for it."""
    from topstory.evaluation.replays.warm_start import needs_exploration, needs_prior

    names = list(policies)
    if prior is not None and not any(map(needs_prior, names)):
        raise inapplicable("--prior", names)
    # With a prior, only warm policies still need the log.
    if warm_from is not None and not needs_exploration(names, None):
        raise inapplicable("--warm-from", names)


def parse_names(text: str | None) -> list[str] | None:
    """Names separated by commas; None if the option was not given.

    >>> parse_names("ucb, egreedy")
    ['ucb', 'egreedy']
    """
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers separated by commas; None if the option was not given.

    >>> parse_numbers("1,0.3", "--sizes")
    [1.0, 0.3]
    """
    if text is None:
        return None
    try:
        parsed = [float(each) for each in text.split(",") if each.strip()]
    except ValueError:
        parsed = []
    if not parsed:
        raise typer.BadParameter(
            f"expected numbers separated by commas, such as 0.1,0.3, got {text!r}",
            param_hint=option,
        )
    return parsed


def parse_values(texts: list[str] | None, option: str) -> dict[str, list[float]]:
    """Numbers by the name of a parameter.

    >>> parse_values(["alpha=0.1,1", "epsilon=0.3"], "--values")
    {'alpha': [0.1, 1.0], 'epsilon': [0.3]}
    """
    found: dict[str, list[float]] = {}
    for text in texts or []:
        name, equals, numbers = text.partition("=")
        if not (name and equals) or name in found:
            raise typer.BadParameter(
                f"expected NAME=A,B,…, each name once, got {text!r}", param_hint=option
            )
        found[name] = parse_numbers(numbers, option) or []
    return found


def parse_support(texts: list[str] | None, option: str) -> float | dict[str, float] | None:
    """A number, or numbers by field; None if the option was not given.

    >>> parse_support(None, "--support"), parse_support(["0.05"], "--support")
    (None, 0.05)
    >>> parse_support(["likes=0.01", "age=0"], "--support")
    {'likes': 0.01, 'age': 0.0}
    """
    if not texts:
        return None
    parsed: dict[str, float] = {}
    for text in texts:
        field, _, number = text.rpartition("=")
        try:
            parsed[field] = float(number)
        except ValueError:
            raise typer.BadParameter(
                f"expected a number or FIELD=NUMBER, got {text!r}", param_hint=option
            ) from None
    if "" not in parsed:
        return parsed
    if len(parsed) > 1:
        raise typer.BadParameter(
            "give one number for all fields, or FIELD=NUMBER for each field", param_hint=option
        )
    return parsed[""]
