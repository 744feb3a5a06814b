"""After an exclusion the state is to the bit what it would be without the excluded records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import run as run_command
from tests.serving.making import Made, add_articles, config, visitor
from tests.serving.processes import as_toml

import topstory as ts
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.connect import own_journal
from topstory.serving.journal.records import Decided, Entry, Excluded, Paid
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.recovery import Starts
from topstory.serving.state.state import State
from topstory.serving.state.state_copy import StateCopy
from topstory.serving.upkeep.excluding import exclude


async def visit(service: Service, random: np.random.Generator, key: str, who: str) -> None:
    """One visit by a caller's key; the payoff is reported by another one's."""
    asked: Awaited[Decision] = Awaited()
    service.front.ask(DecideRequest(user=visitor(random), visitor=who), asked, key)
    made = await asked.answer
    if random.random() < 0.5:
        paid: Awaited[Acknowledged] = Awaited()
        report = FeedbackRequest(decision=made.decision, payoff=1.0)
        service.front.pay(report, paid, f"{key}-feedback")
        await paid.answer


def begun(settings: Config) -> int:
    """A folder with visits by two keys; returns the journal's time halfway."""
    made = Made(settings)
    random = np.random.default_rng(3)

    async def work() -> int:
        service = made.service
        await add_articles(service)
        half = 0
        for number in range(120):
            key = "evil" if number % 3 == 0 else "web"
            await visit(service, random, key, f"visitor-{number % 7}")
            if number == 60:
                half = service.clock.now() + 1
                made.folder.snapshots.write(StateCopy.of(service.state))
        await service.commits.drain()
        return half

    try:
        return asyncio.run(work())
    finally:
        made.crash()


def without(settings: Config, leave_out: Callable[[Entry, Decided | None], bool]) -> State:
    """The state of a journal that never had some records."""
    journal = own_journal(settings)
    try:
        kept = [each for each in journal.read() if not leave_out(*each)]
    finally:
        journal.close()
    state = State(settings.context)
    state.apply(
        [each for each in kept if not isinstance(each[0].record, Excluded)],
        Starts(Path(settings.data) / "start").policy,
    )
    state.number = kept[-1][0].number
    return state


def opened(settings: Config) -> State:
    made = Made(settings)
    made.crash()
    return made.folder.state


@pytest.mark.parametrize("by", ["key", "feedback key", "visitor", "time"])
def test_an_exclusion_undoes_exactly_what_it_names(by: str, tmp_path: Path) -> None:
    settings = config(tmp_path / "data")
    half = begun(settings)
    whole = opened(settings).fingerprint()
    digest = opened_digest(settings, "visitor-3")

    def left_out(entry: Entry, decided: Decided | None) -> bool:
        record = entry.record
        shown = record if isinstance(record, Decided) else decided
        if shown is None:
            return False
        if by == "key":
            return shown.key == "evil"
        if by == "feedback key":
            return isinstance(record, Paid) and record.key == "evil-feedback"
        if by == "visitor":
            return shown.visitor == digest
        return entry.at >= half

    report = {
        "key": lambda: exclude(settings, key="evil"),
        "feedback key": lambda: exclude(settings, key="evil-feedback"),
        "visitor": lambda: exclude(settings, visitor="visitor-3"),
        "time": lambda: exclude(settings, since=as_datetime(half)),
    }[by]()
    assert report.record is not None
    assert report.decisions + report.payoffs > 10
    expected = without(settings, left_out)
    state = opened(settings)
    assert state.fingerprint() == expected.fingerprint() != whole
    # So it stays: with a snapshot of the new state, and after a second exclusion.
    made = Made(settings)
    made.folder.snapshots.write(StateCopy.of(made.folder.state))
    made.crash()
    assert opened(settings).fingerprint() == state.fingerprint()
    assert exclude(settings, key="nobody").record is None
    assert exclude(settings, until=as_datetime(half)).record is not None
    early = decisions_before(settings, half)

    def left_out_twice(entry: Entry, decided: Decided | None) -> bool:
        record = entry.record
        number = record.decision if isinstance(record, Paid) else entry.number
        known = isinstance(record, Decided | Paid)
        return left_out(entry, decided) or (known and (entry.at < half or number in early))

    assert opened(settings).fingerprint() == without(settings, left_out_twice).fingerprint()


def decisions_before(settings: Config, at: int) -> set[int]:
    journal = own_journal(settings)
    try:
        found = [entry for entry, _ in journal.read() if entry.at < at]
    finally:
        journal.close()
    return {entry.number for entry in found if isinstance(entry.record, Decided)}


def opened_digest(settings: Config, who: str) -> bytes:
    made = Made(settings)
    made.crash()
    return made.service.deciders["front"].traffic.digest(who)


def test_the_command_excludes_and_says_what(tmp_path: Path) -> None:
    settings = config(tmp_path / "data")
    begun(settings)
    path = tmp_path / "topstory.toml"
    path.write_text(as_toml({"data": settings.data, "context": settings.context}))
    result = run_command("exclude", "--config", path, "--key", "evil", "--json")
    report = json.loads(result.output)
    assert report["decisions"] == 40
    assert opened(settings).pools["front"].policy.decisions < 80
    assert "Nothing to exclude" in run_command("exclude", "--config", path, "--key", "no").output
    run_command("exclude", "--config", path, status=2)
    run_command("exclude", "--config", path, "--since", "yesterday", status=2)
    held = Made(settings)
    result = run_command("exclude", "--config", path, "--key", "web", status=1)
    assert "another process serves from this folder" in " ".join(result.output.split())
    held.crash()


def test_an_export_leaves_out_what_was_excluded(tmp_path: Path) -> None:
    """A decision with its event; a payoff as if none had come."""
    settings = config(tmp_path / "data")
    begun(settings)
    exclude(settings, key="evil")
    exclude(settings, key="web-feedback")
    done = run_command("export-journal", settings.data, tmp_path / "log", "--unfinished")
    said = " ".join(done.output.split())
    assert "Wrote 80 events" in said
    assert "left out 40 decisions that an operator excluded" in said
    assert "payoffs that an operator excluded" in said
    log, state = ts.EventLog.read(tmp_path / "log"), opened(settings)
    tally = state.pools["front"].tally
    assert len(log) == sum(map(sum, tally.shows)) == 80
    assert sum(event.payoff for event in log) == sum(map(sum, tally.payoff)) == 0
    exclude(settings, since=as_datetime(0))
    run_command("export-journal", settings.data, tmp_path / "no", "--unfinished", status=1)
    assert not (tmp_path / "no").exists()
