"""Profiles of any kinds as numbers: each field beside scikit-learn's own transformer."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)
from tests.features.worlds import mixed_profiles

from topstory.features.fields.profile_encoder import ProfileEncoder

Floats = npt.NDArray[np.float64]
STYLES = ("scaled", "bins", "splines")


def block(encoder: ProfileEncoder, table: Any, field: str) -> Floats:
    """The field's own columns, as long as they are before the fields are put together."""
    names = [str(name).split("=")[0] for name in encoder.get_feature_names_out()]
    found = encoder.transform(table).toarray().astype(float) / encoder.scale_
    return np.asarray(found[:, np.array(names) == field])


def same(one: Any, other: Any) -> bool:
    return bool((one != other).nnz == 0)


def column(field: str) -> npt.NDArray[np.object_]:
    return np.array(mixed_profiles()[field].to_pylist(), dtype=object).reshape(-1, 1)


@pytest.mark.parametrize("numbers", STYLES)
def test_a_profile_gives_the_bits_of_its_row_of_a_table(numbers: str) -> None:
    table = mixed_profiles()
    encoder = ProfileEncoder(numbers=numbers).fit(table)
    matrix, ignored = encoder.encode(table)
    assert not ignored
    for number, profile in enumerate(table.to_pylist()):
        (starts, indices, values), _ = encoder.row(profile)
        row = matrix[[number]]
        assert starts.tolist() == [0, row.nnz]
        np.testing.assert_array_equal(indices, row.indices)
        np.testing.assert_array_equal(values, row.data)
    assert same(encoder.transform(table.to_pylist()), matrix)


def test_splines_are_those_of_scikit_learn() -> None:
    table = mixed_profiles()
    values = np.array([value for (value,) in column("age") if value is not None]).reshape(-1, 1)
    spline = SplineTransformer(n_knots=4, degree=2, knots="quantile", extrapolation="constant")
    found = block(ProfileEncoder(numbers="splines").fit(table), table, "age")
    there = np.array([value is not None for (value,) in column("age")])
    np.testing.assert_allclose(found[there, :-1], spline.fit_transform(values), atol=1e-6)
    np.testing.assert_allclose(found[~there], [[0, 0, 0, 0, 0, 1]] * int((~there).sum()), atol=1e-6)
    encoder = ProfileEncoder(numbers="splines").fit({"age": [1.0, 2.0, 2.0, 2.0, 2.0, 9.0]})
    ends = encoder.transform({"age": [-1e9, 1.0, 9.0, 1e9]}).toarray()
    assert (ends[0] == ends[1]).all()
    assert (ends[2] == ends[3]).all()


@pytest.mark.parametrize("numbers", STYLES)
def test_no_profile_is_longer_than_1_beside_the_constant(numbers: str) -> None:
    encoder = ProfileEncoder(numbers=numbers).fit(mixed_profiles())
    other = mixed_profiles(seed=1).to_pylist()
    other += [{"age": 1e300, "spent": -1e300, "likes": list("abcdefgh")}, {}]
    found = encoder.transform(other).toarray().astype(float)
    assert (found[:, -1] == 1.0).all()
    assert np.linalg.norm(found[:, :-1], axis=1).max() <= 1 + 1e-6


def test_categories_are_one_hot_as_scikit_learn_has_it() -> None:
    table, values = mixed_profiles(), column("country")
    values[values == None] = "zz"  # noqa: E711 (missing is a category of its own, and the last)
    theirs = OneHotEncoder(
        min_frequency=0.01, handle_unknown="infrequent_if_exist", sparse_output=False
    ).fit_transform(values)
    ours = block(ProfileEncoder().fit(table), table, "country")
    # Ours: de, fr, us, (other), (missing); theirs has its infrequent ones last.
    np.testing.assert_allclose(ours[:, [0, 1, 2, 4, 3]], theirs, atol=1e-6)


def test_numbers_are_standardised_as_scikit_learn_has_it() -> None:
    table, age, spent = mixed_profiles(), *(column(f).astype(float) for f in ("age", "spent"))
    encoder = ProfileEncoder().fit(table)
    for field, values in (("age", age), ("spent", np.log1p(spent))):  # the latter has a long tail
        wanted = np.clip(StandardScaler().fit_transform(values) / 2, -1, 1).ravel()
        ours = block(encoder, table, field)
        gone = np.isnan(wanted)
        np.testing.assert_allclose(ours[~gone, 0], wanted[~gone], atol=1e-6)
        assert (ours[gone] == [0, 1]).all() or np.allclose(ours[gone], [0, 1], atol=1e-6)
    reports = {report.field: report for report in encoder.report()}
    assert reports["spent"].encoding == "logarithm, standardised"


def test_ranges_are_those_of_scikit_learn() -> None:
    table, values = mixed_profiles(), column("age").astype(float)
    there = ~np.isnan(values).ravel()
    theirs = KBinsDiscretizer(
        5, encode="onehot-dense", quantile_method="averaged_inverted_cdf"
    ).fit_transform(values[there])
    ours = block(ProfileEncoder(numbers="bins").fit(table), table, "age")
    np.testing.assert_allclose(ours[there, :5], theirs, atol=1e-6)
    np.testing.assert_allclose(ours[~there], np.eye(6)[[5] * int((~there).sum())], atol=1e-6)


def test_text_is_scikit_learn_s_latent_semantic_analysis() -> None:
    table, texts = mixed_profiles(), column("about").ravel()
    there = np.array([text is not None for text in texts])
    steps = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2), TruncatedSVD(4, random_state=0), Normalizer()
    )
    theirs = steps.fit_transform(texts[there])
    ours = block(ProfileEncoder(text=4).fit(table), table, "about")
    np.testing.assert_allclose(ours[there], theirs, atol=1e-5)
    assert not ours[~there].any()


