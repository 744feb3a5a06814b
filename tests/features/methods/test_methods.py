"""Every method makes features of profiles of any kinds, by the same rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.features.worlds import mixed_log

import topstory as ts
from topstory.features.description import describe
from topstory.features.methods.registry import METHODS


def built(method: str) -> ts.FeatureBuilder:
    return ts.FeatureBuilder(2, method=method, ridge=1.0, engine="serial")


@pytest.mark.parametrize("method", METHODS)
def test_a_method_takes_any_kinds_and_one_profile_as_a_table(method: str, tmp_path: Path) -> None:
    log = mixed_log()
    builder = built(method).fit(log)
    made = builder.apply(log)
    assert made.feature_model == builder.identity
    assert made.visitors is not None
    assert log.profiles is not None
    assert log.article_profiles is not None
    assert made.features is not None
    assert (made.visitors.contexts[:, -1] == 1).all()
    # What a service accepts by default.
    assert np.linalg.norm(made.visitors.contexts, axis=1).max() <= 1.5
    for number, profile in enumerate(log.profiles.to_pylist()):
        np.testing.assert_array_equal(builder.user(profile), made.visitors.contexts[number])
    for number, profile in enumerate(log.article_profiles.to_pylist()):
        np.testing.assert_array_equal(builder.article(profile), made.features[number])

    builder.save(tmp_path / "model")
    again = ts.FeatureBuilder.load(tmp_path / "model")
    assert (again.identity, again.method) == (builder.identity, method)
    np.testing.assert_array_equal(again.users(log.profiles), made.visitors.contexts)
    np.testing.assert_array_equal(again.articles(log.article_profiles), made.features)
    assert describe(again) == describe(builder)
    log.write(tmp_path / "log")
    assert built(method).fit_folder(tmp_path / "log").users(log.profiles).shape == (
        300,
        builder.user_side_.membership_map.dimension,
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_policy_learns_more_with_a_method_s_features_than_without(method: str) -> None:
    """Half of the users like the one half of the articles, so contexts are worth +60 % and more."""
    log = built(method).fit(mixed_log()).apply(mixed_log(20_000, seed=0))
    result = ts.replay(ts.policy("linucb-disjoint", alpha=0.2), log)
    assert result.deployment.relative_ctr is not None
    assert result.deployment.relative_ctr > 1.25


def test_direct_features_are_the_fields_themselves() -> None:
    builder = built("direct").fit(mixed_log())
    names = builder.user_side_.encoder.get_feature_names_out().tolist()
    x = dict(zip(names, builder.user({"is_subscriber": True, "device": "phone"}), strict=True))
    scale = 1 / np.sqrt(9)  # nine fields are used; the site is the same in all profiles
    assert x["is_subscriber=true"] == x["device=phone"] == np.float32(scale)
    assert (x["device=desk"], x["age"], x["constant"]) == (0.0, 0.0, 1.0)
    assert x["age=(missing)"] == np.float32(scale)


def test_direct_takes_any_payoff_and_articles_that_nobody_described() -> None:
    log = mixed_log(payoff=np.arange(4_000) % 7 - 3.0, article_profiles=None)
    builder = built("direct").fit(log)
    made = builder.apply(log)
    assert made.features is None
    assert ts.replay(ts.policy("linucb-disjoint"), made).learning.trials
    with pytest.raises(ValueError, match="this feature model has no article features"):
        builder.article({"title": "rain"})


def test_direct_refuses_what_would_be_too_wide_and_names_the_widest_fields() -> None:
    wide = {f"field{i}": [f"{i}-{user % 40}" for user in range(300)] for i in range(4)}
    with pytest.raises(
        ValueError, match=r"direct makes 160 numbers of a user's profile \(field0: 40, .*--support"
    ):
        built("direct").fit(mixed_log(profiles=wide))
    narrow = ts.FeatureBuilder(method="direct", support={"field0": 0.5}).fit(
        mixed_log(profiles={name: wide[name] for name in ("field0", "field1")})
    )
    assert narrow.user_side_.membership_map.dimension == 16 + 40 + 1


def test_an_unknown_method_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="method must be one of direct"):
        ts.FeatureBuilder(method="magic").fit(mixed_log())
    with pytest.raises(ValueError, match="method direct makes no clusters of users"):
        built("direct").fit(mixed_log()).segments(mixed_log().profiles)
