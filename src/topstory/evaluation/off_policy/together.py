"""Lifts of several policies whose intervals hold all at once.

Of ten policies that are no better, one looks 5 % better by luck. So each interval is as much wider
as makes all of them hold together 95 times in 100: normal errors are drawn with the correlations
that the log's clusters show, and the level is that at which the worst of them fails once in twenty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from topstory.evaluation.uncertainty.clusters import ClusteredSums
from topstory.kernels.compilation import Floats

DRAWS = 4_000
ERROR = 0.05


def level_for_all(sums: ClusteredSums, gradients: Sequence[Floats], seed: int = 0) -> float:
    """The level of each interval that makes all of them hold with 95 %.

    Between that of one interval, 0.95, and Bonferroni's.
    """
    made = np.column_stack(gradients)  # (q, policies)
    by_block = sums.by_block @ made
    covariance = by_block.T @ by_block
    if sums.returning:
        by_visitor = sums.by_visitor @ made
        covariance += by_visitor.T @ by_visitor - made.T @ sums.cells @ made
    spread = np.sqrt(np.diag(covariance))
    known = spread > 0
    if known.sum() < 2:
        return 1 - ERROR
    correlation = covariance[np.ix_(known, known)] / np.outer(spread[known], spread[known])
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(seed).standard_normal((DRAWS, len(values))) @ root.T
    deviations = np.abs(drawn) / np.linalg.norm(root, axis=1)
    smallest = 2 * ndtr(-deviations.max(axis=1))
    alone = float(np.quantile(smallest, ERROR))
    return 1 - min(max(alone, ERROR / len(values)), ERROR)
