"""A small HTML table, as notebooks show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

MAX_CHARACTERS = 60  # of a cell


def html_table(title: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title, a header and rows; everything is escaped.

    >>> html_table("<b>", ["ctr"], [[0.123456]])
    '<p><code>&lt;b&gt;</code></p><table><thead><tr><th>ctr</th></tr></thead><tbody><tr>\
<td>0.1235</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(v)}</td>' for v in row)}</tr>" for row in rows)
    return (
        f"<p><code>{escape(title)}</code></p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        text = f"{value:.4g}"
    elif isinstance(value, datetime):
        text = f"{value:%Y-%m-%d %H:%M:%S}"
    elif isinstance(value, list | tuple):
        text = ", ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in value)
    else:
        text = str(value)
    return escape(text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…")
