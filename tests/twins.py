"""Plain transcriptions of the paper, to be checked by eye: what is compiled must equal them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri, rel_entr

import topstory as ts
from topstory.events import EventLog

Floats = npt.NDArray[np.float64]
Scored = dict[str, float]  # article -> what it is compared by
BITS = 2**64 - 1


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def root(seed: int, event: int) -> int:
    return mix((mix(seed) + (event + 1) * 0x9E3779B97F4A7C15) & BITS)


def article_key(article: str) -> int:
    return int.from_bytes(blake2b(article.encode(), digest_size=8).digest(), "little")


def priority(seed: int, event: int, article: str) -> int:
    return mix(root(seed, event) ^ article_key(article))


def draw(seed: int, event: int, what: int) -> float:
    return float((mix(root(seed, event) ^ what) >> 11) / 2**53)


EXPLORE, LEARN, SAMPLE = 0x243F6A8885A308D3, 0x13198A2E03707344, 0x082EFA98EC4E6C89


class Twin(ABC):
    """A model as the paper writes it."""

    @abstractmethod
    def bound(self, x: Floats, a: str) -> tuple[float, float]:
        """Estimate and width."""

    @abstractmethod
    def learn(self, x: Floats, a: str, r: float) -> None: ...


class Algorithm1(Twin):
    """LinUCB with disjoint linear models."""

    def __init__(self, d: int, ridge: float) -> None:
        self.d, self.ridge = d, ridge
        self.A: dict[str, Floats] = {}
        self.b: dict[str, Floats] = {}

    def bound(self, x: Floats, a: str) -> tuple[float, float]:
        A = self.A.setdefault(a, self.ridge * np.eye(self.d))
        b = self.b.setdefault(a, np.zeros(self.d))
        inverse = np.linalg.inv(A)
        theta = inverse @ b
        return float(theta @ x), math.sqrt(x @ inverse @ x)

    def learn(self, x: Floats, a: str, r: float) -> None:
        self.A[a] = self.A[a] + np.outer(x, x)
        self.b[a] = self.b[a] + r * x


class Algorithm2(Twin):
    """LinUCB with hybrid linear models, line by line."""

    def __init__(self, d: int, features: dict[str, Floats], ridge: float, shared: float) -> None:
        k = d * len(next(iter(features.values())))
        self.d, self.k, self.ridge, self.features = d, k, ridge, features
        self.A0, self.b0 = shared * np.eye(k), np.zeros(k)
        self.A: dict[str, Floats] = {}
        self.B: dict[str, Floats] = {}
        self.b: dict[str, Floats] = {}

    def bound(self, x: Floats, a: str) -> tuple[float, float]:
        A = self.A.setdefault(a, self.ridge * np.eye(self.d))
        B = self.B.setdefault(a, np.zeros((self.d, self.k)))
        b = self.b.setdefault(a, np.zeros(self.d))
        z = np.outer(x, self.features[a]).ravel()
        A0_inverse, A_inverse = np.linalg.inv(self.A0), np.linalg.inv(A)
        beta = A0_inverse @ self.b0
        theta = A_inverse @ (b - B @ beta)
        s = (
            z @ A0_inverse @ z
            - 2 * z @ A0_inverse @ B.T @ A_inverse @ x
            + x @ A_inverse @ x
            + x @ A_inverse @ B @ A0_inverse @ B.T @ A_inverse @ x
        )
        return float(z @ beta + x @ theta), math.sqrt(max(0.0, float(s)))

    def learn(self, x: Floats, a: str, r: float) -> None:
        A, B, b = self.A[a], self.B[a], self.b[a]
        z = np.outer(x, self.features[a]).ravel()
        self.A0 = self.A0 + B.T @ np.linalg.inv(A) @ B
        self.b0 = self.b0 + B.T @ np.linalg.inv(A) @ b
        A, B, b = A + np.outer(x, x), B + np.outer(x, z), b + r * x
        self.A[a], self.B[a], self.b[a] = A, B, b
        self.A0 = self.A0 + np.outer(z, z) - B.T @ np.linalg.inv(A) @ B
        self.b0 = self.b0 + r * z - B.T @ np.linalg.inv(A) @ b


class Averages(Twin):
    """Mean payoff and 1/√n for each article, or each article and segment; maybe an offset."""

    def __init__(self, segmented: bool = False, offset: dict[str, Floats] | None = None) -> None:
        self.segmented, self.offset = segmented, offset or {}
        self.n: dict[Any, int] = {}
        self.total: dict[Any, float] = {}

    def cell(self, x: Floats, a: str) -> Any:
        return (a, int(np.argmax(x[:-1]))) if self.segmented else a

    def bound(self, x: Floats, a: str) -> tuple[float, float]:
        n, total = self.n.get(self.cell(x, a), 0), self.total.get(self.cell(x, a), 0.0)
        extra = float(x @ self.offset[a]) if a in self.offset else 0.0
        return (total / n if n else 0.0) + extra, 1 / math.sqrt(n) if n else math.inf

    def learn(self, x: Floats, a: str, r: float) -> None:
        cell = self.cell(x, a)
        self.n[cell] = self.n.get(cell, 0) + 1
        extra = float(x @ self.offset[a]) if a in self.offset else 0.0
        self.total[cell] = self.total.get(cell, 0.0) + r - extra


class LogisticRegressions(Twin):
    """One Newton step for each trial, over all coefficients at once: β if any, then each θ.

    A += κ x xᵀ and b += (κη − p + r) x, with η, p and κ as they were at the impression.
    """

    def __init__(
        self, d: int, features: dict[str, Floats] | None, ridge: float, shared: float, rate: float
    ) -> None:
        self.d, self.features = d, features
        self.k = 0 if features is None else d * len(next(iter(features.values())))
        self.ridge, self.start = ridge, math.log(rate / (1 - rate))
        self.places: dict[str, int] = {}
        self.A, self.b = shared * np.eye(self.k), np.zeros(self.k)
        if self.k:
            self.b[-1] = shared * self.start

    def row(self, x: Floats, a: str) -> Floats:
        if a not in self.places:
            self.places[a] = len(self.b)
            size = len(self.b) + self.d
            A, own = np.eye(size) * self.ridge, np.zeros(self.d)
            A[: len(self.b), : len(self.b)] = self.A
            if not self.k:
                own[-1] = self.ridge * self.start
            self.A, self.b = A, np.r_[self.b, own]
        row = np.zeros(len(self.b))
        if self.features is not None:
            row[: self.k] = np.outer(x, self.features[a]).ravel()
        row[self.places[a] : self.places[a] + self.d] = x
        return row

    def bound(self, x: Floats, a: str) -> tuple[float, float]:
        """Log-odds."""
        row = self.row(x, a)
        solved = np.linalg.solve(self.A, np.column_stack([self.b, row]))
        return float(row @ solved[:, 0]), math.sqrt(row @ solved[:, 1])

    def learn(self, x: Floats, a: str, r: float) -> None:
        eta, row = self.bound(x, a)[0], self.row(x, a)
        p = 1 / (1 + math.exp(-eta))
        kappa = max(p * (1 - p), 1e-3)
        self.A = self.A + kappa * np.outer(row, row)
        self.b = self.b + (kappa * eta - p + r) * row


class Fixed(Twin):
    """Each article's mean, known beforehand and never changed."""

    def __init__(self, means: dict[str, float]) -> None:
        self.means = means

    def bound(self, x: Floats, a: str) -> tuple[float, float]:
        return self.means.get(a, 0.0), 0.0

    def learn(self, x: Floats, a: str, r: float) -> None: ...


