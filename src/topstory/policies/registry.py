"""The paper's names for pairs of a model and an explorer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from topstory.explorers import EpsilonGreedy, Explorer, Greedy, Uniform, UpperConfidence
from topstory.models import (
    ContextFree,
    DisjointLinear,
    Hindsight,
    HybridLinear,
    Model,
    Nothing,
    Segmented,
    Warm,
)
from topstory.policies.policy import Policy


@dataclass(frozen=True)
class Entry:
    """A registered policy: the paper's name for it, and how to make it."""

    paper: str
    model: type[Model]
    model_parameters: tuple[str, ...]
    explorer: Callable[..., Explorer]
    explorer_parameters: tuple[str, ...]

    @property
    def contextual(self) -> bool:
        """Whether it looks at the user."""
        return self.model not in (Nothing, Hindsight, ContextFree)


def _confident(alpha: float | None = None, delta: float | None = None) -> Explorer:
    if alpha is not None and delta is not None:
        raise ValueError("give alpha or delta, not both: delta is turned into an alpha")
    if delta is not None:
        return UpperConfidence.from_delta(delta)
    return UpperConfidence() if alpha is None else UpperConfidence(alpha)


_RIDGE, _RIDGES = ("ridge",), ("ridge", "shared_ridge")
_SEGMENTS = ("segments", "assignment")
_CONFIDENT = (_confident, ("alpha", "delta"))
_EPSILON = (EpsilonGreedy, ("epsilon",))

REGISTRY: dict[str, Entry] = {
    "random": Entry("random", Nothing, (), Uniform, ()),
    "omniscient": Entry("omniscient", Hindsight, (), Greedy, ()),
    "egreedy": Entry("ε-greedy", ContextFree, (), *_EPSILON),
    "ucb": Entry("ucb", ContextFree, (), *_CONFIDENT),
    "egreedy-warm": Entry("ε-greedy (warm)", Warm, ("offset",), *_EPSILON),
    "ucb-warm": Entry("ucb (warm)", Warm, ("offset",), *_CONFIDENT),
    "egreedy-seg": Entry("ε-greedy (seg)", Segmented, _SEGMENTS, *_EPSILON),
    "ucb-seg": Entry("ucb (seg)", Segmented, _SEGMENTS, *_CONFIDENT),
    "egreedy-disjoint": Entry("ε-greedy (disjoint)", DisjointLinear, _RIDGE, *_EPSILON),
    "linucb-disjoint": Entry("linucb (disjoint)", DisjointLinear, _RIDGE, *_CONFIDENT),
    "egreedy-hybrid": Entry("ε-greedy (hybrid)", HybridLinear, _RIDGES, *_EPSILON),
    "linucb-hybrid": Entry("linucb (hybrid)", HybridLinear, _RIDGES, *_CONFIDENT),
}


def policy(name: str, *, seed: int = 0, **parameters: Any) -> Policy:
    """One of the paper's twelve policies, by name.

    Args:
        name: `random`, `omniscient`, or `egreedy`, `ucb` and their kinds with `-warm`, `-seg`,
            `-disjoint`, `-hybrid` (`linucb-…` for the last two): the keys of `REGISTRY`.
        seed: for what is drawn at random.
        parameters: `epsilon` (ε-greedy); `alpha` or `delta` (ucb, linucb); `ridge` (disjoint,
            hybrid); `shared_ridge` (hybrid); `offset` (warm); `segments`, `assignment` (seg).

    >>> policy("linucb-hybrid", alpha=0.3)
    <Policy: hybrid × upper-confidence, ridge=1.0, shared_ridge=1.0, alpha=0.3, seed=0>
    >>> policy("ucb", epsilon=0.1)
    Traceback (most recent call last):
    ...
    TypeError: policy 'ucb' takes no epsilon; it takes alpha, delta, seed
    """
    entry = REGISTRY.get(name)
    if entry is None:
        raise ValueError(f"no policy is called {name!r}; there are {', '.join(REGISTRY)}")
    known = (*entry.model_parameters, *entry.explorer_parameters)
    for parameter in parameters:
        if parameter not in known:
            raise TypeError(
                f"policy {name!r} takes no {parameter}; it takes {', '.join((*known, 'seed'))}"
            )
    if "offset" in known and "offset" not in parameters:
        raise TypeError(f"policy {name!r} needs offset=: a table or a function, see topstory.Warm")
    model = entry.model(**{k: v for k, v in parameters.items() if k in entry.model_parameters})
    explorer = entry.explorer(
        **{k: v for k, v in parameters.items() if k in entry.explorer_parameters}
    )
    return Policy(model, explorer, seed)
