"""*What if* without its process: what it answers, and what becomes of an answer."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.serving.pages.in_process import Site, site

from topstory.serving import child_process
from topstory.serving.api.errors import ApiError
from topstory.serving.pages.studio import what_if, what_if_process
from topstory.serving.pages.studio.what_if_process import WhatIfPolicy, WhatIfQuestion, answer

PATH = "/studio/data/what-if"
ASKED = {"candidates": [{"name": "ucb", "parameters": {"alpha": 0.5}}, {"name": "random"}]}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("in-process") / "data"
    with site(folder, demo=True, context=6) as found:
        for _ in range(2):
            found.visit(400, 100)
        yield found


class Process:
    """In place of a process: it answers in this one, or says the lines it was given."""

    def __init__(self, said: list[bytes] | None = None) -> None:
        self._said, self._asked = said, b""
        self.returncode: int | None = None
        self.stdin = self.stdout = self
        self.killed = False

    async def start(self, *command: str, **options: Any) -> Process:
        assert list(command) == child_process.command(what_if.MODULE, spare=True)
        assert "PATH" in options["env"]
        assert "SOME_SECRET" not in options["env"]
        return self

    def write(self, question: bytes) -> None:
        self._asked += question

    def close(self) -> None:
        if self._said is None:
            words: list[dict[str, Any]] = []
            with warnings.catch_warnings(action="ignore"):  # as the process does
                answer(msgspec.json.decode(self._asked, type=WhatIfQuestion), words.append)
            self._said = [msgspec.json.encode(each) + b"\n" for each in words]

    async def readline(self) -> bytes:
        assert self._said is not None
        return self._said.pop(0) if self._said else b""

    def kill(self) -> None:
        self.killed = True

    async def wait(self) -> int:
        self.returncode = -9
        return self.returncode


def tried(
    found: Site, process: Process, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> dict[str, Any]:
    """What the page says once it is over."""
    monkeypatch.setattr(asyncio, "create_subprocess_exec", process.start)
    began = found.post(PATH, "promote", json=ASKED | options)
    assert (began.status_code, began.json()["state"]) == (200, "running")
    for _ in range(100):
        state = found.get(PATH, "read").json()
        if state["state"] != "running":
            return dict(state)
    raise AssertionError(state)


def test_a_trial_judges_every_candidate_and_what_it_trained_can_be_promoted(
    demo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "not for the process")
    process = Process()
    state = tried(demo, process, monkeypatch)
    assert (state["state"], state["pool"], state["events"]) == ("done", "front", 800)
    assert state["ctr"] == pytest.approx(200 / 800)
    labels = [(each["place"], each["label"]) for each in state["candidates"]]
    assert labels == [(0, "ucb, α 0.5"), (1, "random")]
    for each in state["candidates"]:
        low, high = each["interval"]
        assert low <= each["value"] <= high
        assert 0 < each["judged"] <= 800
    assert process.killed  # it is not left behind
    trained = demo.get(f"{PATH}/policy?place=0", "promote").json()["policy"]
    assert demo.get(f"{PATH}/policy?place=2", "promote").status_code == 409
    limits = msgspec.structs.replace(demo.service.config.limits, policy_bytes=1000)
    small = msgspec.structs.replace(demo.service.config, limits=limits)
    with monkeypatch.context() as limited:
        limited.setattr(demo.pages._what_if, "_config", small)
        assert demo.get(f"{PATH}/policy?place=0", "promote").status_code == 413
    policy = "/v1/pools/front/policy"
    before = demo.get(policy, "read").json()
    compared = demo.post(f"{policy}/comparison", "promote", json={"policy": trained}).json()
    assert 0 < compared["decisions"] <= 800
    assert demo.get(policy, "read").json() == before
    assert demo.ask("PUT", policy, "edit", json={"policy": trained}).status_code == 403
    changed = demo.ask("PUT", policy, "promote", json={"policy": trained, "note": "better"})
    assert changed.status_code == 200, changed.text
    after = demo.get(policy, "read").json()
    assert (before["policy"]["model"], after["policy"]["model"]) == ("hybrid", "context-free")
    assert demo.post(f"{policy}/revert", "promote").status_code == 200
    assert demo.get(policy, "read").json()["policy"] == before["policy"]
    wrong = demo.ask("PUT", policy, "promote", json={"policy": "bm90IGEgcG9saWN5"})
    assert wrong.status_code == 422


def test_a_replay_judges_policies_that_learn_as_they_go(
    demo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tried(demo, Process(), monkeypatch, method="replay")
    assert (state["state"], state["method"]) == ("done", "replay")
    for each in state["candidates"]:
        # 20 articles: a replay retains one visit in 20 of those that rejection leaves.
        assert 0 < each["judged"] < state["events"] / 10
        low, high = each["lift_interval"]
        assert low <= each["lift"] <= high
        # All who click came first: nobody can say what others would.
        assert each["interval"] is None
        assert any("no interval" in caution for caution in each["cautions"])
        assert each["logged"] == pytest.approx(state["ctr"])
        assert each["trained"] == 0
    assert demo.get(f"{PATH}/policy?place=1", "promote").status_code == 200


def test_the_form_begins_with_the_policy_in_use_and_only_what_can_be_tried(demo: Site) -> None:
    found = demo.get(PATH, "read").json()
    assert found["now"]["name"] == "linucb-hybrid"
    for name, each in found["choices"].items():
        body = {number["name"]: number["value"] for number in each["numbers"]}
        what_if.check(WhatIfPolicy(name, body))  # every default is a value that it takes


async def _no_memory(*command: str, **options: Any) -> Process:
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def test_a_process_that_fails_or_dies_is_said_in_words(
    demo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = tried(demo, Process([b'{"error": "no events"}\n']), monkeypatch)
    assert (failed["state"], failed["message"]) == ("failed", "no events")
    full = Process()
    monkeypatch.setattr(full, "start", _no_memory)
    refused = tried(demo, full, monkeypatch)
    assert refused["state"] == "failed"
    assert "could not be started: Cannot allocate memory" in refused["message"]
    died = tried(demo, Process([b'{"doing": "ucb", "done": 0.2}\n']), monkeypatch)
    assert died["state"] == "failed"
    assert "without an answer" in died["message"]
    assert demo.get(f"{PATH}/policy?place=0", "promote").status_code == 409


def test_only_one_trial_runs_and_cancelling_it_forgets_its_files(
    demo: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = Process([b'{"doing": "ucb", "done": 0.2}\n'] * 10_000)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", process.start)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: _made(tmp_path / "trial"))
    trial = what_if.WhatIf(demo.service.config)
    request = msgspec.convert(ASKED, what_if.WhatIfRequest)

    async def inside() -> dict[str, Any]:
        trial.start("front", request)
        assert (tmp_path / "trial").is_dir()
        with pytest.raises(ApiError, match="under way"):
            trial.start("front", request)
        return await trial.cancel()

    assert demo.runner.run(inside()) == {"state": "cancelled"}
    assert not (tmp_path / "trial").exists()
    demo.runner.run(trial.close())


def _made(folder: Path) -> str:
    folder.mkdir()
    return str(folder)


def test_the_process_answers_a_question_on_standard_input_in_lines(
    demo: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = demo.service.config.data

    def said(question: WhatIfQuestion) -> list[Any]:
        out = BytesIO()
        asked = SimpleNamespace(buffer=BytesIO(msgspec.json.encode(question)))
        with monkeypatch.context() as streams, warnings.catch_warnings():
            streams.setattr(sys, "stdin", asked)
            streams.setattr(sys, "stdout", SimpleNamespace(buffer=out))
            what_if_process.main()
        return [msgspec.json.decode(line) for line in out.getvalue().splitlines()]

    *steps, last = said(WhatIfQuestion(data, "front", (WhatIfPolicy("random"),), str(tmp_path)))
    done = [each["done"] for each in steps]
    assert done == sorted(done)
    assert 0 <= done[0] <= done[-1] <= 1
    assert last["result"]["events"] >= 800
    assert (tmp_path / "0.safetensors").is_file()
    *_, wrong = said(WhatIfQuestion(data, "nowhere", (WhatIfPolicy("random"),), str(tmp_path)))
    assert "no pool 'nowhere'" in wrong["error"]