class Setting(NamedTuple):
    """What a twin may need to know of the log that it is compared on."""

    dimension: int
    features: dict[str, Floats]
    offset: dict[str, Floats]
    means: dict[str, float]  # each article's over the whole log
    parameters: dict[str, Any]  # of the policy

    def number(self, name: str, default: float = 1.0) -> float:
        return float(self.parameters.get(name, default))


# The twin of every model, by the model's name in the registry.
TWINS: dict[str, Callable[[Setting], Twin]] = {
    "nothing": lambda at: Fixed({}),
    "hindsight": lambda at: Fixed(at.means),
    "context-free": lambda at: Averages(),
    "warm": lambda at: Averages(offset=at.offset),
    "segmented": lambda at: Averages(segmented=True),
    "disjoint": lambda at: Algorithm1(at.dimension, at.number("ridge")),
    "hybrid": lambda at: Algorithm2(
        at.dimension, at.features, at.number("ridge"), at.number("shared_ridge")
    ),
    "logistic-disjoint": lambda at: LogisticRegressions(
        at.dimension, None, at.number("ridge"), 1.0, at.number("rate", 0.05)
    ),
    "low-rank": lambda at: Algorithm1(at.dimension, at.number("ridge")),  # d is below its rank
    "logistic-hybrid": lambda at: LogisticRegressions(
        at.dimension,
        at.features,
        at.number("ridge"),
        at.number("shared_ridge"),
        at.number("rate", 0.05),
    ),
}


