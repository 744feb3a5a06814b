"""`fit_offset` equals the ridge regression written out in full."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import topstory as ts
from topstory.models import LinearOffset, offset

FEATURES = {"a": [1.0, 0.0, 1.0], "b": [0.2, -0.5, 1.0], "c": [0.0, 2.0, 1.0]}


def random_log(articles: Any, sparse_users: bool = False, events: int = 400) -> ts.EventLog:
    random = np.random.default_rng(0)
    users: Any = (random.random((events, 4)) < 0.5).astype(float)
    users[:, -1] = 1.0
    shown = random.choice(["a", "b"], events)  # nobody ever saw c
    payoff = random.normal(users[:, 0] * (shown == "a"), 0.1)
    if sparse_users:
        users = sparse.csr_array(users)
    return ts.EventLog.from_arrays(
        users, [["a", "b", "c"]], np.zeros(events, int), shown, payoff, articles
    )


def columns(log: ts.EventLog) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    users = np.array([log.context(i) for i in range(len(log))])
    shown = log.shown
    residual = log.payoff.astype(float)
    for article in set(shown):
        residual[shown == article] -= residual[shown == article].mean()
    return users, shown, residual


@pytest.mark.parametrize("sparse_users", [False, True])
@pytest.mark.parametrize("chunk", [7, 1000])
def test_with_features_it_is_one_ridge_regression_on_the_outer_product(
    sparse_users: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset, "CHUNK", chunk)
    log = random_log(FEATURES, sparse_users)
    users, shown, residual = columns(log)
    Z = np.array([np.kron(x, FEATURES[a]) for x, a in zip(users, shown, strict=True)])
    w = np.linalg.solve(Z.T @ Z + 5 * np.eye(12), Z.T @ residual)
    table = ts.fit_offset(log, ridge=5).table(log.articles)
    for article, f in FEATURES.items():  # c too, though it was never shown
        assert_allclose(table[article], w.reshape(4, 3) @ f, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("sparse_users", [False, True])
def test_without_features_each_article_has_a_ridge_regression_of_its_own(
    sparse_users: bool,
) -> None:
    log = random_log(None, sparse_users)
    users, shown, residual = columns(log)
    table = ts.fit_offset(log, ridge=5).table(log.articles)
    for article in ("a", "b"):
        X = users[shown == article]
        theta = np.linalg.solve(X.T @ X + 5 * np.eye(4), X.T @ residual[shown == article])
        assert_allclose(table[article], theta, rtol=1e-6, atol=1e-9)
    assert "c" not in table


def test_a_large_ridge_means_no_offset() -> None:
    for articles in (FEATURES, None):
        log = random_log(articles)
        table = ts.fit_offset(log, ridge=1e12).table(log.articles)
        assert all(np.abs(weights).max() < 1e-8 for weights in table.values())


def test_a_warm_policy_takes_the_table() -> None:
    log = random_log(FEATURES)
    table = ts.fit_offset(log).table(log.articles)
    user = log.context(0)
    policy = ts.policy("ucb-warm", offset=table)
    assert_allclose(policy.estimates(user, ["a", "c"]), [table["a"] @ user, table["c"] @ user])


def test_what_cannot_be_fitted_or_applied_is_refused() -> None:
    log = random_log(FEATURES)
    with pytest.raises(ValueError, match="the log has none"):
        ts.fit_offset(log[:0])
    with pytest.raises(ValueError, match="ridge must be from 1e-12"):
        ts.fit_offset(log, ridge=0)
    fitted = ts.fit_offset(log)
    assert isinstance(fitted, LinearOffset)
    with pytest.raises(ValueError, match=r"'d' has no features, but .* articles with 3"):
        fitted.table({"d": None})
    with pytest.raises(ValueError, match="'d' has 2 features"):
        fitted.table({"d": [1.0, 2.0]})
