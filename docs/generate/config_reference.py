"""The page of configuration keys, made from their types: `python -m docs.generate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as types

from topstory.serving.config.schema import Config

INTRODUCTION = """\
# Configuration

<!-- Made by `python -m docs.generate` from the types of the keys: edit those. -->

`topstory serve --config topstory.toml` reads one TOML file. Every key has a default. An unknown key
is an error that names it. `topstory serve --check-config` checks the configuration and exits.

Environment variables override the file: `TOPSTORY_PORT=80` sets `port`. Two underscores stand for a
table: `TOPSTORY_LIMITS__BATCH=10` sets `limits.batch`.

```toml
data = "/var/lib/topstory"

[policy]
name = "linucb-hybrid"
alpha = 0.3

[traffic]
learning = 0.3
deployment = 0.6
uniform = 0.1

[pools.front]

[pools.sports.policy]  # a policy of its own
name = "egreedy"
epsilon = 0.05

[[keys]]  # `topstory new-key web --role decide --role feedback` prints these lines
name = "web"
sha256 = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
roles = ["decide", "feedback"]
```

You can change exploration (`alpha`, `epsilon`, `seed`), traffic shares, windows, limits and keys at
any restart. You cannot change the model of a pool (`name`, `ridge`, `context`) once it has started;
the service then refuses to start.
"""


def reference() -> str:
    """The whole page, in Markdown.

    >>> reference().splitlines()[0]
    '# Configuration'
    """
    return "\n".join([INTRODUCTION, *_table("", Config)]) + "\n"


def _table(path: str, kind: type[msgspec.Struct]) -> Iterator[str]:
    plain, nested = [], []
    for field in msgspec.structs.fields(kind):
        found: Any = types.type_info(field.type)
        words = ""
        if isinstance(found, types.Metadata):
            words = (found.extra_json_schema or {}).get("description", "")
            found = found.type
        inner = _section(found)
        name = f"{path}.{field.encode_name}".removeprefix(".")
        if inner is not None:
            nested.append((name, inner, words))
        if inner is None or isinstance(found, types.UnionType):
            plain.append(f"| `{field.encode_name}` | {_default(field)} | {words} |")
    yield f"## `{path}`\n" if path else "## At the top\n"
    yield f"{(kind.__doc__ or '').splitlines()[0]}\n"
    yield "| key | default | meaning |\n|---|---|---|"
    yield from plain
    yield ""
    for name, inner, _ in nested:
        if inner is not Config and not (path and name.endswith((".policy", ".traffic"))):
            yield from _table(name, inner)


def _section(found: Any) -> type[msgspec.Struct] | None:
    """The table that a key is, or holds."""
    for each in (found, getattr(found, "value_type", None), getattr(found, "item_type", None)):
        if isinstance(each, types.StructType):
            return each.cls
    if isinstance(found, types.UnionType):
        return next((e.cls for e in found.types if isinstance(e, types.StructType)), None)
    return None


def _default(field: Any) -> str:
    if field.default is None:
        return "–"
    if field.default is msgspec.NODEFAULT:
        return "required" if field.default_factory is msgspec.NODEFAULT else "–"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{msgspec.json.encode(value).decode()}`"
