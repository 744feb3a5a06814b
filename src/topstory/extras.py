"""What can be installed beside the core: a missing extra is one sentence with the remedy."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple


class Extra(NamedTuple):
    """What an extra of pyproject.toml is for, and the modules that it brings."""

    purpose: str
    modules: tuple[str, ...]


EXTRAS = {
    "features": Extra("learning features and offsets", ("sklearn", "threadpoolctl")),
    "report": Extra("drawing figures and reports", ("jinja2", "matplotlib")),
    "serve": Extra(
        "the service",
        ("httptools", "jinja2", "prometheus_client", "starlette", "uvicorn", "uvloop"),
    ),
    "client": Extra("the service's client", ("httpx",)),
    "postgres": Extra("a journal in PostgreSQL", ("psycopg",)),
    "sql": Extra("importing the result of a query", ("duckdb",)),
    "ray": Extra("the engine 'ray'", ("ray",)),
}


class MissingExtra(ImportError):
    """Something was asked for that needs an extra, and the extra is not installed."""

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(
            f"{EXTRAS[extra].purpose} needs the extra {extra!r}: pip install 'topstory[{extra}]'",
            name=module,
        )


def require(extra: str) -> None:
    """Check that an extra is installed.

    Raises:
        MissingExtra: if one of its modules cannot be found.

    >>> try:
    ...     raise MissingExtra("serve", "uvicorn")
    ... except ImportError as error:
    ...     print(error)
    the service needs the extra 'serve': pip install 'topstory[serve]'
    """
    for module in EXTRAS[extra].modules:
        # Looked for, not imported: importing what the report needs takes half a second.
        if find_spec(module) is None:
            raise MissingExtra(extra, module)
