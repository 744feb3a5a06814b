"""Logs made by the models themselves, so that the prior behind them is known."""

from typing import Any

import numpy as np
import numpy.typing as npt

import topstory as ts
from topstory.models.priors.sums import ArticleSums

Floats = npt.NDArray[np.float64]
D, M = 4, 3


def linear_log(
    seed: int, articles: int, each: int, beta: Floats, spread: float, noise: float = 0.2
) -> ts.EventLog:
    """Payoffs xᵀ(βf_a + θ_a) + noise, with θ_a ~ N(0, spread²); articles shown at random."""
    random = np.random.default_rng(seed)
    d, m = beta.shape
    features = np.column_stack([random.random((articles, m - 1)), np.ones(articles)])
    theta = features @ beta.T + random.normal(0, spread, (articles, d))
    events = articles * each
    users = np.column_stack([random.random((events, d - 1)), np.ones(events)])
    shown = random.permutation(np.repeat(np.arange(articles), each))
    payoff = np.einsum("nd,nd->n", users, theta[shown]) + random.normal(0, noise, events)
    ids = [f"{seed}-{a}" for a in range(articles)]
    return ts.EventLog.from_arrays(
        users,
        [ids],
        np.zeros(events, int),
        [ids[a] for a in shown],
        payoff,
        articles=dict(zip(ids, features, strict=True)),
    )


def learn_all(policy: ts.Policy, log: ts.EventLog, events: int) -> None:
    for article, features in log.articles.items():
        policy.add_article(article, features)
    for event in log[:events]:
        policy.learn(event.user, event.shown, event.payoff)


def trials(
    random: np.random.Generator, count: int, pool: list[str]
) -> list[tuple[Any, str, float]]:
    return [
        (
            np.append(random.random(D - 1), 1.0),
            str(random.choice(pool)),
            float(random.random() < 0.3),
        )
        for _ in range(count)
    ]


def as_sums(log: ts.EventLog) -> ArticleSums:
    """The sums of a log, one event at a time."""
    ids = tuple(log.article_ids)
    S, b = np.zeros((len(ids), D, D)), np.zeros((len(ids), D))
    for event in log:
        a = ids.index(event.shown)
        S[a] += np.outer(event.user, event.user)
        b[a] += event.payoff * np.asarray(event.user)
    features = np.array([log.articles[a] for a in ids], np.float64)
    r = log.payoff.astype(np.float64)
    return ArticleSums(ids, S, b, features, len(log), float(r.sum()), float((r * r).sum()))


def some_prior(d: int, m: int) -> ts.Prior:
    """A prior for contexts of d numbers and articles of m, such as a log might have taught."""
    random = np.random.default_rng(d * 100 + m)
    z = random.normal(size=(5 * d * m, d * m))
    x = random.normal(size=(3 * d, d))
    return ts.Prior(
        mean=random.normal(0, 0.1, d),
        precision=x.T @ x + np.eye(d),
        ridge=20.0,
        shared_ridge=2.0,
        A0=z.T @ z,
        b0=z.T @ random.normal(0.1, 0.3, len(z)),
        averages=np.tile([0.2, 30.0], (max(2, d), 1)),
        noise=0.1,
        weight=1.0,
        events=1_000,
        articles=20,
    )
