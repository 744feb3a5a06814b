"""Raw profiles become the raw feature vectors of §5.2.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from topstory.features import (
    BilinearLogistic,
    Categories,
    Encoder,
    SoftClusters,
    Support,
    UnitLength,
)

PROFILES = {
    "gender": ["f", "m", None, "f"],
    "likes": [["golf", "tea", "golf"], ["tea"], [], ["opera"]],
}


@pytest.mark.parametrize(
    "estimator", [Support(0.0), UnitLength(), SoftClusters(2, restarts=1), BilinearLogistic()]
)
def test_what_takes_numbers_keeps_scikit_learn_s_contract(estimator: Any) -> None:
    check_estimator(estimator, on_skip=None)


def rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """A dict for each row, without the fields that are unknown."""
    made = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [{name: value for name, value in row.items() if value} for row in made]


@pytest.mark.parametrize("table", [dict, pd.DataFrame, pl.DataFrame, pa.table, rows])
def test_profiles_come_from_any_table(table: Any) -> None:
    wanted = [[1, 0, 1, 0, 1], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 0, 1, 0]]
    assert Categories().fit(table(PROFILES)).transform(table(PROFILES)).toarray().tolist() == wanted


def test_dicts_may_leave_a_field_out_and_must_not_have_another() -> None:
    encoder = Categories().fit(PROFILES)
    assert encoder.transform([{"gender": "m"}, {}]).toarray().tolist() == [[0, 1, 0, 0, 0], [0] * 5]
    assert encoder.transform([{"likes": ["tea"]}]).toarray().tolist() == [[0, 0, 0, 0, 1]]
    with pytest.raises(ValueError, match="unknown field 'age'"):
        encoder.transform([{"gender": "m"}, {"age": "3"}])


def test_unknown_categories_are_ignored_and_counted() -> None:
    encoder = Categories().fit(PROFILES)
    matrix, unknown = encoder.encode({"gender": ["x", None], "likes": [["tea", "?"], ["!"]]})
    assert matrix.toarray().tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]
    assert unknown == {"gender": 1, "likes": 2}


def test_a_category_is_kept_by_its_support_among_users() -> None:
    encoder = Encoder(support={"gender": 0.5, "likes": 0.3}).fit(PROFILES)
    assert encoder.get_feature_names_out().tolist() == ["gender=f", "likes=tea", "constant"]
    assert [(f.field, f.kept, f.dropped) for f in encoder.report()] == [
        ("gender", 1, 1),
        ("likes", 1, 2),
    ]
    assert Encoder(support=0.0).fit(PROFILES).n_features_out_ == 6
    nothing = Encoder(support=1.0).fit(PROFILES)
    assert nothing.transform(PROFILES).toarray().tolist() == [[1.0]] * 4


@given(
    st.lists(
        st.tuples(st.sampled_from(["f", "m", None]), st.sets(st.sampled_from("abcdef"))),
        min_size=1,
        max_size=20,
    ),
    st.booleans(),
)
def test_each_part_has_unit_length_and_the_constant_is_last(rows: Any, apart: bool) -> None:
    profiles = {
        "gender": pa.array([gender for gender, _ in rows], pa.string()),
        "likes": pa.array([sorted(likes) for _, likes in rows], pa.list_(pa.string())),
    }
    encoder = Encoder(support=0.0, apart=apart).fit(profiles)
    found = encoder.transform(profiles).toarray()
    names = encoder.get_feature_names_out().tolist()
    for row, (gender, likes) in zip(found, rows, strict=True):
        one = [f"gender={gender}"] if gender else []
        many = [f"likes={word}" for word in likes]
        wanted = dict.fromkeys(names, 0.0) | {"constant": 1.0}
        for part in (one, many) if apart else (one + many,):
            wanted |= {name: 1 / np.sqrt(len(part)) for name in part}
        np.testing.assert_allclose(row, [wanted[name] for name in names], rtol=1e-6)


def test_indices_take_four_bytes() -> None:
    found = Encoder(support=0.0).fit(PROFILES).transform(PROFILES)
    assert found.indices.dtype == found.indptr.dtype == np.int32
    assert found.data.dtype == np.float32


def test_the_steps_make_a_pipeline_and_clone() -> None:
    steps = make_pipeline(Categories(), Support(0.5), UnitLength())
    found = clone(steps).fit_transform(PROFILES)
    assert isinstance(found, sparse.csr_array)
    assert found.toarray().shape == (4, 3)
    assert steps.fit(PROFILES).get_feature_names_out().tolist() == [
        "gender=f",
        "likes=tea",
        "constant",
    ]
    assert clone(Encoder(support={"likes": 0.2})).support == {"likes": 0.2}


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ({**PROFILES, "age": ["1"] * 4}, "unknown field 'age'; a profile has gender, likes"),
        ({"gender": ["f"]}, "no field 'likes'"),
        ({"gender": [["f"]], "likes": [["tea"]]}, "field 'gender' must hold one string"),
        ({"gender": ["f"], "likes": ["tea"]}, "field 'likes' must hold a list of strings"),
    ],
)
def test_a_table_of_other_fields_is_refused(profiles: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Encoder().fit(PROFILES).transform(profiles)


def test_bad_thresholds_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown field 'age'"):
        Encoder(support={"age": 0.1}).fit(PROFILES)
    with pytest.raises(ValueError, match=r"support must lie between 0 \(keep all\) and 1, got 2"):
        Encoder(support=2.0).fit(PROFILES)
    with pytest.raises(ValueError, match=r"threshold must lie between 0 .* and 1, got 2\.0$"):
        Support(threshold=[0.5, 2.0]).fit(np.eye(2))
    with pytest.raises(ValueError, match="at least one row"):
        Encoder().fit({"gender": pa.array([], pa.string())})
