"""A log goes out and comes back the same, and the tools it is meant for can read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vowpalwabbit
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.events.formats.whole_logs import (
    assert_same_articles,
    assert_same_choices,
    assert_same_users,
    whole,
)

from topstory.events import EventLog, SparseContexts
from topstory.events.formats.event_parts import short_numbers
from topstory.events.formats.exporting import export
from topstory.events.formats.obd.write_obp import bandit_feedback


def made(
    events: int = 200, seed: int = 0, described: bool = True, recorded: bool = True,
    timed: bool = True, sparse: bool = False,
) -> EventLog:  # fmt: skip
    """A log with all that logs may have, or less."""
    random = np.random.default_rng(seed)
    ids = [f"article {i}" for i in range(6)]
    pools = [ids[:4], ids[1:], [ids[5]]]
    pool = random.integers(3, size=events)
    at = [int(random.integers(len(pools[p]))) for p in pool]
    users: Any = random.normal(size=(events, 3)).astype(np.float32)
    if sparse:
        ends = np.cumsum([0, *random.integers(1, 4, size=events)])
        on = np.concatenate([np.sort(random.permutation(9)[:n]) for n in np.diff(ends)])
        users = SparseContexts(ends.astype(np.int64), on.astype(np.int32), 9)
    propensity = random.uniform(0.01, 1, size=events) if recorded else None
    return EventLog.from_arrays(
        users,
        pools,
        pool,
        [pools[p][i] for p, i in zip(pool, at, strict=True)],
        random.normal(size=events),
        articles={key: random.normal(size=2) for key in ids} if described else None,
        timestamps=random.integers(10**15, size=events).view("M8[us]") if timed else None,
        propensity=propensity,
    )


KINDS = [{}, {"described": False}, {"recorded": False}, {"timed": False}, {"sparse": True}]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_log_comes_back_from_jsonl_to_the_bit(tmp_path: Path, kind: dict[str, bool]) -> None:
    log = made(**kind)
    out, articles = export(log, "jsonl", tmp_path / "week.jsonl")
    again = whole("jsonl", out, articles=articles)
    assert_same_choices(again, log)
    assert_same_users(again, log)
    assert_same_articles(again, log)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_choices_come_back_from_dsjson(tmp_path: Path, kind: dict[str, bool]) -> None:
    log = made(**kind)
    [out] = export(log, "dsjson", tmp_path / "week.dsjson")
    assert_same_choices(whole("dsjson", out), log)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_vectors_come_back_from_dsjson_too(tmp_path: Path, kind: dict[str, bool]) -> None:
    log = made(**kind)
    [out] = export(log, "dsjson", tmp_path / "week.dsjson")
    again = whole("dsjson", out, features="arrays")
    dense = [log.context(i) for i in range(len(log))]  # sparse ones are written out
    np.testing.assert_array_equal(np.asarray(again.users), np.array(dense, np.float32))
    for key, row in log.articles.items():
        np.testing.assert_array_equal(again.articles[key], row)


def test_vowpal_wabbit_learns_from_every_exported_event(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    users = random.random(2000) < 0.5
    shown = random.random(2000) < 0.5
    log = EventLog.from_arrays(
        np.column_stack([users, np.ones(2000)]),
        [["a", "b"]],
        np.zeros(2000, int),
        np.where(shown, "b", "a"),
        users == shown,  # half of the users like b, the others a
        propensity=np.full(2000, 0.5),
        timestamps=np.arange(2000),
    )
    [out] = export(log, "dsjson", tmp_path / "week.dsjson")
    arguments = f"--cb_explore_adf --dsjson -d {out} --epsilon 0.1 --interactions :: --quiet"
    workspace = vowpalwabbit.Workspace(arguments)
    assert workspace.get_weighted_examples() == len(log)
    # Chance earns 0.5 an event; who learned the rule from the features earns 0.95.
    assert -workspace.get_sum_loss() / len(log) > 0.85
    workspace.finish()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_open_bandit_pipeline_gets_its_dictionary(
    tmp_path: Path, kind: dict[str, bool]
) -> None:
    log = made(**kind)
    feedback = bandit_feedback(log)
    assert list(feedback) == [
        "n_rounds", "n_actions", "action", "position", "reward", "pscore", "context",
        "action_context",
    ]  # fmt: skip
    assert (feedback["n_rounds"], feedback["n_actions"]) == (200, 6)
    ids = np.array(log.article_ids, object)
    assert ids[feedback["action"]].tolist() == log.shown.tolist()
    np.testing.assert_array_equal(feedback["reward"].astype(np.float32), log.payoff)
    np.testing.assert_array_equal(feedback["pscore"].astype(np.float32), log.propensity)
    np.testing.assert_array_equal(feedback["context"], [log.context(i) for i in range(200)])
    assert feedback["action_context"].shape[0] == 6
    assert not feedback["position"].any()
    [out] = export(log, "obp", tmp_path / "week.npz")
    with np.load(out, allow_pickle=False) as file:
        for name, value in feedback.items():
            np.testing.assert_array_equal(file[name], value)
        assert tuple(file["article_ids"].tolist()) == log.article_ids


@given(arrays.arrays(np.float32, 20, elements=st.floats(width=32, allow_nan=False,
                                                        allow_infinity=False)))  # fmt: skip
def test_short_numbers_lose_no_bit(values: Any) -> None:
    text = [repr(value) for value in short_numbers(values).tolist()]
    again = np.array([float(each) for each in text]).astype(np.float32)
    np.testing.assert_array_equal(again.view(np.uint32), values.view(np.uint32))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_any_log_survives_the_journey(tmp_path_factory: Any, seed: int) -> None:
    log = made(events=seed % 5 + 1, seed=seed)
    folder = tmp_path_factory.mktemp("journey")
    out, articles = export(log, "jsonl", folder / "week.jsonl")
    again = whole("jsonl", out, articles=articles)
    assert_same_choices(again, log)
    assert_same_users(again, log)


@pytest.mark.parametrize("format", ["dsjson", "jsonl"])
def test_an_interrupted_export_leaves_the_old_files(tmp_path: Path, format: str) -> None:
    out, beside = tmp_path / f"week.{format}", tmp_path / "week.articles.jsonl"
    out.write_text("old")
    beside.write_text("old")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(made(), format, out, interrupt)
    assert out.read_text() == beside.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == sorted([out, beside])


def test_wrong_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"end its name in \.npz"):
        export(made(), "obp", tmp_path / "week.txt")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        export(made(), "dsjson", tmp_path)
    with pytest.raises(ValueError, match="there are r6a, obp, dsjson, jsonl"):
        export(made(), "csv", tmp_path / "week.csv")
