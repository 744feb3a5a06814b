"""Options that mean the same to several commands."""

from typing import Annotated

import typer

Repeats = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="How many seeds to average. By default 1, and 3 for sizes of 5 % and below; "
        "a study at scale demo takes 3.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="The same seed, the same result.")]
Bucket = Annotated[
    str, typer.Option(metavar="BUCKET", help="The bucket that decides: deployment or learning.")
]
EngineName = Annotated[
    str, typer.Option(metavar="NAME", help="Where: serial, local (all cores) or ray.")
]
Address = Annotated[
    str | None,
    typer.Option(metavar="A", help="ray: the cluster's address. By default this machine."),
]
Support = Annotated[
    list[str] | None,
    typer.Option(
        metavar="S",
        help="Of features learned from raw profiles: the least share of users that must have a "
        "category, a number for all fields (0.1 if nothing is said; 0.01 in a simulated study), or "
        "FIELD=NUMBER for one; may be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
