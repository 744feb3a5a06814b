"""Taste: what each group of users likes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topstory.events.columns.array_record import Floats
from topstory.events.simulator.newsroom import SimulatedArticle, topics_of
from topstory.events.simulator.settings import GROUPS, WorldSettings


class Taste:
    """The bilinear part of a click's log-odds: preference · πᵀMτ for a user π and an article τ.

    M is doubly centred with unit deviation: groups differ in what they like, topics in whom they
    please. How much a group clicks at all, and how well a topic does, are settings of their own;
    so topics are centred over all who click, large and keen groups counting for more.

    >>> matrix = Taste(WorldSettings(), seed=0).matrix
    >>> matrix.shape, np.abs(matrix.sum(axis=1)).max() < 1e-9, round(float(matrix.std()), 6)
    ((5, 5), np.True_, 1.0)
    """

    def __init__(self, settings: WorldSettings, seed: int) -> None:
        self._settings = settings
        random = np.random.default_rng([seed, 5])
        self.matrix = self._centred(random)  # (user groups, topics)
        self._other = self._centred(random)  # what it turns towards, a quarter turn away

    def _centred(self, random: np.random.Generator) -> Floats:
        have = self._settings
        matrix = have.affinity * np.eye(GROUPS) + random.normal(0, 1, (GROUPS, GROUPS))
        weights = np.array(have.group_shares) * np.exp(have.group_rates)
        matrix -= weights @ matrix / weights.sum()
        matrix -= matrix.mean(axis=1, keepdims=True)
        return np.asarray(matrix / matrix.std())

    def at(self, hour: int) -> Floats:
        """The matrix of an hour since 1970: it turns at `taste_turn`, a known rate."""
        if not self._settings.taste_turn:
            return self.matrix
        angle = self._settings.taste_turn * hour / 24
        turned = np.cos(angle) * self.matrix + np.sin(angle) * self._other
        return np.asarray(turned / turned.std())

    def appeal(self, articles: Sequence[SimulatedArticle]) -> Floats:
        """(A, GROUPS) what each user group adds to the log-odds of a click on each article."""
        have = self._settings
        if have.taste_turn:  # an article pleases those who like its topics when it appears
            rows = [article.topics @ self.at(article.born).T for article in articles]
            liking = have.preference * np.array(rows).reshape(-1, GROUPS)
        else:
            liking = have.preference * topics_of(articles) @ self.matrix.T
        own = np.array([a.appeal for a in articles]).reshape(-1, GROUPS)
        appeal: Floats = liking + own + np.array(have.group_rates)
        return appeal
