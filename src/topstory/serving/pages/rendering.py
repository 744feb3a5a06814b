"""Pages as HTML: templates that escape whatever they are given, and headers that allow little."""

from __future__ import annotations

from typing import Any

import jinja2
import msgspec
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from topstory.serving.pages.assets import address

# No script or style but our own files; pictures of articles may be on other sites.
POLICY = "; ".join(
    (
        "default-src 'none'",
        *("script-src 'self'", "style-src 'self'", "img-src 'self' https:"),
        *("connect-src 'self'", "frame-src 'self'", "form-action 'self'"),
        *("base-uri 'none'", "frame-ancestors 'self'"),
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("topstory.serving.pages", "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _embedded(value: Any) -> Markup:
    """A value as JSON that cannot end the element it stands in."""
    text = msgspec.json.encode(value).decode()
    escaped = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(escaped)  # no character is left that HTML would notice


_templates.globals.update(asset=address, embedded=_embedded)


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A page from a template."""
    body = _templates.get_template(template).render(values)
    return HTMLResponse(body, status, headers=HEADERS)


def data(value: Any, status: int = 200) -> Response:
    """A value as JSON, for a page's script; bytes are JSON already."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(body, status, headers, "application/json")
