"""From raw profiles to six numbers: each formula again in plain NumPy, and bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.features.worlds import (
    TEACHING_NOTHING,
    clear_builder,
    clear_log,
    little_log,
)

import topstory as ts
from topstory.events import EventLog
from topstory.feature_identity import FeatureModelMismatch
from topstory.features.clustering.projection import article_projection, user_projection

Floats = npt.NDArray[np.float64]


def little_builder(**parameters: Any) -> ts.FeatureBuilder:
    given: dict[str, Any] = {"clusters": 2, "support": 0.0, "ridge": 1.0, "engine": "serial"}
    return ts.FeatureBuilder(**given | parameters).fit(little_log())


def by_hand(points: Floats, centers: Floats, width: float) -> Floats:
    """Normalised Gaussian kernels, the constant last."""
    kernel = np.exp(-((points[:, None] - centers) ** 2).sum(axis=2) / (2 * width**2))
    return np.column_stack([kernel / kernel.sum(axis=1, keepdims=True), np.ones(len(points))])


@pytest.mark.parametrize("distances", ["weighted", "plain"])
def test_six_numbers_are_normalised_kernels_of_distances(distances: str) -> None:
    builder, log = clear_builder(distances), clear_log()
    for side, profiles, found in (
        (builder.user_side_, log.profiles, builder.users(log.profiles)),
        (builder.article_side_, log.article_profiles, builder.articles(log.article_profiles)),
    ):
        assert side.soft is not None
        raw = side.encoder.transform(profiles).toarray().astype(float)
        wanted = by_hand(raw @ side.projection, side.soft.centers_, side.soft.width_)
        assert found.shape[1] == 6
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_plain_projections_are_the_paper_s() -> None:
    W, means = np.arange(12.0).reshape(4, 3), np.ones((2, 4))
    assert user_projection(W, np.eye(3), np.ones(3, int), "plain") is W
    np.testing.assert_array_equal(article_projection(W, means, "plain"), W.T)


def test_weighted_distances_are_variances_of_log_odds_over_articles() -> None:
    random = np.random.default_rng(0)
    W, users = random.normal(size=(8, 5)), random.normal(size=(2, 8))
    articles, shown = random.normal(size=(20, 5)), random.integers(1, 9, 20)
    x = users @ user_projection(W, articles, shown, "weighted")
    odds = users @ W @ articles.T
    difference = np.repeat(odds[0] - odds[1], shown)
    assert ((x[0] - x[1]) ** 2).sum() == pytest.approx(difference.var())


def test_weighted_articles_are_centred_log_odds_of_user_clusters() -> None:
    random = np.random.default_rng(0)
    W, means = random.normal(size=(8, 5)), random.normal(size=(3, 8))
    article = random.normal(size=5)
    odds = means @ W @ article
    np.testing.assert_allclose(
        article @ article_projection(W, means, "weighted"), odds - odds.mean(), atol=1e-12
    )


def test_clusters_are_a_fixed_point_of_k_means() -> None:
    builder, log = clear_builder(), clear_log()
    side = builder.user_side_
    assert side.soft is not None
    assert side.projection is not None
    points = side.encoder.transform(log.profiles) @ side.projection
    closest = side.soft.predict(points)
    np.testing.assert_array_equal(builder.segments(log.profiles), closest)
    means = np.array([points[closest == c].mean(axis=0) for c in range(5)])
    np.testing.assert_allclose(means, side.soft.centers_, atol=1e-5 * np.abs(means).max())
    np.testing.assert_array_equal(np.bincount(closest), builder.sizes_)


def test_applying_keeps_the_events() -> None:
    log = clear_log()[:1000]
    built = clear_builder().apply(log)
    assert built.users.shape == (1000, 6)
    assert built.profiles is None
    assert built.article_profiles is None
    np.testing.assert_array_equal(built.shown_index, log.shown_index)
    np.testing.assert_array_equal(built.payoff, log.payoff)
    assert log.visitors is not None
    contexts = clear_builder().users(log.profiles)[log.visitors.number]
    np.testing.assert_array_equal(built.users, contexts)
    assert clear_builder().apply(log, keep_profiles=True).profiles is log.profiles
    assert built.features is not None
    assert contexts[:, -1].min() == built.features[:, -1].min() == 1.0


def test_one_profile_is_the_row_of_a_table_to_the_bit() -> None:
    """Else a service takes a trained article for another one, and refuses it."""
    log = clear_log()
    assert log.profiles is not None
    assert log.article_profiles is not None
    whole = (clear_builder(), log.profiles.slice(0, 500), log.article_profiles)
    little = little_log()
    for builder, profiles, article_profiles in (
        whole,
        (little_builder(components=1), little.profiles, little.article_profiles),
    ):
        contexts, features = builder.users(profiles), builder.articles(article_profiles)
        assert profiles is not None
        assert article_profiles is not None
        found = np.array([builder.user(profile) for profile in profiles.to_pylist()])
        assert found.astype(np.float32).tobytes() == contexts.tobytes()
        assert (found == contexts).all()
        found = np.array([builder.article(profile) for profile in article_profiles.to_pylist()])
        assert found.tobytes() == features.tobytes()


def test_batches_are_scipy_s_product_and_a_softmax() -> None:
    builder, log = clear_builder(), clear_log()
    side = builder.article_side_
    raw = side.encoder.transform(log.article_profiles)
    powers = np.exp(raw @ side.membership_map.weights + side.membership_map.bias)
    wanted = np.column_stack([powers / powers.sum(axis=1, keepdims=True), np.ones(len(powers))])
    np.testing.assert_allclose(builder.articles(log.article_profiles), wanted, rtol=1e-12)


def test_a_builder_that_is_not_fitted_says_so() -> None:
    builder, log = ts.FeatureBuilder(), little_log()
    for use in (
        lambda: builder.user({}),
        lambda: builder.article({}),
        lambda: builder.users(log.profiles),
        lambda: builder.articles(log.article_profiles),
        lambda: builder.segments(log.profiles),
        lambda: builder.apply(log),
        lambda: builder.save("never"),
        lambda: builder.identity,
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()


def test_the_identity_follows_the_features(tmp_path: Path) -> None:
    path = tmp_path / "features.safetensors"
    builder = little_builder()
    builder.save(path)
    assert ts.FeatureBuilder.load(path).identity == builder.identity
    assert little_builder().identity == builder.identity
    assert len(builder.identity) == 16
    others = [little_builder(ridge=2.0), little_builder(components=1), little_builder(clusters=1)]
    assert len({builder.identity, *(other.identity for other in others)}) == 4


def test_a_log_keeps_the_identity_of_its_features(tmp_path: Path) -> None:
    builder, log = little_builder(), little_log()
    built = builder.apply(log)
    assert (log.feature_model, built.feature_model) == (None, builder.identity)
    built.write(tmp_path / "built")
    again = EventLog.read(tmp_path / "built")
    assert again.feature_model == again[:10].feature_model == builder.identity
    assert EventLog.concat([again, built]).feature_model == builder.identity
    other = little_builder(ridge=2.0).apply(log)
    with pytest.raises(FeatureModelMismatch, match=rf"{builder.identity}.*{other.feature_model}"):
        EventLog.concat([built, other])


def test_one_profile_gives_the_same_bits_in_every_process(tmp_path: Path) -> None:
    """Strings hash differently in each process: the order of a set must not reach the sums."""
    builder, file = clear_builder(), tmp_path / "features.safetensors"
    builder.save(file)
    table = clear_log().profiles
    assert table is not None
    profiles = table.slice(0, 50).to_pylist()
    read = (
        "import json, sys, topstory as ts; builder = ts.FeatureBuilder.load(sys.argv[1]); "
        "print([list(map(float.hex, builder.user(each))) for each in json.loads(sys.argv[2])])"
    )
    command = [sys.executable, "-c", read, str(file), json.dumps(profiles)]
    found = {
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    shuffled = [dict(reversed(each.items())) for each in profiles]
    assert len(found) == 1
    for one, other in zip(profiles, shuffled, strict=True):
        assert builder.user(one).tobytes() == builder.user(other).tobytes()


def test_a_saved_builder_loads_exactly(tmp_path: Path) -> None:
    path = tmp_path / "features.safetensors"
    batches = ts.FeatureBuilder(clusters=2, support=0.0, ridge=1.0, engine="serial")
    for builder, log in (
        (clear_builder(), clear_log()),
        (little_builder(components=1), little_log()),
        (little_builder(held_out=0.0), little_log()),
        (batches.fit_parts(lambda: [little_log()]), little_log()),
    ):
        builder.save(path)
        again = ts.FeatureBuilder.load(path)
        assert again.get_params() == builder.get_params()
        assert again.users(log.profiles).tobytes() == builder.users(log.profiles).tobytes()
        found, wanted = again.articles(log.article_profiles), builder.articles(log.article_profiles)
        assert found.tobytes() == wanted.tobytes()
        for name in ("history_", "n_iter_", "scored_on_", "log_loss_", "auc_"):
            assert getattr(again.model_, name) == getattr(builder.model_, name)
        np.testing.assert_array_equal(again.apply(log).users, builder.apply(log).users)


def test_a_file_that_is_no_builder_of_this_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "features.safetensors"
    with pytest.raises(ValueError, match="not fitted yet"):
        ts.FeatureBuilder().save(path)
    little_builder().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"version":"3"', b'"version":"9"'))
    with pytest.raises(ValueError, match="feature model format 9, but this topstory reads up to 4"):
        ts.FeatureBuilder.load(path)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ValueError, match="the checksum does not match"):
        ts.FeatureBuilder.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a safetensors file"):
        ts.FeatureBuilder.load(path)
    ts.policy("ucb", alpha=0.3).save(path)
    with pytest.raises(ValueError, match="not a topstory feature model"):
        ts.FeatureBuilder.load(path)


def test_unknown_categories_are_ignored_and_counted_and_fields_may_be_left_out() -> None:
    builder = little_builder()
    nobody = builder.user({})
    np.testing.assert_array_equal(builder.user({"gender": None, "likes": ["chess", "go"]}), nobody)
    np.testing.assert_array_equal(builder.user({"gender": "x"}), nobody)
    assert builder.unknown == {"likes": 2, "gender": 1}
    np.testing.assert_array_equal(
        builder.user({"likes": ["opera", "opera"]}), builder.user({"likes": ["opera"]})
    )


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"age": "9"}, "unknown field 'age'; a profile has gender, likes"),
        ({"gender": ["f"]}, r"'gender' must be one string, got \['f'\]"),
        ({"likes": "opera"}, "'likes' must be a list of strings, got 'opera'"),
        ({"likes": [3]}, "'likes' holds 3, not a string"),
        ({"likes": [["opera"], "tea"]}, "'likes' must be a list of strings"),
        ("opera", "a profile must be a dict of fields, got str"),
    ],
)
def test_a_profile_that_is_none_is_refused(profile: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        little_builder().user(profile)


@pytest.mark.parametrize(("changes", "message"), TEACHING_NOTHING)
def test_a_log_that_teaches_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ts.FeatureBuilder(clusters=2, support=0.0).fit(little_log(**changes))


def test_one_article_is_refused() -> None:
    log = EventLog.from_arrays(
        None,
        [["a"]],
        [0, 0],
        ["a", "a"],
        [0, 1],
        visitor=[0, 1],
        profiles={"likes": [["tea"], ["golf"]]},
        article_profiles={"tags": [["sport"]]},
    )
    with pytest.raises(ValueError, match="1 article shown"):
        ts.FeatureBuilder(clusters=2).fit(log)


def test_no_category_with_the_support_is_refused_before_the_fit() -> None:
    def never(step: Any) -> None:
        raise AssertionError("fitted")

    with pytest.raises(
        ValueError, match=r"no category of the users .*likes=golf, has 0\.5: choose"
    ):
        ts.FeatureBuilder(support=0.9).fit(little_log(), never)
    with pytest.raises(ValueError, match=r"no category of the articles .*, has 0\.5: choose"):
        ts.FeatureBuilder(support=0.0, article_support=0.9).fit(little_log(), never)
    strangers = {"gender": [None] * 40, "likes": [[]] * 40}
    with pytest.raises(ValueError, match="the profiles of the users are all empty"):
        ts.FeatureBuilder().fit(little_log(profiles=strangers), never)


def test_more_clusters_than_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="different rows make no 5 clusters; ask for fewer"):
        ts.FeatureBuilder(support=0.0).fit(little_log())


@pytest.mark.parametrize("bad", [{"distances": "far"}, {"clusters": 0}, {"components": -1}])
def test_bad_parameters_are_named(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        ts.FeatureBuilder(**bad).fit(little_log())


def test_components_stand_between_memberships_and_the_constant() -> None:
    builder, log = little_builder(components=1), little_log()
    contexts = builder.users(log.profiles)
    side = builder.user_side_
    assert side.projection is not None
    points = side.encoder.transform(log.profiles) @ side.projection
    assert contexts.shape == (40, 4)
    np.testing.assert_allclose(contexts[:, :2].sum(axis=1), 1.0, rtol=1e-6)
    first = np.linalg.svd(points - points.mean(axis=0))[2][0]
    along = (points - points.mean(axis=0)) @ first
    np.testing.assert_allclose(np.abs(contexts[:, 2]), np.abs(along / along.std()), atol=1e-4)
    np.testing.assert_allclose(
        builder.user({"gender": "f", "likes": ["opera", "tea"]}), contexts[3], atol=1e-6
    )


@pytest.mark.parametrize("name", ["local", "ray"])
def test_every_engine_builds_the_same_features(name: str) -> None:
    log = little_log()
    wanted, found = little_builder(max_iter=4), little_builder(max_iter=4, engine=name)
    np.testing.assert_allclose(found.users(log.profiles), wanted.users(log.profiles), atol=1e-6)
    np.testing.assert_allclose(
        found.articles(log.article_profiles), wanted.articles(log.article_profiles), atol=1e-6
    )


def test_a_builder_clones() -> None:
    builder = ts.FeatureBuilder(clusters=3, support={"likes": 0.2}, ridge=7.0)
    assert clone(builder).get_params() == builder.get_params()


def test_parts_of_different_logs_are_refused() -> None:
    log, builder = little_log(), ts.FeatureBuilder(clusters=2, support=0.0)
    other = little_log(profiles={"gender": ["f"] * 41, "likes": [["tea"]] * 41})
    with pytest.raises(ValueError, match="share its users"):
        builder.fit_parts(lambda: [log, other])
    with pytest.raises(ValueError, match="there are no parts"):
        builder.fit_parts(lambda: [])
    with pytest.raises(ValueError, match="passes must be at least 1"):
        builder.fit_parts(lambda: [log], passes=0)
    with pytest.raises(ValueError, match="no event was clicked"):
        builder.fit_parts(lambda: [little_log(payoff=np.zeros(2000))])
