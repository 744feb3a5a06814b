"""Policies that pools are given while they are open: their files, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import msgspec

from topstory.policies import Policy
from topstory.policies.storage import describe, outline
from topstory.serving.config.loading import check_servable


class PolicyChange(msgspec.Struct, frozen=True):
    """A pool got another policy."""

    record: int
    at: int  # microseconds since 1970
    kind: Literal["promoted", "reverted"]
    policy: str  # what it is
    file: str  # the name of its content; empty: the one before
    key: str = ""  # the name of the API key that asked for it
    note: str = ""


class PolicySize(NamedTuple):
    """What decides how much memory a policy takes, and whose contexts it takes."""

    dimension: int | None
    articles: frozenset[str]
    features: int  # of an article
    feature_model: str | None


def policy_in(content: bytes, check: Callable[[PolicySize], None] | None = None) -> Policy:
    """The policy in a file's content; ValueError says what is wrong with it.

    `check` is called before anything is made that is larger than the content.
    """
    with TemporaryDirectory(prefix="topstory-") as folder:
        path = Path(folder) / "policy.safetensors"
        path.write_bytes(content)
        try:
            if check is not None:
                described, shapes = outline(path)
                articles = frozenset(each for each in described.articles if each is not None)
                features = shapes.get("features", (0, 0))
                count = features[-1] if features else 0
                check(PolicySize(described.dimension, articles, count, described.feature_model))
            loaded = Policy.load(path)
            check_servable(loaded)
            return loaded
        except (OSError, ValueError) as error:
            raise ValueError(str(error).replace(str(path), "the policy")) from None


def content_name(content: bytes) -> str:
    """A short name for a file's content.

    >>> content_name(b"one") == content_name(b"another")
    False
    """
    return blake2b(content, digest_size=8).hexdigest()


def summary(policy: Policy) -> str:
    """A policy in a line: its model, its explorer and their numbers.

    >>> import topstory as ts
    >>> summary(ts.policy("linucb-disjoint", alpha=0.3))
    'disjoint × upper-confidence, alpha=0.3, ridge=1.0'
    """
    described = describe(policy)
    model, explorer = described["model"], described["explorer"]
    numbers = {**explorer["parameters"], **model["parameters"]}
    listed = "".join(
        f", {name}={value!r}" for name, value in numbers.items() if isinstance(value, int | float)
    )
    return f"{model['name']} × {explorer['name']}{listed}"