Bounds = dict[str, tuple[float, float]]  # article -> estimate and width


def bounds_or_chance(
    explorer: ts.Explorer, bounds: Bounds, seed: int, t: int, trials: int
) -> Scored:
    """Greedy, ε-greedy, UCB, random: what to compare articles by."""
    alpha, epsilon = explorer.bonus, explorer.share
    if isinstance(explorer, ts.EpsilonGreedy) and explorer.epsilon == "decay":
        epsilon = min(1.0, explorer.decay * (len(bounds) / (trials + 1)) ** (1 / 3))
    if isinstance(explorer, ts.EpochGreedy):
        drawn = [math.floor(explorer.epochs * n ** (2 / 3)) for n in (trials, trials + 1)]
        epsilon = float(drawn[1] > drawn[0])
    if epsilon > 0 and draw(seed, t, EXPLORE) < epsilon:
        return dict.fromkeys(bounds, 0.0)
    return {a: e + alpha * w if alpha > 0 else e for a, (e, w) in bounds.items()}


def own_draw(seed: int, t: int, article: str) -> float:
    """The article's own uniform draw in this decision, in (0, 1)."""
    return draw(seed, t, article_key(article) ^ SAMPLE) + 2.0**-54


def thompson(explorer: ts.Explorer, bounds: Bounds, seed: int, t: int, trials: int) -> Scored:
    assert isinstance(explorer, ts.Thompson)
    scores = {}
    for a, (e, w) in bounds.items():
        z = float(ndtri(own_draw(seed, t, a)))
        z = max(z, 0.0) if explorer.optimistic else z
        scores[a] = math.inf if w == math.inf else e + explorer.alpha * w * z
    return scores


def softmax(explorer: ts.Explorer, bounds: Bounds, seed: int, t: int, trials: int) -> Scored:
    """An exponential race: article a arrives after E/weight, and the first one wins."""
    assert isinstance(explorer, ts.Softmax)
    return {
        a: e / explorer.temperature - math.log(-math.log(own_draw(seed, t, a)))
        for a, (e, _) in bounds.items()
    }


def inverse_gap(explorer: ts.Explorer, bounds: Bounds, seed: int, t: int, trials: int) -> Scored:
    assert isinstance(explorer, ts.InverseGap)
    best = max(round(e, 12) for e, _ in bounds.values())
    gaps = {a: best - round(e, 12) for a, (e, _) in bounds.items()}
    gamma = explorer.c * math.sqrt(trials + 1)
    chances = {a: 1 / (len(gaps) + gamma * gap) for a, gap in gaps.items() if gap > 0}
    leaders = [a for a in gaps if a not in chances]
    chances |= dict.fromkeys(leaders, (1 - sum(chances.values())) / len(leaders))
    even = explorer.floor / len(gaps)
    return {
        a: math.log(even + (1 - explorer.floor) * p) - math.log(-math.log(own_draw(seed, t, a)))
        for a, p in chances.items()
    }


def beta_thompson(explorer: ts.Explorer, bounds: Bounds, seed: int, t: int, trials: int) -> Scored:
    assert isinstance(explorer, ts.BetaThompson)
    scores = {}
    for a, (e, w) in bounds.items():
        n = 0.0 if w == math.inf or explorer.alpha == 0 else 1 / (explorer.alpha * w) ** 2
        clicks, others = n * e + explorer.successes, n * (1 - e) + explorer.failures
        drawn = float(betaincinv(clicks, others, own_draw(seed, t, a)))
        scores[a] = e if explorer.alpha == 0 else drawn
    return scores


