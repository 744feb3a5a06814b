"""A log is what was given, or an error that names the row."""

import pickle
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.events.making import MAY_FIRST, columns, same, uniform_log

from topstory.events import EventLog
from topstory.events.columns import positions

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shown": ["b", "c", "d"]}, r"row 1: shown article 'c' is not in its pool \(pool 0\)"),
        ({"shown": ["b", "z", "d"]}, r"row 1: unknown article 'z' was shown; list it in pool 0"),
        ({"shown": ["b", "a"]}, r"shown must hold one article id for each of the 3 rows.* got 2"),
        ({"shown": [1.5, 2, 3]}, r"row 0: shown: article id 1.5 is not a string; pass str\(id\)"),
        ({"shown": np.array([1.5, 2, 3])}, r"row 0: shown: article id 1.5 is not a string"),
        ({"shown": np.array([1, 2, 3])}, r"row 0: unknown article '1' was shown"),
        ({"shown": ["b", 7, "d"]}, r"row 1: unknown article '7' was shown"),
        ({"shown": ["b", True, "d"]}, r"row 1: shown: article id True is not a string"),
        ({"shown": ["b", None, "d"]}, r"row 1: shown article None is not an id"),
        ({"shown": [b"b", b"a", b"d"]}, r"row 0: shown: article id b'b' is not a string"),
        ({"users": [[0.2, 1.0], [NAN, 1.0], [0.1, 1.0]]}, r"row 1: user feature 0 is nan"),
        ({"users": [[0.2, 1.0], [0.7, 1.0], [0.1, -INF]]}, r"row 2: user feature 1 is -inf"),
        ({"users": [[0.2, 1.0], [1e39, 1.0], [0.1, 1.0]]}, r"row 1: user feature 0 is 1e\+39"),
        ({"users": [0.2, 0.7, 0.1]}, r"users must be 2-D.* got shape \(3,\)"),
        ({"users": 1.0}, r"users must be 2-D.* got shape \(\)"),
        ({"users": np.ones((3, 0))}, r"users must have at least one feature"),
        ({"users": [[1.0], [1.0, 2.0], [3.0]]}, r"users must be one array, got rows of different"),
        ({"users": [["x"], ["y"], ["z"]]}, r"users must be numbers, got dtype <U1"),
        ({"users": np.ones((2, 2))}, r"pool must hold one value for each of the 2 rows of users"),
        ({"payoff": [1, 0, NAN]}, r"row 2: payoff is nan, not a finite number"),
        ({"payoff": [1, INF, 0]}, r"row 1: payoff is inf"),
        ({"payoff": [1, 0]}, r"payoff must hold one value for each of the 3 rows"),
        ({"payoff": ["1", "0", "0"]}, r"payoff must be numbers"),
        ({"propensity": [0.5, 0.0, 0.1]}, r"row 1: propensity 0.0 is outside \(0, 1\]"),
        ({"propensity": [0.5, 0.5, 1.5]}, r"row 2: propensity 1.5 is outside \(0, 1\]"),
        ({"propensity": [0.5, 0.5, 1e-60]}, r"row 2: propensity 1e-60 is outside \(0, 1\]"),
        ({"propensity": [NAN, 0.5, 0.5]}, r"row 0: propensity is nan"),
        ({"propensity": [0.5]}, r"propensity must hold one value for each of the 3 rows"),
        ({"pool": [0, 2, 1]}, r"row 1: pool 2 does not exist; there are 2 pools"),
        ({"pool": [0, 0, -1]}, r"row 2: pool -1 does not exist"),
        ({"pool": [0.0, 0.0, 1.0]}, r"pool must be whole numbers, got dtype float64"),
        ({"pool": [0, 0]}, r"pool must hold one value for each of the 3 rows"),
        ({"pools": [["a", "b"], ["b", "c", "d", "b"]]}, r"pool 1 lists article 'b' twice"),
        ({"pools": [["a", "b"], []]}, r"pool 1 is empty"),
        ({"pools": [["a", "b"], ["b", 7.5, "d"]]}, r"pool 1: article id 7.5 is not a string; pass"),
        ({"pools": [["a", "b"], ["b", ""]]}, r"pool 1: article id '' is empty"),
        ({"pools": [["a", "b"], ["b", "\ud800"]]}, r"pool 1: article id .* cannot be written as"),
        ({"pools": [["a", "b"], "bcd"]}, r"pool 1 is the string 'bcd'; pass a list"),
        ({"pools": [["a", "b"], None]}, r"pool 1 is None; pass a list"),
        ({"articles": {"a": [1.0], "b": [1.0], "c": [1.0]}}, r"pool 1 lists unknown article 'd'"),
        (
            {"articles": {key: [1.0] for key in "abc"} | {"d": [NAN]}},
            r"article 'd': feature 0 is nan",
        ),
        (
            {"articles": {key: [1.0] for key in "abc"} | {"d": [1, 2]}},
            r"'d' has 2 features but 'a' h",
        ),
        (
            {"articles": {key: [1.0] for key in "abc"} | {"d": None}},
            r"article 'd' has no features but",
        ),
        ({"articles": dict.fromkeys("abcd", 1.0)}, r"features of article 'a' must be 1-D"),
        ({"articles": {1.5: [1.0]}}, r"articles: article id 1.5 is not a string; pass str\(id\)"),
        ({"timestamps": [1, 2]}, r"timestamps must hold one value for each of the 3 rows"),
        ({"timestamps": [1.0, NAN, 2.0]}, r"row 1: timestamp is nan"),
        ({"timestamps": np.array([1, 2, "NaT"], "M8[s]")}, r"row 2: timestamp is NaT"),
        ({"timestamps": [1, 2, 1_241_136_000_000]}, r"row 2: .* divide milliseconds by 1000"),
        ({"timestamps": ["1", "2", "3"]}, r"timestamps must be unix seconds or datetime64"),
        ({"timestamps": [datetime.now(UTC)] * 3}, r"timestamps must be unix seconds or datetime64"),
    ],
)
def test_a_mistake_is_an_error_that_names_it(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EventLog.from_arrays(**columns(**changes))


def test_columns_have_their_documented_names_types_and_shapes() -> None:
    log = EventLog.from_arrays(**columns(timestamps=[5, 6, 7]))
    assert isinstance(log.users, np.ndarray)
    assert log.users.dtype == np.float32
    assert log.users.flags.c_contiguous
    columns_of_events = [log.pool, log.position, log.payoff]
    assert [str(column.dtype) for column in columns_of_events] == ["int32", "uint16", "float32"]
    assert log.position.tolist() == [1, 0, 2]
    assert log.shown.tolist() == ["b", "a", "d"]
    assert log.shown_index.tolist() == [1, 0, 3]
    assert log.pools == [["a", "b"], ["b", "c", "d"]]
    assert log.pool_offsets.tolist() == [0, 2, 5]
    assert log.pool_offsets.dtype == np.int64
    assert log.pool_members.tolist() == [0, 1, 1, 2, 3]
    assert log.pool_members.dtype == np.int32
    assert log.pool_sizes.tolist() == [2, 3]
    assert log.article_ids == ("a", "b", "c", "d")
    assert log.dimension == 2
    assert log.ctr == pytest.approx(1 / 3)
    assert log.propensity.tolist() == pytest.approx([1 / 2, 1 / 2, 1 / 3])
    assert log.recorded_propensity is None
    assert log.context(1).tolist() == pytest.approx([0.7, 1.0])
    assert log.context(1).dtype == np.float64


@pytest.mark.parametrize(
    "shown",
    [
        ("b", "a", "d"),
        np.array(["b", "a", "d"]),
        np.array(["b", "a", "d"], dtype=object),
        np.array(["b", "a", "d"], dtype=np.dtypes.StringDType()),
        pa.array(["b", "a", "d"]),
        pa.array(["b", "a", "d"], pa.large_string()),
        pa.array(["b", "a", "d"]).dictionary_encode(),
        pa.chunked_array([["b"], ["a", "d"]]),
        pa.chunked_array(
            [pa.array(["b"]).dictionary_encode(), pa.array(["a", "d"]).dictionary_encode()]
        ),
    ],
    ids=lambda shown: (
        f"{type(shown).__name__}-{getattr(shown, 'type', getattr(shown, 'dtype', ''))}"
    ),
)
def test_shown_may_come_in_any_form_of_text(shown: Any) -> None:
    assert same(EventLog.from_arrays(**columns(shown=shown)), EventLog.from_arrays(**columns()))


def test_searching_sorted_pairs_finds_what_the_table_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = [[f"{a}" for a in range(p, p + 1 + p % 7)] for p in range(50)]
    log = uniform_log(500, pools)
    monkeypatch.setattr(positions, "MAX_TABLE_ENTRIES", 0)
    assert same(uniform_log(500, pools), log)
    with pytest.raises(ValueError, match="row 1: shown article 'c' is not in its pool"):
        EventLog.from_arrays(**columns(shown=["b", "c", "d"]))


def test_a_row_beyond_the_first_block_is_named() -> None:
    rows = (1 << 20) + 5
    payoff = np.zeros(rows)
    payoff[rows - 1] = NAN
    with pytest.raises(ValueError, match=f"row {rows - 1}: payoff is nan"):
        EventLog.from_arrays(
            np.ones((rows, 1)), [["a"]], np.zeros(rows, int), np.full(rows, "a"), payoff
        )


def test_a_log_may_be_empty() -> None:
    log = EventLog.from_arrays(np.empty((0, 3)), [], [], [], [])
    assert len(log) == 0
    assert np.isnan(log.ctr)
    assert log.dimension == 3
    assert list(log) == []
    assert log.pools == []
    assert log.propensity.shape == (0,)
    assert repr(log) == "<EventLog: 0 events, 0 articles, 0 pools, untimed, CTR nan>"


def test_articles_in_no_pool_are_kept_and_order_is_the_mapping_s() -> None:
    features = {key: [float(i), 1.0] for i, key in enumerate("zdcba")}
    log = EventLog.from_arrays(**columns(articles=features))
    assert log.article_ids == tuple("zdcba")
    assert log.features is not None
    assert log.features.dtype == np.float64
    assert {
        key: value.tolist() for key, value in log.articles.items() if value is not None
    } == features
    assert log.shown.tolist() == ["b", "a", "d"]


def test_a_log_s_own_articles_make_the_same_log() -> None:
    for articles in (None, {key: [0.5] for key in "abcd"}):
        log = EventLog.from_arrays(**columns(articles=articles))
        assert same(EventLog.from_arrays(**columns(articles=log.articles)), log)


def test_articles_without_features_map_to_none() -> None:
    log = EventLog.from_arrays(**columns())
    assert dict(log.articles) == dict.fromkeys("abcd")
    assert log.features is None


def test_nothing_in_a_log_can_be_written_to() -> None:
    log = EventLog.from_arrays(
        **columns(
            articles={key: [1.0] for key in "abcd"}, timestamps=[1, 2, 3], propensity=[0.1] * 3
        )
    )
    for same_log in (log, log[1:], pickle.loads(pickle.dumps(log))):
        for array in (
            *(same_log.users, same_log.pool, same_log.position, same_log.payoff),
            *(same_log.recorded_propensity, same_log.features, same_log.articles["a"]),
            *(same_log.pool_offsets, same_log.pool_members, same_log.pool_sizes),
        ):
            assert isinstance(array, np.ndarray)
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    with pytest.raises(TypeError):
        # Ignored: the mistake under test.
        log.articles["e"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        # Ignored: the mistake under test.
        log.payoff = log.payoff  # type: ignore[misc]


def test_pickling_keeps_a_log_to_the_bit() -> None:
    log = uniform_log(20, [["a", "b"], ["c"]], timestamps=np.arange(20))
    assert same(pickle.loads(pickle.dumps(log)), log)


def test_a_writeable_array_is_copied_and_a_read_only_one_is_shared() -> None:
    users = np.ones((3, 2), np.float32)
    copied = EventLog.from_arrays(**columns(users=users))
    users[0, 0] = 7
    assert copied.context(0)[0] == 1
    assert users.flags.writeable
    users.flags.writeable = False
    shared = EventLog.from_arrays(**columns(users=users))
    assert isinstance(shared.users, np.ndarray)
    assert np.shares_memory(shared.users, users)


def test_propensities_of_a_uniform_log_are_dropped() -> None:
    assert (
        EventLog.from_arrays(**columns(propensity=[1 / 2, 1 / 2, 1 / 3])).recorded_propensity
        is None
    )
    log = EventLog.from_arrays(**columns(propensity=[1 / 2, 1 / 2, 0.33]))
    assert log.recorded_propensity is log.propensity
    assert log.propensity.tolist() == pytest.approx([0.5, 0.5, 0.33])


def test_a_timed_uniform_log_of_six_features_takes_at_most_40_bytes_an_event() -> None:
    events = 100_000
    log = uniform_log(
        events, [[f"{i}" for i in range(20)]], timestamps=MAY_FIRST + np.arange(events)
    )
    assert log.nbytes / len(log) <= 40


def test_a_pool_of_more_than_65536_articles_widens_positions() -> None:
    for size, dtype in ((65_536, np.uint16), (65_537, np.int32)):
        pool = [f"{i}" for i in range(size)]
        log = EventLog.from_arrays(np.ones((1, 1)), [pool], [0], [pool[-1]], [0])
        assert log.position.dtype == dtype
        assert log[0].shown == pool[-1]


@pytest.mark.parametrize("shown", [[7, 8, 7], (7, 8, 7), np.array([7, 8, 7]), ["7", 8, "7"]])
def test_whole_numbers_may_be_ids(shown: Any) -> None:
    log = EventLog.from_arrays(
        np.ones((3, 1)), [[7, 8], np.array([8, 7])], [0, 0, 1], shown, [1, 0, 0],
        articles={7: [1.0], 8: [2.0]},
    )  # fmt: skip
    assert log.shown.tolist() == ["7", "8", "7"]
    assert log.pools == [["7", "8"], ["8", "7"]]
    assert list(log.articles) == ["7", "8"]
