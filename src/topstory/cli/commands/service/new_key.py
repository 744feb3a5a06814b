"""`topstory new-key`."""

from typing import Annotated

import typer

MAX_NAME_LENGTH = 64


def new_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the key's owner.")],
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE",
            help="decide, feedback, edit, read or promote; may be repeated. Default: all.",
        ),
    ] = None,
) -> None:
    """Create an API key. Prints the key, and the configuration lines with its hash.

    The key is shown only now: the service stores nothing but the hash.
    """
    from topstory.serving.api.endpoints import ROLES
    from topstory.serving.security.api_keys import new_key as make
    from topstory.serving.security.secret_files import key_entry

    for each in role or ():
        if each not in ROLES:
            raise typer.BadParameter(
                f"no role is called {each!r}; choose from {', '.join(ROLES)}", param_hint="--role"
            )
    plain = name.isprintable() and '"' not in name and "\\" not in name
    if not plain or not 0 < len(name) <= MAX_NAME_LENGTH:
        raise typer.BadParameter(
            f"a name has 1 to {MAX_NAME_LENGTH} printable characters, no quotes or backslashes",
            param_hint="NAME",
        )
    key, digest = make()
    typer.echo(f"{key}\n\n{key_entry(name, digest, tuple(role or ROLES))}", nl=False)
