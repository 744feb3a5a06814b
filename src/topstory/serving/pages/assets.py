"""Scripts and style sheets: read once, sent with an address that changes when they do."""

from __future__ import annotations

from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from topstory.serving.api.errors import ApiError
from topstory.serving.demo.pictures import NAME, draw

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"


def _all(folder: Traversable, path: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for each in folder.iterdir():
        name = f"{path}{each.name}"
        if each.is_dir():
            found |= _all(each, f"{name}/")
        elif name.endswith(tuple(TYPES)):
            found[name] = each.read_bytes()
    return found


ASSETS = _all(files("topstory.serving.pages") / "assets")
VERSION = blake2b(b"".join(ASSETS[name] for name in sorted(ASSETS)), digest_size=6).hexdigest()


def address(name: str) -> str:
    """Where a browser finds it.

    >>> address("studio.css").endswith("/studio.css")
    True
    """
    assert name in ASSETS, name
    return f"/pages/{VERSION}/{name}"


async def asset(request: Request) -> Response:
    """A script or style sheet, by its name alone: nothing of the request is a path to a file."""
    name = request.path_params["name"]
    body = ASSETS.get(name)
    if body is None:
        raise ApiError(404, "unknown_path", "there is nothing at this path")
    current = request.path_params["version"] == VERSION
    return _file(body, name[name.rindex(".") :], FOREVER if current else "no-cache")


async def picture(request: Request) -> Response:
    """A picture of the demo."""
    found = NAME.fullmatch(request.path_params["name"])
    if found is None:
        raise ApiError(404, "unknown_path", "there is nothing at this path")
    drawn = draw(found[1], int(found[2])).encode()
    return _file(drawn, ".svg", "public, max-age=86400")


def _file(body: bytes, ending: str, cache: str) -> Response:
    headers = {
        "cache-control": cache,
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return Response(body, media_type=TYPES[ending], headers=headers)
