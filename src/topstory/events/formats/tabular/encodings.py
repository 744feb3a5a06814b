"""Text that is not UTF-8, as older systems and spreadsheets write it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

USUAL = "cp1252"  # what Western European systems write; it has a letter for nearly every byte
_BEGINNING = 1 << 20  # bytes that are looked at
_MARKS = '\n\r,;\t|"'


def check_encoding(name: str, where: str) -> None:
    """Raise ValueError unless Python knows the encoding, and line ends are single bytes in it.

    >>> check_encoding("utf-16", "encoding")
    Traceback (most recent call last):
    ...
    ValueError: encoding: must be one in which a line ends with one byte, such as cp1252 or \
latin-1, got 'utf-16'; save the file as UTF-8 instead
    """
    try:
        plain = _MARKS.encode(name) == _MARKS.encode()
    except LookupError:
        raise ValueError(
            f"{where}: no encoding is called {name!r}; usual ones are utf-8, cp1252 and latin-1"
        ) from None
    if not plain:
        raise ValueError(
            f"{where}: must be one in which a line ends with one byte, such as cp1252 or latin-1, "
            f"got {name!r}; save the file as UTF-8 instead"
        )


def as_utf8(data: bytes, encoding: str | None) -> bytes:
    """Text in UTF-8; what stands for no letter in its encoding becomes a replacement character.

    >>> as_utf8("Économie".encode("latin-1"), "latin-1").decode()
    'Économie'
    """
    if encoding is None:
        return data
    return data.decode(encoding, "replace").encode()


def likely_encoding(path: Path) -> str | None:
    """An encoding to try for a file whose beginning is not UTF-8; None if it is."""
    with pa.input_stream(path, compression="detect") as opened:
        data: bytes = opened.read(_BEGINNING)
    whole = data if len(data) < _BEGINNING else data[: data.rfind(b"\n") + 1]
    try:
        whole.decode()
    except UnicodeDecodeError:
        return USUAL
    return None
