"""Sessions of the studio: a signed token that stands for an API key for some hours."""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Iterable, Sequence
from hashlib import sha256
from struct import Struct

from topstory.serving.security.api_keys import Key

_HEAD = Struct("<Q16s")  # when it expires, in seconds since 1970; a random part
_MAC_BYTES = 32
MAX_TOKEN = 100  # characters


class Sessions:
    """Issues tokens, and finds the key that a token stands for.

    A token does not contain its key: it is a signature of the key's hash. So a key that was
    removed from the configuration ends its sessions. All processes of a service share the secret,
    and sessions survive a restart.

    >>> from topstory.serving.config.schema import KeyConfig
    >>> key = Key("web", bytes(32), frozenset({"read"}), 0)
    >>> sessions = Sessions(bytes(32), seconds=3600)
    >>> token = sessions.issue(key, now=1000.0)
    >>> sessions.find(token, [key], now=2000.0).name, sessions.find(token, [key], now=5000.0)
    ('web', None)
    """

    def __init__(self, secret: bytes, seconds: float) -> None:
        self._secret = hmac.digest(secret, b"topstory studio sessions", sha256)
        self.seconds = seconds

    def issue(self, key: Key, now: float) -> str:
        """A new token for a key; `now` is in seconds since 1970."""
        head = _HEAD.pack(int(now + self.seconds), secrets.token_bytes(16))
        return urlsafe_b64encode(head + self._mac(head, key)).decode().rstrip("=")

    def find(self, token: str, keys: Iterable[Key], now: float) -> Key | None:
        """The key that a token stands for; None if it is forged, expired, or of no such key."""
        if len(token) > MAX_TOKEN or not token.isascii():
            return None
        try:
            raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (Error, ValueError):
            return None
        if len(raw) != _HEAD.size + _MAC_BYTES:
            return None
        head, mac = raw[: _HEAD.size], raw[_HEAD.size :]
        found = None
        for key in keys:  # all of them: the time taken reveals nothing
            if hmac.compare_digest(mac, self._mac(head, key)):
                found = key
        return found if _HEAD.unpack(head)[0] > now else None

    def holder(self, token: str, keys: Sequence[Key]) -> Key | None:
        """The key that a token stands for now."""
        return self.find(token, keys, time.time())

    def _mac(self, head: bytes, key: Key) -> bytes:
        return hmac.digest(self._secret, head + key.digest, sha256)
