"""What a machine does: with a PostgreSQL journal it is one of a fleet, unless it is told otherwise.

What was promised of a single service holds when it is started the same way and is one of a fleet.
"""

from __future__ import annotations

import signal
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.serving.fleet.machines import KEY, count_paid
from tests.serving.making import config
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.endpoints import ROLES
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.upkeep.verification import verify

USER = (0.2, 0.3, 0.5, 1.0)
URL = "postgresql://db.example/topstory"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, "alone"),
        ({"workers": 2}, "alone"),
        ({"journal": {"url": URL}}, "all"),
        ({"journal": {"url": URL}, "workers": 2}, "alone"),
        ({"journal": {"url": URL}, "role": "alone"}, "alone"),
        ({"journal": {"url": URL}, "role": "front"}, "front"),
        ({"journal": {"url": URL}, "role": "learner"}, "learner"),
    ],
)
def test_a_machine_without_a_role_is_one_of_a_fleet_if_it_can_be(
    tmp_path: Path, given: dict[str, Any], used: str
) -> None:
    assert config(tmp_path, **given).used_role == used


def machine(folder: Path, url: str, **more: Any) -> Served:
    keys = [{"name": "all", "sha256": sha256(KEY.encode()).hexdigest(), "roles": list(ROLES)}]
    journal = {"url": url, "lock_seconds": 0.5}
    base: dict[str, Any] = {"policy": {"name": "ucb"}, "signing": {"a": "ab" * 32}}
    served = Served(folder, **{**base, "journal": journal, "keys": keys, **more})
    served.key = KEY
    return served


def test_a_single_service_becomes_one_of_a_fleet_and_a_single_one_again(
    tmp_path: Path, url: str
) -> None:
    """Started anew, in the same folder: every payoff of before is taken, and counts once."""
    alone = machine(tmp_path, url, role="alone")
    with alone, ts.Client(alone.url, alone.key) as client:
        client.put_article("front", "only", ArticleRequest())
        made = [client.decide(USER, request=f"r{number}").decision for number in range(6)]
        for each in made[:3]:
            client.feedback(each, 1)
    fleet = machine(tmp_path, url)
    with fleet, ts.Client(fleet.url, fleet.key) as client:
        assert [client.feedback(each, 1).repeated for each in made] == [True] * 3 + [False] * 3
        assert client.decide(USER, request="r0").decision == made[0]
        later = client.decide(USER).decision
        client.feedback(later, 1)
        eventually(lambda: count_paid(url) == 7)
    alone = machine(tmp_path, url, role="alone")
    with alone, ts.Client(alone.url, alone.key) as client:
        assert client.feedback(made[0], 1).repeated
        assert client.stats().pools["front"].payoff == 7
    assert "Traceback" not in fleet.errors()
    verify(url)


def test_a_standby_of_the_old_way_is_a_second_machine_of_the_fleet(
    tmp_path: Path, url: str
) -> None:
    one, two = machine(tmp_path / "one", url), machine(tmp_path / "two", url)
    two.options = ("--standby",)
    with one, two, ts.Client(two.url, two.key, timeout=30) as client:
        client.put_article("front", "only", ArticleRequest())
        made = [client.decide(USER).decision for _ in range(4)]
        client.feedback(made[0], 1)
        assert one.end(signal.SIGKILL) == -signal.SIGKILL
        for each in made:
            client.feedback(each, 1)
        eventually(lambda: count_paid(url) == 4, 60)
        assert client.stats().pools["front"].payoff == 4


def test_a_start_that_cannot_succeed_ends_with_one_sentence(tmp_path: Path, url: str) -> None:
    served = machine(tmp_path, url, policy={"start": str(tmp_path / "missing.safetensors")})
    ended = subprocess.run(
        [*served.command, "--config", str(served.config)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    said = [line for line in ended.stderr.splitlines() if line.startswith("topstory: ")]
    assert len(said) == 1
    assert "missing.safetensors" in said[0]
    assert "Traceback" not in ended.stderr


def test_an_operators_permission_reaches_the_learner(tmp_path: Path, url: str) -> None:
    """A journal that has lost its end is refused, until the operator accepts that."""
    served = machine(tmp_path, url)
    with served, ts.Client(served.url, served.key) as client:
        client.put_article("front", "only", ArticleRequest())
        client.decide(USER)
        eventually(lambda: decisions(url) == 1)
    with psycopg.connect(url, autocommit=True) as connection:
        forget(connection)
    with served:
        eventually(lambda: "the journal has lost records" in served.errors(), 60)
    served.options = ("--accept-lost-tail",)
    with served, ts.Client(served.url, served.key) as client:
        client.feedback(client.decide(USER).decision, 1)
        eventually(lambda: count_paid(url) == 1, 60)


def decisions(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT count(*) FROM topstory.journal WHERE kind = 'Decided'"
        ((found,),) = connection.execute(query).fetchall()
        return int(found)


def forget(connection: psycopg.Connection[Any]) -> None:
    """Lose the last batch, as a replica that was behind would have."""
    connection.execute("SET search_path = topstory")
    ((number, mark),) = connection.execute(
        "SELECT number, chain FROM journal WHERE chain IS NOT NULL AND number < "
        "(SELECT head FROM meta) ORDER BY number DESC LIMIT 1"
    ).fetchall()
    connection.execute("DELETE FROM journal WHERE number > %s", (number,))
    connection.execute("UPDATE meta SET head = %s, head_mark = %s", (number, mark))
