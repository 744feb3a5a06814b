"""What topstory 0.1 wrote is read as it was read then: services, logs, features, studies.

The files are in `tests/fixtures/written_by_0_1`; its README.md says what they are. What is expected
was found by the functions of this file with 0.1, and by the services themselves as they ran.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from tests.fixtures.written_by_0_1.make import Served

import topstory as ts
from topstory.cli import main
from topstory.serving.config.loading import read_config
from topstory.serving.state.recovery.data_folder import open_folder

WRITTEN = Path(__file__).parent / "fixtures" / "written_by_0_1"
SERVICES = ("disjoint", "egreedy-seg", "hybrid", "ucb")
LOGS = sorted(path.parent.relative_to(WRITTEN).as_posix() for path in WRITTEN.rglob("log.json"))
ADDED_SINCE = {"departed"}  # arrays of a model beside those of 0.1
FACTS = 6  # of an article in 0.1; a summary, a picture and when it came out were added later
STUDY: dict[str, Any] = {
    "policies": ["egreedy", "ucb", "linucb-disjoint"],
    "sizes": [1.0, 0.3],
    "epsilons": [0.1, 0.3],
    "alphas": [0.2, 0.6],
    "engine": "serial",
}


@cache
def expected() -> Any:
    """What 0.1 found in these files."""
    return json.loads((WRITTEN / "expected.json").read_text())


def told(service: str) -> Any:
    """What the service itself told just before it ended."""
    return json.loads((WRITTEN / "services" / service / "told.json").read_text())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all services and studies, and where this process is: their paths are relative."""
    for name in ("services", "studies"):
        shutil.copytree(WRITTEN / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- what is in a file, as JSON that can be compared --


def digests(arrays: Mapping[str, npt.NDArray[Any] | None]) -> dict[str, Any]:
    """The type, the shape and a hash of each."""
    return {
        name: None
        if array is None
        else [array.dtype.str, list(array.shape), sha256(array.tobytes()).hexdigest()]
        for name, array in sorted(arrays.items())
    }


def described(log: ts.EventLog) -> Any:
    """Everything in a log."""
    visitors, profiles = log.visitors, (log.profiles, log.article_profiles)
    columns: dict[str, npt.NDArray[Any] | None] = {
        "users": np.asarray(log.users),
        "pool": log.pool,
        "position": log.position,
        "payoff": log.payoff,
        "recorded propensity": log.recorded_propensity,
        "timestamps": log.timestamps,
        "pool offsets": log.pool_offsets,
        "pool members": log.pool_members,
        "article features": log.features,
        "visitors": None if visitors is None else visitors.number,
        "visitors' contexts": None if visitors is None else visitors.contexts,
    }
    return {
        # 0.1 said CTR of every payoff; these are not all 0 or 1.
        "log": repr(log).replace(", payoff ", ", CTR "),
        "articles": list(log.article_ids),
        "columns": digests(columns),
        "profiles": [
            None if table is None else sha256(json.dumps(table.to_pylist()).encode()).hexdigest()
            for table in profiles
        ],
    }


def recovered(folder: Path) -> Any:
    """The state that a start finds, in a folder that is where this process is."""
    opening = open_folder(read_config(folder / "topstory.toml", {}))
    opening.close()
    state = opening.state
    return {
        "pools": {
            name: {
                "policy": repr(pool.policy),
                "decisions": pool.policy.decisions,
                "taught": pool.taught,
                "slots": pool.policy.model.roster.ids,
                "arrays": digests(
                    {k: v for k, v in pool.policy.model.arrays().items() if k not in ADDED_SINCE}
                ),
                "tally": msgspec.to_builtins(pool.tally),
                "articles": {key: _facts_of_0_1(each) for key, each in pool.articles.items()},
            }
            for name, pool in state.pools.items()
        },
        "number": state.number,
        "fingerprint": state.fingerprint(),
        "config": state.config,
    }


def _facts_of_0_1(article: Any) -> Any:
    """An article as JSON, without the facts that came later, which are empty here."""
    found = msgspec.json.decode(msgspec.json.encode(article))
    assert found["facts"][FACTS:] == ["", "", None, None]
    assert not found["earlier"]
    del found["added"], found["earlier"]
    return {**found, "facts": found["facts"][:FACTS]}


def exported(folder: Path, out: Path, pools: list[str]) -> Any:
    """The journal as logs: all of it, and the uniform bucket alone."""
    found = {}
    for pool in pools:
        for part in ("all", "uniform"):
            command("export-journal", folder, out, "--pool", pool, "--part", part, "--unfinished")
            found[f"{pool}, {part}"] = described(ts.EventLog.read(out))
    return found


def transformed(builder: ts.FeatureBuilder, raw: ts.EventLog) -> Any:
    """What a feature model makes of the first users and articles: floats in hex."""
    assert raw.profiles is not None
    assert raw.article_profiles is not None
    users, articles = raw.profiles.slice(0, 20), raw.article_profiles.slice(0, 20)
    odd = {"gender": "never seen", "behaviours": ["never seen"]}
    whole = [*users.to_pylist(), odd, {}]
    tagged = [*articles.to_pylist(), {}]
    return {
        "parameters": builder.get_params(),
        "tables": [hexes(builder.users(users)), hexes(builder.articles(articles))],
        "short profiles": [
            [hexes(builder.user(short(each))) for each in whole],
            [hexes(builder.article(short(each))) for each in tagged],
        ],
        "whole profiles": [
            [hexes(builder.user(each)) for each in whole],
            [hexes(builder.article(each)) for each in tagged],
        ],
        "unknown": dict(builder.unknown),
    }


def short(profile: dict[str, Any]) -> dict[str, Any]:
    """With no more than one category in each field."""
    return {
        field: value[:1] if isinstance(value, list) else value for field, value in profile.items()
    }


def hexes(numbers: npt.NDArray[Any]) -> list[str]:
    """In hex, row after row."""
    return [float(number).hex() for number in numbers.ravel()]


def command(*words: object) -> None:
    """Run `topstory` in this process."""
    before, sys.argv = sys.argv, ["topstory", *map(str, words)]
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = before
    assert not ended.value.code


# -- services --


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_recovers_the_state_that_it_was_in(
    service: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here / "services" / service)
    found, wanted = recovered(Path()), expected()["services"][service]
    assert found["pools"] == wanted["pools"]
    assert told(service)["records"] == wanted["number"] == found["number"] - _noted(service)


def _noted(service: str) -> int:
    """How many records were added by opening it: a configuration with a new key is one."""
    journal = sqlite3.connect("data/journal.sqlite")
    added = journal.execute(
        "SELECT kind FROM journal WHERE number > ?", (told(service)["records"],)
    ).fetchall()
    journal.close()
    assert added in ([], [("Configured",)])
    return len(added)


@pytest.mark.parametrize("service", SERVICES)
def test_a_start_with_the_same_configuration_records_its_new_keys_once(
    service: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here / "services" / service)
    found, wanted = recovered(Path()), expected()["services"][service]["config"]
    assert _known_keys(found["config"], wanted) == wanted
    assert found["number"] - told(service)["records"] == _noted(service)
    again = recovered(Path())
    for key in ("number", "fingerprint", "config"):
        assert again[key] == found[key]


def _known_keys(config: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A configuration without the keys that came later."""
    return {
        key: _known_keys(config[key], value) if isinstance(value, dict) else config[key]
        for key, value in wanted.items()
    }


@pytest.mark.parametrize("service", SERVICES)
def test_a_journal_is_exported_as_the_same_logs(service: str, here: Path) -> None:
    wanted = expected()["services"][service]
    folder = here / "services" / service / "data"
    assert exported(folder, here / "log", list(wanted["pools"])) == wanted["exported"]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_goes_on_with_whom_it_knew(service: str, here: Path) -> None:
    """Its key, its articles, requests that are repeated, and ids of decisions, late or paid."""
    was = told(service)
    with Served(here / "services" / service, was["key"]) as served:
        for pool, articles in was["articles"].items():
            _same_articles(served.ask("GET", f"/v1/pools/{pool}/articles"), articles)
        for asked, answer in was["requests"]:
            assert served.ask("POST", "/v1/decide", asked) == answer
        for decision, payoff in was["paid"]:
            given = {"decision": decision, "payoff": payoff}
            assert served.ask("POST", "/v1/feedback", given)["repeated"]
            served.ask("POST", "/v1/feedback", given | {"payoff": 7.0}, status=409)
        for decision in was["unpaid"]:
            given = {"decision": decision, "payoff": 1.0}
            assert not served.ask("POST", "/v1/feedback", given)["repeated"]
        for decision in was["expired"]:
            served.ask("POST", "/v1/feedback", {"decision": decision, "payoff": 1.0}, status=410)
        made = served.ask("POST", "/v1/decide", {"user": [0.2, 0.3, 0.5, 1.0]})
        given = {"decision": made["decision"], "payoff": 1.0}
        assert not served.ask("POST", "/v1/feedback", given)["repeated"]
        assert served.ask("GET", "/v1/stats")["records"] >= was["records"] + len(was["unpaid"]) + 2
        assert served.end(signal.SIGTERM) == 0


def _same_articles(found: Any, wanted: Any) -> None:
    """To the bit, but for estimates: the last bits of a hybrid's depend on what was asked."""
    estimates: list[list[float | None]] = [[], []]
    for views, numbers in zip((found, wanted), estimates, strict=True):
        for view in views:
            for segment in view["segments"]:
                numbers += [segment.pop("estimate"), *(segment.pop("interval") or ())]
    assert [_known_keys(*pair) for pair in zip(found, wanted, strict=True)] == wanted
    assert estimates[0] == pytest.approx(estimates[1], rel=1e-9)


# -- logs and features --


@pytest.mark.parametrize("log", LOGS)
def test_a_log_is_read_to_the_bit(log: str) -> None:
    assert described(ts.EventLog.read(WRITTEN / log)) == expected()["logs"][log]


def test_every_log_is_there() -> None:
    assert list(expected()["logs"]) == LOGS


def test_a_feature_model_makes_the_same_of_the_same_profiles() -> None:
    """To the bit; but of one profile alone 0.1 made other last bits than of the same in a table."""
    builder = ts.FeatureBuilder.load(WRITTEN / "features.safetensors")
    found = transformed(builder, ts.EventLog.read(WRITTEN / "logs" / "raw"))
    wanted = dict(expected()["features"])
    for kind in ("short profiles", "whole profiles"):
        for ours, theirs in zip(found.pop(kind), wanted.pop(kind), strict=True):
            np.testing.assert_allclose(_floats(ours), _floats(theirs), rtol=1e-6)
    assert wanted.pop("parameters").items() <= found.pop("parameters").items()
    assert found == wanted
    # Policies and logs are made with this model by name: no later version may give it another.
    assert builder.identity == "5a07bb92e28f8be5"


def _floats(rows: list[list[str]]) -> npt.NDArray[np.float64]:
    return np.array([[float.fromhex(text) for text in row] for row in rows])


# -- studies --


@pytest.mark.parametrize("study", ["interrupted", "whole"])
def test_a_study_goes_on_where_it_was_and_repeats_no_run(study: str, here: Path) -> None:
    """It makes more runs than 0.1 did: three paths of each policy, and other ridges."""
    folder, log = here / "studies" / study, ts.EventLog.read(WRITTEN / "logs" / "uniform")
    before = _of_this_version(folder / "journal.jsonl")
    half = len(log) // 2
    found = ts.study(folder, tuning=log[:half], evaluation=log[half:], **STUDY)
    after = (folder / "journal.jsonl").read_bytes()
    assert after.startswith(before)
    made, recorded = _runs(after), _runs(before)
    assert made[: len(recorded)] == recorded
    keys = [(run["stage"], json.dumps(run["outcome"]["run"])) for run in made]
    assert len(keys) == len(set(keys))
    wanted = _runs((WRITTEN / "studies" / "whole" / "journal.jsonl").read_bytes())
    for run in wanted:
        # omniscient is cross-fitted since; versions do not mix in a folder otherwise.
        if run["stage"] == "tuning" and run["outcome"]["run"]["policy"] != "omniscient":
            assert run in made
    assert len(found.tuned) + len(found.evaluated) <= len(made)


def _of_this_version(journal: Path) -> bytes:
    """The file as if this version had begun it: another is refused, for what it might change."""
    first, rest = journal.read_bytes().split(b"\n", 1)
    heading = json.loads(first) | {"made_by": f"topstory {version('topstory')}"}
    journal.write_bytes(msgspec.json.encode(heading) + b"\n" + rest)
    return journal.read_bytes()


def _runs(journal: bytes) -> list[Any]:
    """All runs in order, but for how long they took, and sums by visitor, which came later."""
    lines = [json.loads(line) for line in journal.splitlines()]
    runs = [line for line in lines if line["type"] == "run"]
    for run in runs:
        del run["session"], run["elapsed"], run["outcome"]["seconds"]
        run["outcome"].pop("visitors", None)
        # Summed in another order since visitors are grouped: the last bit may differ.
        run["outcome"]["log"] = np.round(run["outcome"]["log"], 9).tolist()
    return runs
