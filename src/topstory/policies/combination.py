"""EXP4: a policy over policies (Auer, Cesa-Bianchi, Freund and Schapire 2002)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats
from topstory.policies.open_decisions import OpenDecisions
from topstory.policies.policy import Choice, Policy, check_seed
from topstory.policies.storage import build, describe_whole, state_of
from topstory.sealed import Arrays, Seal

_SEAL = Seal(
    kind="combination",
    key="combination",
    version=2,  # an expert's policy has version 2
    writer="Combination.save",
    format="topstory-combination",
)


class Combination:
    """Shows what its experts would, each as often as its weight says; who earns more gains weight.

    With the experts' probabilities π_i and weights w_i, an article has the probability

        p = (1 − γ)·Σ w_i π_i / Σ w_i + γ/K

    and a payoff r of the article shown changes the weights by w_i ← w_i·exp(γ/K·π_i·r/p). All
    experts learn from every trial, whoever chose it. `ts.replay` runs it event by event, in Python.

    Args:
        experts: policies, which are copied.
        gamma: γ: the share of uniform draws, and how fast weights move.
        seed: for what is drawn at random.

    >>> import topstory as ts
    >>> both = ts.combine([ts.policy("ucb"), ts.policy("linucb-disjoint")], gamma=0.1)
    >>> both.probabilities([1.0], ["rain", "sun"])
    array([0.5, 0.5])
    >>> both.weights
    array([0.5, 0.5])
    """

    def __init__(self, experts: Sequence[Policy], gamma: float = 0.05, seed: int = 0) -> None:
        if not len(experts) or not all(isinstance(each, Policy) for each in experts):
            raise TypeError(f"experts must be one or more policies, got {experts!r}")
        if not 0 < gamma <= 1:
            raise ValueError(f"gamma must be above 0 and at most 1 (random), got {gamma!r}")
        check_seed(seed)
        self.experts = [each.copy() for each in experts]
        self.gamma, self.seed, self.decisions = float(gamma), int(seed), 0
        self._log_weights: Floats = np.zeros(len(experts))
        self._open = OpenDecisions[tuple[float, Floats, int]]()

    def __repr__(self) -> str:
        named = ", ".join(
            f"{each.model.name} × {each.explorer.name}: {weight:.2f}"
            for each, weight in zip(self.experts, self.weights, strict=True)
        )
        return f"<Combination: {named}>"

    @property
    def weights(self) -> Floats:
        """(experts,) how much each one counts; they sum to 1."""
        found = np.exp(self._log_weights - self._log_weights.max())
        return np.asarray(found / found.sum())

    def probabilities(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(len(pool),) how likely `choose` is to choose each article, now."""
        return self._mixed(self._advice(user, pool))

    def choose(self, user: npt.ArrayLike, pool: Sequence[str]) -> Choice:
        """Which article to show to this user."""
        advice = self._advice(user, pool)
        chances = self._mixed(advice)
        drawn = np.random.default_rng([self.seed, self.decisions]).random()
        place = min(int(np.searchsorted(chances.cumsum(), drawn, "right")), len(pool) - 1)
        self.decisions += 1
        choice = Choice(pool[place], float(chances[place]))
        self._open.add(user, choice.article, (choice.propensity, advice[:, place], len(pool)))
        return choice

    def greedy(self, user: npt.ArrayLike, pool: Sequence[str]) -> Choice:
        """What the deployment bucket would show: the greedy choice of the expert that leads."""
        return self.experts[int(np.argmax(self._log_weights))].greedy(user, pool)

    def learn(self, user: npt.ArrayLike, article: str, payoff: float) -> None:
        """Learn from a trial. Weights move if the decision was made here, among the last 100,000.

        Args:
            user: the context.
            article: that was shown.
            payoff: from 0 to 1.
        """
        if not 0 <= payoff <= 1:
            raise ValueError(f"a combination takes payoffs from 0 to 1, got {payoff!r}")
        made = self._open.take(user, article)
        if made is not None:
            propensity, advice, count = made
            self._log_weights += self.gamma / count * advice * payoff / propensity
        for expert in self.experts:
            expert.learn(user, article, payoff)

    def add_article(self, article: str, features: npt.ArrayLike | None = None) -> None:
        """Add an article to all experts."""
        for expert in self.experts:
            expert.add_article(article, features)

    def remove_article(self, article: str) -> None:
        """Forget an article."""
        for expert in self.experts:
            expert.remove_article(article)

    def use_event_features(self, count: int) -> None:
        """Contexts end with so many features of the article, which change with the event."""
        for expert in self.experts:
            expert.model.use_event_features(count)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the experts, what they learned and their weights to one safetensors file."""
        arrays = {"log_weights": self._log_weights.copy()}
        for number, expert in enumerate(self.experts):
            arrays |= {f"{number}.{name}": array for name, array in state_of(expert).items()}
        described = {
            "experts": [describe_whole(expert) for expert in self.experts],
            **{"gamma": self.gamma, "seed": self.seed, "decisions": self.decisions},
        }
        version = max(expert.model.stored_version for expert in self.experts)
        replace(_SEAL, version=version).write(path, described, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Combination:
        """The combination that `save` wrote. It knows of no decisions whose payoffs are to come."""
        return _SEAL.read(path, _built)

    def _advice(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(experts, len(pool)) each one's probabilities."""
        return np.array([expert.probabilities(user, pool) for expert in self.experts])

    def _mixed(self, advice: Floats) -> Floats:
        mixed = (1 - self.gamma) * self.weights @ advice + self.gamma / advice.shape[1]
        return np.asarray(mixed / math.fsum(mixed))


def combine(experts: Sequence[Policy], gamma: float = 0.05, seed: int = 0) -> Combination:
    """A policy over policies, EXP4: `Combination` says how.

    >>> import topstory as ts
    >>> combine([ts.policy("ucb"), ts.policy("ts")])
    <Combination: context-free × upper-confidence: 0.50, context-free × beta-thompson: 0.50>
    """
    return Combination(experts, gamma, seed)


def _built(described: dict[str, Any], arrays: Arrays) -> Combination:
    experts = []
    for number, each in enumerate(described["experts"]):
        before = f"{number}."
        own = {n.removeprefix(before): a for n, a in arrays.items() if n.startswith(before)}
        experts.append(build(each, own, {}))
    found = Combination(experts, described["gamma"], described["seed"])
    weights = arrays["log_weights"]
    if weights.shape != (len(experts),) or not np.isfinite(weights).all():
        raise ValueError(f"log_weights: expected {len(experts)} numbers, found {weights}")
    found._log_weights = np.array(weights, np.float64)
    found.decisions = int(described["decisions"])
    return found
