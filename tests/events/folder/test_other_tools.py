"""DuckDB, polars and pandas read a log's files as they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.events.making import MAY_FIRST, uniform_log

from topstory.events import EventLog, SparseContexts

POOLS = [["sports", "politics", "science"], ["science", "arts"]]


@pytest.fixture(params=["dense", "sparse", "untimed"])
def log(request: pytest.FixtureRequest) -> EventLog:
    if request.param == "untimed":
        return uniform_log(3000, POOLS)
    features = {key: [float(len(key)), 1.0] for pool in POOLS for key in pool}
    log = uniform_log(3000, POOLS, articles=features, timestamps=MAY_FIRST + np.arange(3000) * 60.5)
    if request.param == "dense":
        return log
    on = sparse.csr_array(np.random.default_rng(0).random((3000, 9)) < 0.3)
    return EventLog.from_arrays(
        on, log.pools, log.pool, log.shown, log.payoff, log.articles, log.timestamps
    )


@pytest.fixture
def folder(log: EventLog, tmp_path: Path) -> Path:
    log.write(tmp_path / "log")
    return tmp_path / "log"


def by_article(log: EventLog) -> dict[str, Any]:
    """How often each article was shown, and its CTR."""
    return {
        key: (int((log.shown == key).sum()), pytest.approx(log.payoff[log.shown == key].mean()))
        for key in log.article_ids
    }


def test_duckdb_reads_it(log: EventLog, folder: Path) -> None:
    import duckdb

    def ask(query: str) -> list[tuple[Any, ...]]:
        rows: Any = duckdb.execute(query.format(f"'{folder}/events/*.parquet'")).fetchall()
        return list(rows)

    (row,) = ask("select avg(payoff), count(*), sum(propensity) from {}")
    assert row == pytest.approx((log.ctr, len(log), log.propensity.sum(dtype=float)))
    rows = ask("select shown, count(*), avg(payoff) from {} group by shown")
    assert {article: (shown, ctr) for article, shown, ctr in rows} == by_article(log)
    pools = ask(f"select articles from '{folder}/pools.parquet' order by pool")
    assert [pool for (pool,) in pools] == log.pools
    articles = ask(f"select * from '{folder}/articles.parquet'")
    assert [row[0] for row in articles] == list(log.article_ids)
    users = [user for (user,) in ask("select user from {}")]
    assert len(users) == len(log)
    if isinstance(log.users, SparseContexts):
        assert sum(map(len, users)) == len(log.users.indices)
    else:
        assert {len(user) for user in users} == {log.dimension}


def test_polars_reads_it(log: EventLog, folder: Path) -> None:
    import polars as pl

    events = pl.read_parquet(folder / "events/*.parquet")
    assert len(events) == len(log)
    assert events["payoff"].cast(pl.Float64).mean() == pytest.approx(log.ctr)
    shown = events.group_by(pl.col("shown").cast(pl.String)).agg(
        pl.len(), pl.col("payoff").cast(pl.Float64).mean()
    )
    assert {article: (count, ctr) for article, count, ctr in shown.iter_rows()} == by_article(log)
    pools = pl.read_parquet(folder / "pools.parquet").sort("pool")
    assert pools["articles"].to_list() == log.pools
    articles = pl.read_parquet(folder / "articles.parquet")
    assert articles["article"].to_list() == list(log.article_ids)
    if log.times is not None:
        assert events["timestamp"].dtype == pl.Datetime("us", "UTC")


def test_pandas_reads_it(log: EventLog, folder: Path) -> None:
    import pandas as pd

    events = pd.read_parquet(folder / "events")
    assert len(events) == len(log)
    assert events["payoff"].astype(float).mean() == pytest.approx(log.ctr)
    grouped = events.groupby("shown", observed=True)["payoff"]
    found = {key: (len(part), part.astype(float).mean()) for key, part in grouped}
    assert found == by_article(log)
    pools = pd.read_parquet(folder / "pools.parquet")
    assert [list(pool) for pool in pools["articles"]] == log.pools
    articles = pd.read_parquet(folder / "articles.parquet")
    assert list(articles["article"]) == list(log.article_ids)
    if log.times is not None:
        assert str(events["timestamp"].dtype) == "datetime64[us, UTC]"
