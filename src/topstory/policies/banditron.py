"""The Banditron (Kakade, Shalev-Shwartz and Tewari 2008), which the paper's conclusion names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats
from topstory.policies.open_decisions import OpenDecisions
from topstory.policies.policy import Choice, check_seed


class Banditron:
    """A perceptron with a weight vector for each article that hears of clicks alone.

    It guesses the article ŷ with the largest wᵀx, shows it with probability 1 − γ + γ/K and any
    other with γ/K, and then moves w of the article shown by x·r/p, and w of ŷ by −x: on average
    what a perceptron would do that knew the right answer. It makes no estimates of payoffs, so it
    suits problems with a right answer, such as classification, better than rare clicks. `ts.replay`
    runs it event by event, in Python.

    Args:
        gamma: γ, the share of uniform draws.
        seed: for what is drawn at random.

    >>> learner = Banditron(gamma=0.2)
    >>> choice = learner.choose([1.0, 0.0], ["rain", "sun"])
    >>> round(learner.probabilities([1.0, 0.0], ["rain", "sun"]).sum(), 9)
    np.float64(1.0)
    >>> learner.learn([1.0, 0.0], choice.article, payoff=1)
    """

    def __init__(self, gamma: float = 0.05, seed: int = 0) -> None:
        if not 0 < gamma <= 1:
            raise ValueError(f"gamma must be above 0 and at most 1 (random), got {gamma!r}")
        check_seed(seed)
        self.gamma, self.seed, self.decisions = float(gamma), int(seed), 0
        self._weights: dict[str, Floats] = {}
        self._open = OpenDecisions[tuple[float, str]]()

    def scores(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(len(pool),) each article's wᵀx."""
        x = np.asarray(user, np.float64)
        nothing = np.zeros(len(x))
        return np.array([self._weights.get(article, nothing) @ x for article in pool])

    def probabilities(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(len(pool),) how likely `choose` is to choose each article; of ties each is the guess."""
        scores = self.scores(user, pool)
        leads = scores == scores.max()
        return np.asarray((1 - self.gamma) * leads / leads.sum() + self.gamma / len(pool))

    def choose(self, user: npt.ArrayLike, pool: Sequence[str]) -> Choice:
        """Which article to show to this user."""
        random = np.random.default_rng([self.seed, self.decisions])
        self.decisions += 1
        guess = self._guess(user, pool, random)
        place = int(random.integers(len(pool))) if random.random() < self.gamma else guess
        chance = self.gamma / len(pool) + (1 - self.gamma) * (place == guess)
        self._open.add(user, pool[place], (chance, pool[guess]))
        return Choice(pool[place], float(self.probabilities(user, pool)[place]))

    def greedy(self, user: npt.ArrayLike, pool: Sequence[str]) -> Choice:
        """Its guess."""
        random = np.random.default_rng([self.seed, self.decisions])
        scores = self.scores(user, pool)
        ties = int((scores == scores.max()).sum())
        return Choice(pool[self._guess(user, pool, random)], 1 / ties)

    def learn(self, user: npt.ArrayLike, article: str, payoff: float) -> None:
        """Learn from a decision of its own, one of the last 100,000; another teaches it nothing."""
        if not 0 <= payoff <= 1:
            raise ValueError(f"the Banditron takes payoffs from 0 to 1, got {payoff!r}")
        made = self._open.take(user, article)
        if made is None:
            return
        (chance, guess), x = made, np.asarray(user, np.float64)
        self._move(article, x * (payoff / chance))
        self._move(guess, -x)

    def _move(self, article: str, step: Floats) -> None:
        self._weights[article] = self._weights.get(article, np.zeros(len(step))) + step

    def _guess(self, user: npt.ArrayLike, pool: Sequence[str], random: np.random.Generator) -> int:
        if not len(pool):
            raise ValueError("the pool is empty: there is no article to choose")
        scores = self.scores(user, pool)
        return int(random.choice(np.flatnonzero(scores == scores.max())))
