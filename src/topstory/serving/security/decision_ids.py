"""Decision ids: signed by the service, with the time when they expire."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Mapping
from hashlib import sha256
from struct import Struct

from topstory.serving.api.errors import ApiError

_BODY = Struct("<QQ")  # number of the decision, when it expires
_MAC_BYTES = 16  # of the HMAC-SHA256
_TEXT_LENGTH = 43  # of 16 + 16 bytes in base64
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class _Mac:
    """HMAC-SHA256 (RFC 2104) with the key hashed in advance: 2 µs, where hmac.digest takes 5."""

    def __init__(self, key: bytes) -> None:
        block = (sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def of(self, message: bytes) -> bytes:
        """The code of a message, truncated."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()[:_MAC_BYTES]


class Signer:
    """Signs decision ids with the last of its keys, and accepts those of all of them.

    To rotate, add a key, and remove the old one once its decisions have expired.

    >>> signer = Signer({"k1": bytes(32)})
    >>> token = signer.sign(7, expires=1_000)
    >>> token[:3], signer.check(token)
    ('k1.', (7, 1000))
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise ValueError("a signer needs at least one key")
        self._keys = {name: _Mac(key) for name, key in keys.items()}
        self._current = list(keys)[-1]

    def sign(self, number: int, expires: int) -> str:
        """The id of a decision."""
        body = _BODY.pack(number, expires)
        text = b2a_base64(body + self._keys[self._current].of(body)).translate(_URL_SAFE)
        return f"{self._current}.{text[:_TEXT_LENGTH].decode()}"

    def check(self, token: str) -> tuple[int, int]:
        """The number and expiry of a decision. Raises if this service did not sign the id."""
        key, _, text = token.partition(".")
        signing = self._keys.get(key)
        if signing is None or len(text) != _TEXT_LENGTH or not text.isascii():
            raise _forged()
        try:
            raw = urlsafe_b64decode(text + "=")
        except ValueError:
            raise _forged() from None
        body, mac = raw[: _BODY.size], raw[_BODY.size :]
        if not hmac.compare_digest(mac, signing.of(body)):
            raise _forged()
        number, expires = _BODY.unpack(body)
        return number, expires


def decision_number(token: str) -> int:
    """The number of a decision in the journal and its exports, from its id; nothing is checked.

    >>> decision_number(Signer({"k1": bytes(32)}).sign(7, expires=1_000))
    7
    """
    key, _, text = token.partition(".")
    if not key or len(text) != _TEXT_LENGTH or not text.isascii():
        raise ValueError(f"{token!r} is not a decision id: it is the `decision` of an answer")
    number: int = _BODY.unpack_from(urlsafe_b64decode(text + "="))[0]
    return number


def new_secret() -> str:
    """A new signing secret, in hex."""
    return secrets.token_hex(32)


def _forged() -> ApiError:
    return ApiError(
        *(403, "forged_decision"),
        "this decision id was not signed by this service, or its signing key was removed",
    )