def test_a_field_without_end_is_hashed_as_scikit_learn_has_it() -> None:
    table = mixed_profiles()
    hasher = FeatureHasher(16, input_type="string", alternate_sign=False)
    theirs = hasher.transform(column("city").tolist()).toarray()
    encoder = ProfileEncoder(support={"city": 0.1}).fit(table)
    np.testing.assert_allclose(block(encoder, table, "city"), theirs, atol=1e-6)
    found = encoder.transform([{"city": "Ulm"}]).toarray()[0]  # new, and yet somewhere
    assert np.count_nonzero(found) > np.count_nonzero(encoder.transform([{}]).toarray()[0])


def test_every_field_says_how_it_is_used() -> None:
    reports = {report.field: report for report in ProfileEncoder().fit(mixed_profiles()).report()}
    assert list(reports) == mixed_profiles().column_names
    said = {name: (each.encoding, each.note) for name, each in reports.items()}
    assert said["site"] == ("not used", "the same in all profiles")
    assert said["city"][1].endswith("rarer categories and new ones share 16 columns, by a hash")
    assert said["country"] == (
        "one-hot",
        "1 rarer category and new ones share one column; missing is a category of its own",
    )
    assert said["about"][0] == "7 words → 6 components"
    assert said["is_subscriber"] == ("1 if true", "missing has a column of its own")
    assert said["joined"][0] == "standardised"


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ({"age": "31"}, "'age' must be a number, got '31'"),
        ({"age": True}, "'age' must be a number, got True"),
        ({"age": float("inf")}, "'age' must be a finite number, got inf"),
        ({"age": 10**400}, "'age' must be a finite number"),
        ({"is_subscriber": "false"}, "'is_subscriber' must be true or false, got 'false'"),
        ({"is_subscriber": 0}, "'is_subscriber' must be true or false, got 0"),
        ({"joined": "yesterday"}, "'joined' must be a date such as 2009-05-01"),
        ({"joined": 3}, "'joined' must be a date"),
        ({"country": 49}, "'country' must be one string, got 49"),
        ({"likes": "a"}, "'likes' must be a list of strings, got 'a'"),
        ({"likes": ["a", None]}, "'likes' must be a list of strings"),
        ({"likes": [["a"]]}, "'likes' must be a list of strings"),
        ({"about": ["rain"]}, "'about' must be text"),
        ({"about": "x", "shoe": 44}, "unknown field 'shoe'; a profile has country, device, age"),
        (["de"], "a profile must be a dict of fields, got list"),
    ],
)
def test_a_value_of_another_kind_is_named(profile: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ProfileEncoder().fit(mixed_profiles()).row(profile)


@pytest.mark.parametrize(
    "moment",
    [
        "2009-05-01",
        "2009-05-01T00:00:00Z",
        "2009-05-01T02:00:00+02:00",
        date(2009, 5, 1),
        datetime(2009, 5, 1),
        datetime(2009, 5, 1, tzinfo=UTC),
    ],
)
def test_a_date_may_be_written_in_several_ways(moment: Any) -> None:
    encoder = ProfileEncoder().fit(mixed_profiles())
    wanted = encoder.transform(
        pa.table({**_nothing(encoder), "joined": [datetime(2009, 5, 1, tzinfo=UTC)]})
    )
    (_, indices, values), _ = encoder.row({"joined": moment})
    np.testing.assert_array_equal(indices, wanted.indices)
    np.testing.assert_array_equal(values, wanted.data)
    assert same(encoder.transform([{"joined": moment}]), wanted)


def test_unknown_categories_are_ignored_and_counted() -> None:
    encoder = ProfileEncoder().fit(mixed_profiles())
    _, ignored = encoder.row({"device": "watch", "likes": ["a", "x", "y", "x"]})
    assert ignored == {"device": 1, "likes": 2}
    profiles: list[dict[str, Any]] = [{"device": "watch"}, {"likes": ["x", "y", "x"]}]
    assert encoder.encode(profiles)[1] == {"device": 1, "likes": 2}


def test_what_it_learned_can_be_written_as_json_and_arrays() -> None:
    table = mixed_profiles()
    for numbers in STYLES:
        encoder = ProfileEncoder(numbers=numbers).fit(table)
        arrays: dict[str, npt.NDArray[Any]] = {}
        text = json.dumps(encoder.described("users", arrays))
        again = ProfileEncoder.restored(json.loads(text), arrays)
        assert same(again.transform(table), encoder.transform(table))
        assert again.report() == encoder.report()


def test_tables_with_other_fields_or_kinds_are_refused() -> None:
    encoder = ProfileEncoder().fit({"age": [1, 2], "country": ["de", "fr"]})
    with pytest.raises(ValueError, match="no field 'country'; a profile has age, country"):
        encoder.transform({"age": [1]})
    with pytest.raises(ValueError, match="'age' must hold number"):
        encoder.transform({"age": ["old"], "country": ["de"]})
    with pytest.raises(NotFittedError):
        clone(encoder).transform({"age": [1], "country": ["de"]})
    with pytest.raises(ValueError, match="numbers must be one of scaled, bins, splines, got 'log'"):
        ProfileEncoder(numbers="log").fit({"age": [1]})
    with pytest.raises(ValueError, match="support of 'age' must lie between 0"):
        ProfileEncoder(support={"age": 2.0}).fit({"age": [1]})


def _nothing(encoder: ProfileEncoder) -> dict[str, Any]:
    return {field.name: pa.nulls(1) for field in encoder.fields_}
