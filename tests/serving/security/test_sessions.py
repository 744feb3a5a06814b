"""Sessions: only for known keys, only for their time, and never forged."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from topstory.serving.security.api_keys import Key
from topstory.serving.security.sessions import Sessions

KEYS = [Key(f"key-{n}", bytes([n] * 32), frozenset({"read"}), n) for n in range(3)]


def test_a_token_stands_for_its_key_until_it_expires() -> None:
    sessions = Sessions(b"s" * 32, 60)
    for key in KEYS:
        token = sessions.issue(key, 1000.0)
        assert sessions.find(token, KEYS, 1059.0) is key
        assert sessions.find(token, KEYS, 1060.0) is None
        others = [each for each in KEYS if each is not key]
        assert sessions.find(token, others, 1000.0) is None  # the key was removed
    assert sessions.issue(KEYS[0], 1000.0) != sessions.issue(KEYS[0], 1000.0)


def test_no_byte_of_a_token_can_be_changed() -> None:
    sessions = Sessions(b"s" * 32, 60)
    token = sessions.issue(KEYS[0], 1000.0)
    raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 1
        assert sessions.find(urlsafe_b64encode(changed).decode(), KEYS, 1000.0) is None
    for wrong in ("", "x", "é" * 40, "=" * 75, "A" * 10_000, token[:-4]):
        assert sessions.find(wrong, KEYS, 1000.0) is None
    assert Sessions(b"t" * 32, 60).find(token, KEYS, 1000.0) is None