def ucb1(explorer: ts.Explorer, bounds: Bounds, seed: int, t: int, trials: int) -> Scored:
    assert isinstance(explorer, ts.LogUpperConfidence)
    bonus = explorer.alpha * math.sqrt(math.log(trials + 1))
    if explorer.alpha == 0:
        return {a: e for a, (e, _) in bounds.items()}
    return {a: math.inf if w == math.inf else e + bonus * w for a, (e, w) in bounds.items()}


def kl_ucb(explorer: ts.Explorer, bounds: Bounds, seed: int, t: int, trials: int) -> Scored:
    """By halving the interval from the mean to 1."""
    assert isinstance(explorer, ts.KLUpperConfidence)
    if explorer.alpha == 0:
        return {a: e for a, (e, _) in bounds.items()}
    mean, width = np.array(list(bounds.values())).T
    known = np.where(width < math.inf, width, 0.0)
    room = explorer.alpha * math.log(trials + 1) * known**2
    low, high = mean.copy(), np.ones_like(mean)
    for _ in range(80):
        middle = (low + high) / 2
        inside = rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle) <= room
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    scores = np.where(width < math.inf, low, math.inf)
    return dict(zip(bounds, scores.tolist(), strict=True))


EXPLORER_TWINS: dict[str, Callable[[ts.Explorer, Bounds, int, int, int], Scored]] = {
    **dict.fromkeys(("greedy", "uniform", "epsilon-greedy", "upper-confidence"), bounds_or_chance),
    "epoch-greedy": bounds_or_chance,
    "beta-thompson": beta_thompson,
    "log-upper-confidence": ucb1,
    "kl-upper-confidence": kl_ucb,
    "thompson": thompson,
    "softmax": softmax,
    "inverse-gap": inverse_gap,
}


def algorithm3(
    model: Twin, explorer: ts.Explorer, seed: int, log: EventLog, size: float, log_seed: int
) -> tuple[list[int], list[int]]:
    """Policy_Evaluator in plain Python: the events retained for learning, and for deployment."""
    learned, deployed = [], []
    trials = 0
    for t, event in enumerate(log):
        pool = list(event.pool)
        order = {a: priority(seed, t, a) for a in pool}
        bounds = {a: model.bound(event.user, a) for a in pool}
        greedy = max(pool, key=lambda a: (bounds[a][0], order[a]))
        scored = EXPLORER_TWINS.get(explorer.name, bounds_or_chance)
        scores = scored(explorer, bounds, seed, t, trials)
        choice = max(pool, key=lambda a: (scores[a], order[a]))
        if greedy == event.shown:
            deployed.append(t)
        if choice == event.shown:
            learned.append(t)
            if size >= 1 or draw(log_seed, t, LEARN) < size:
                trials += 1
                model.learn(event.user, event.shown, event.payoff)
    return learned, deployed


class StackedRidge:
    """One ridge regression over all coefficients at once: β, then a θ for each article (Eq. 6)."""

    def __init__(self, d: int, ridge: float, shared: float, features: dict[str, Floats]) -> None:
        self.d, self.features = d, features
        self.k = d * len(next(iter(features.values())))
        self.places = {a: self.k + i * d for i, a in enumerate(features)}
        size = self.k + d * len(features)
        self.gram = np.diag(np.r_[np.full(self.k, shared), np.full(size - self.k, ridge)])
        self.target = np.zeros(size)

    def row(self, x: Floats, a: str) -> Floats:
        row = np.zeros(len(self.target))
        row[: self.k] = np.outer(x, self.features[a]).ravel()
        row[self.places[a] : self.places[a] + self.d] = x
        return row

    def shown(self, x: Floats, a: str) -> None:
        self.gram += np.outer(self.row(x, a), self.row(x, a))

    def paid(self, x: Floats, a: str, r: float) -> None:
        self.target += r * self.row(x, a)

    def bounds(self, x: Floats, pool: list[str]) -> tuple[Floats, Floats]:
        """Estimates and widths."""
        rows = np.array([self.row(x, a) for a in pool])
        solved = np.linalg.solve(self.gram, np.column_stack([self.target, rows.T]))
        return rows @ solved[:, 0], np.sqrt(np.einsum("ij,ji->i", rows, solved[:, 1:]))
