"""`docs/reference/python.md`: every public name, described by its docstring.

The page names the objects; mkdocstrings reads their docstrings when the documentation is built.
"""

from __future__ import annotations

import topstory as ts

INTRODUCTION = """\
# Python

Everything that `import topstory as ts` offers, from the docstrings. This page is made by
`python -m docs.generate`.
"""
# Title -> the rooms whose names it lists; whatever is in no other room comes last.
ROOMS = {
    "Logs": ("events",),
    "Features": ("features",),
    "Policies": ("policies", "models", "explorers"),
    "Evaluation": ("evaluation", "anytime"),
    "Studies": ("studies",),
    "Serving": ("serving",),
}


def reference() -> str:
    """The whole page, in Markdown.

    >>> reference().splitlines()[0]
    '# Python'
    """
    parts = [INTRODUCTION]
    for title, rooms in ROOMS.items():
        found = [name for name in ts.__all__ if _room(name) in rooms]
        parts.append(f"## {title}\n")
        parts += [f"::: {where(name)}\n" for name in found]
    return "\n".join(parts)


def where(name: str) -> str:
    """Where a public name is defined.

    >>> where("EventLog")
    'topstory.events.log.EventLog'
    """
    made = getattr(ts, name)
    return f"{made.__module__}.{getattr(made, '__qualname__', name)}"


def _room(name: str) -> str:
    return where(name).split(".")[1]
