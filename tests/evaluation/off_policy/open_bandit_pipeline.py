"""The estimators of the Open Bandit Pipeline (obp 0.5), transcribed from obp/ope/estimators.py.

Each of its classes has `_estimate_round_rewards(reward, iw, …)`, whose mean is the value. There,
iw = action_dist[shown] / pscore. The names of its arguments are kept.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def ips(reward: Floats, pi: Floats, pscore: Floats, q_hat: Floats, base: Floats) -> float:
    """InverseProbabilityWeighting, lambda_ = inf."""
    iw = pi / pscore
    return float((reward * iw).mean())


def snips(reward: Floats, pi: Floats, pscore: Floats, q_hat: Floats, base: Floats) -> float:
    """SelfNormalizedInverseProbabilityWeighting."""
    iw = pi / pscore
    return float((reward * iw / iw.mean()).mean())


def direct_method(reward: Floats, pi: Floats, pscore: Floats, q_hat: Floats, base: Floats) -> float:
    """DirectMethod: np.average(q_hat_at_position, weights=pi_e_at_position, axis=1)."""
    return float(base.mean())


def doubly_robust(reward: Floats, pi: Floats, pscore: Floats, q_hat: Floats, base: Floats) -> float:
    """DoublyRobust, lambda_ = inf."""
    iw = pi / pscore
    return float((base + iw * (reward - q_hat)).mean())


def switch_dr(reward: Floats, pi: Floats, pscore: Floats, q_hat: Floats, base: Floats) -> float:
    """SwitchDoublyRobust, tau = 1.5 (the current SwitchDoublyRobust: lambda_)."""
    iw = pi / pscore
    switch_indicator = (iw <= 1.5).astype(int)
    return float((base + switch_indicator * iw * (reward - q_hat)).mean())


def dr_os(reward: Floats, pi: Floats, pscore: Floats, q_hat: Floats, base: Floats) -> float:
    """DoublyRobustWithShrinkage, lambda_ = 2."""
    iw = pi / pscore
    shrinkage_weight = (2.0 * iw) / (iw**2 + 2.0)
    return float((base + shrinkage_weight * (reward - q_hat)).mean())


OBP: dict[str, Callable[[Floats, Floats, Floats, Floats, Floats], float]] = {
    "ips": ips,
    "snips": snips,
    "dm": direct_method,
    "dr": doubly_robust,
    "switch": switch_dr,
    "dr-shrunk": dr_os,
}
