"""The bilinear logistic regression, against its definition and against scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from topstory.engines import SerialEngine, engine
from topstory.features import BilinearLogistic
from topstory.features.regression import lbfgs
from topstory.features.regression.event_blocks import cut_events
from topstory.features.regression.objective import Objective
from topstory.features.regression.preconditioner import MAX_FEATURES, Preconditioner

Floats = npt.NDArray[np.float64]
D, M, V, A, N = 7, 4, 200, 12, 4_000


def events(seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    users = (random.random((V, D)) < 0.4).astype(np.float32)
    articles = (random.random((A, M)) < 0.5).astype(float)
    users[:, -1] = articles[:, -1] = 1.0
    visitor, shown = random.integers(V, size=N), random.integers(A, size=N)
    scores = ((users @ random.normal(0, 0.7, (D, M)))[visitor] * articles[shown]).sum(axis=1) - 1
    clicks = (random.random(N) < 1 / (1 + np.exp(-scores))).astype(np.float32)
    return {
        "users": sparse.csr_array(users),
        "articles": articles,
        "visitor": visitor,
        "shown": shown,
        "clicks": clicks,
    }


def outer(given: dict[str, Any]) -> Floats:
    """The z = φ_u ⊗ φ_a of each event, as the regression never makes it."""
    users = given["users"].toarray()[given["visitor"]]
    articles = given["articles"][given["shown"]]
    return np.asarray((users[:, :, None] * articles[:, None, :]).reshape(N, -1), np.float64)


def objective_of(given: dict[str, Any], ridge: float) -> Objective:
    nothing = np.zeros(N, bool)
    cut = cut_events(
        given["users"], A, given["visitor"], given["shown"], given["clicks"], nothing, blocks=5
    )
    return Objective(SerialEngine(), given["users"], given["articles"], ridge, [*cut])


def test_loss_and_gradient_are_those_of_the_outer_products() -> None:
    given = events()
    objective = objective_of(given, ridge=2.0)
    x = np.random.default_rng(1).normal(0, 0.5, D * M + 1)
    z, y = outer(given), given["clicks"]
    scores = z @ x[:-1] + x[-1]
    loss, gradient = objective(x)
    wanted = np.logaddexp(0, scores).sum() - y @ scores + 2.0 / 2 * x[:-1] @ x[:-1]
    slope = 1 / (1 + np.exp(-scores)) - y
    assert loss == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(gradient, np.append(z.T @ slope + 2.0 * x[:-1], slope.sum()), 1e-9)


@pytest.mark.parametrize("ridge", [0.5, 5.0])
def test_it_agrees_with_scikit_learn_on_explicit_outer_products(ridge: float) -> None:
    given = events()
    theirs = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=5000)
    theirs.fit(outer(given), given["clicks"])
    ours = BilinearLogistic(ridge, held_out=0.0, tol=1e-13, max_iter=1000).fit_events(**given)
    np.testing.assert_allclose(ours.coef_.ravel(), theirs.coef_[0], atol=1e-4)
    assert ours.intercept_ == pytest.approx(theirs.intercept_[0], abs=1e-4)


def test_in_their_coordinates_independent_users_and_articles_give_a_round_loss() -> None:
    given, ridge = events(), 2.0
    objective = objective_of(given, ridge)
    users = given["users"].toarray()[given["visitor"]].astype(float)
    articles = given["articles"][given["shown"]]
    np.testing.assert_allclose(objective.user_moments(V), users.T @ users / N, rtol=1e-6)
    third = users[given["visitor"] % 3 == 0]
    wanted = third.T @ third / len(third)
    np.testing.assert_allclose(objective.user_moments(V // 3), wanted, rtol=1e-6)
    np.testing.assert_allclose(objective.article_moments(), articles.T @ articles / N, rtol=1e-9)
    np.testing.assert_array_equal(objective.shown, np.bincount(given["shown"], minlength=A))

    turned = Preconditioner.of(objective, ridge)
    mean = given["clicks"].mean()
    curvature = mean * (1 - mean) * np.kron(users.T @ users, articles.T @ articles) / N
    curvature += ridge * np.eye(D * M)
    axes = np.array([turned.place(v)[:-1] for v in np.eye(D * M + 1)[:-1]])  # row by row
    np.testing.assert_allclose(axes @ curvature @ axes.T, np.eye(D * M), atol=1e-4)

    v, x = np.random.default_rng(3).normal(size=(2, D * M + 1))
    assert turned.place(v) @ x == pytest.approx(v @ turned.slope(x))  # the chain rule


def test_coordinates_change_only_how_soon_the_minimum_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = events()
    fitted = []
    for widest in (MAX_FEATURES, 0):
        monkeypatch.setattr(lbfgs, "MAX_FEATURES", widest)
        model = BilinearLogistic(1.0, held_out=0.0, tol=1e-13, max_iter=1000)
        fitted.append(model.fit_events(**given))
    turned, plain = fitted
    np.testing.assert_allclose(turned.coef_, plain.coef_, atol=1e-4)
    assert turned.n_iter_ < plain.n_iter_ / 2


@pytest.mark.parametrize("name", ["local", "ray"])
def test_every_engine_gives_the_same_numbers(name: str) -> None:
    given = events()
    runs = engine(name, workers=2)
    serial = BilinearLogistic(1.0, engine="serial", max_iter=5).fit_events(**given)
    other = BilinearLogistic(1.0, engine=runs, max_iter=5).fit_events(**given)
    np.testing.assert_allclose(other.coef_, serial.coef_, atol=1e-6)
    assert other.history_ == serial.history_


def test_rows_of_both_and_events_that_share_them_are_one() -> None:
    given = events()
    users = given["users"].toarray()[given["visitor"]]
    X = np.hstack([users, given["articles"][given["shown"]]])
    by_rows = BilinearLogistic(1.0, held_out=0.0, tol=1e-12, user_features=D)
    by_rows.fit(X, given["clicks"])
    by_events = BilinearLogistic(1.0, held_out=0.0, tol=1e-12).fit_events(**given)
    np.testing.assert_allclose(by_rows.coef_, by_events.coef_, atol=1e-4)
    chance = by_rows.predict_proba(X)[:, 1]
    wanted = 1 / (1 + np.exp(-(outer(given) @ by_rows.coef_.ravel() + by_rows.intercept_)))
    np.testing.assert_allclose(chance, wanted, rtol=1e-9)


def test_the_best_iteration_on_held_out_events_is_kept() -> None:
    given = events()
    random = np.random.default_rng(2)
    given["clicks"] = (random.random(N) < 0.3).astype(np.float32)  # nothing to learn
    steps: list[Any] = []
    model = BilinearLogistic(0.0, patience=3, max_iter=100).fit_events(
        **given, progress=steps.append
    )
    losses = [step.held_out_loss or 0.0 for step in model.history_]
    assert tuple(steps) == model.history_
    assert model.log_loss_ == min(losses)
    assert len(losses) == losses.index(min(losses)) + 1 + 3  # and no longer than patience lasts
    assert all(0.4 < (step.auc or 0.0) < 0.6 for step in model.history_)


@pytest.mark.parametrize(
    ("clicks", "message"),
    [
        (np.zeros(N), "no event was clicked"),
        (np.ones(N), "every event was clicked"),
        (np.full(N, 2.0), "payoffs from 0 to 1; got 2 to 2"),
    ],
)
def test_payoffs_that_teach_nothing_are_refused(clicks: Floats, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BilinearLogistic().fit_events(**events() | {"clicks": clicks})


@pytest.mark.parametrize(
    "bad", [{"ridge": -1.0}, {"held_out": 1.0}, {"patience": 0}, {"max_iter": 0}, {"tol": -1.0}]
)
def test_bad_parameters_are_named(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        BilinearLogistic(**bad).fit_events(**events())
