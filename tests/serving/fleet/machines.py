"""A fleet of real processes, each with a network of its own to a real database; its visitors."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections import defaultdict
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Self

import numpy as np
import psycopg
from tests.serving.fleet.linearizability import Operation
from tests.serving.fleet.proxy import Proxy
from tests.serving.making import visitor
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.endpoints import ROLES
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest

KEY = "ts_of-all-machines"
ARTICLES = 4  # that stay; one more comes and goes
HASTY = {"lock_seconds": 0.5, "snapshot_seconds": 2.0}


def skewed(minutes: int) -> str:
    """Run in a process first: its clock is wrong."""
    return (
        "import time\nright = time.time_ns\n"
        f"time.time_ns = lambda: right() + {minutes} * 60 * 10**9\n"
        f"right_s = time.time\ntime.time = lambda: right_s() + {minutes} * 60"
    )


class Machine(Served):
    """A machine of a fleet; a learner alone says nothing until it learns."""

    def __init__(
        self, folder: Path, url: str, role: str, minutes: int = 0, **overrides: Any
    ) -> None:
        self.proxy, self.role = Proxy(url), role
        journal = {"url": self.proxy.url, **HASTY}
        digest = sha256(KEY.encode()).hexdigest()
        super().__init__(
            folder,
            skewed(minutes) if minutes else "",
            journal=journal,
            role=role,
            signing={"a": "ab" * 32},
            keys=[{"name": "all", "sha256": digest, "roles": list(ROLES)}],
            log_level="info",
            **overrides,
        )
        self.key = KEY

    def start(self) -> Self:
        if self.role != "learner":
            return super().start()
        with (self.folder / "stderr.txt").open("a") as errors:
            self.process = subprocess.Popen(
                [*self.command, "--config", str(self.config)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return self

    def learner(self) -> int:
        """The process that learns, or waits to."""
        assert self.process is not None
        return self.process.pid if self.role == "learner" else self.workers()[0].pid

    def is_ready_to_learn(self) -> bool:
        """Whether it waits to learn, with all in readiness."""
        said = self.errors()
        return said.rfind("ready to learn") > said.rfind("learning, epoch")


class Fleet:
    """Machines that share a database."""

    def __init__(self, url: str, machines: list[Machine]) -> None:
        self.url, self.machines = url, machines
        self.fronts = [each for each in machines if each.role != "learner"]
        self.learners = [each for each in machines if each.role != "front"]

    def __enter__(self) -> Self:
        try:
            for each in reversed(self.machines):  # learners first: front ends wait for one
                if each.role == "learner":
                    each.start()
            for each in self.fronts:
                each.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.machines:
            each.proxy.mend()
            if each.process is not None:
                each.process.send_signal(signal.SIGCONT)
                for child in each.workers():
                    child.resume()
                each.end()
            each.proxy.__exit__()

    def redirect(self, url: str) -> None:
        """The database is elsewhere from now on."""
        self.url = url
        for each in self.machines:
            each.proxy.redirect(url)

    def owner(self) -> Machine:
        """The machine that learns."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute("SELECT value FROM topstory.shared WHERE name = 'config'")
            ((config,),) = row.fetchall()
        return next(each for each in self.learners if str(each.data).encode() in bytes(config))

    def await_candidate(self) -> Machine:
        """Wait until another machine is ready to learn; the one that learns."""
        eventually(lambda: any(each.is_ready_to_learn() for each in self.learners), 120)
        return self.owner()

    def epoch(self) -> int:
        """Of the model that was published last."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            ((epoch,),) = connection.execute("SELECT epoch FROM topstory.model").fetchall()
            return int(epoch)

    def errors(self) -> str:
        return "\n".join(each.errors() for each in self.machines)


class Visitors:
    """Clients that decide and pay through any front end, and an editor; what they were told."""

    def __init__(self, fleet: Fleet, clients: int) -> None:
        self.fleet, self._clients = fleet, clients
        self.random = np.random.default_rng(3)
        self.acknowledged: dict[str, float] = {}
        self.uncertain: dict[str, float] = {}
        self.decided: set[str] = set()
        self.repeats = 0
        self.history: dict[str, list[Operation]] = defaultdict(list)
        self.over = False
        self._requests = count()

    def place_articles(self) -> None:
        front = self.fleet.fronts[0]
        with ts.Client(front.url, front.key, timeout=30) as client:
            for number in range(ARTICLES):
                client.put_article("front", f"article-{number}", article(number, "kept"))

    async def run(self, chaos: Any) -> None:
        tasks = [asyncio.create_task(self._visit()) for _ in range(self._clients)]
        tasks += [asyncio.create_task(self._edit(editor)) for editor in range(2)]
        try:
            await chaos
        finally:
            self.over = True
            await asyncio.gather(*tasks)

    def _front(self) -> Machine:
        return self.fleet.fronts[int(self.random.integers(len(self.fleet.fronts)))]

    async def _visit(self) -> None:
        while not self.over:
            front = self._front()
            with suppress(ConnectionError, ApiError, OSError):
                async with ts.AsyncClient(front.url, front.key, retries=0, timeout=3) as client:
                    await self._visit_once(client)
            await asyncio.sleep(0.01)

    async def _visit_once(self, client: ts.AsyncClient) -> None:
        user, request = visitor(self.random), f"r{next(self._requests)}"
        began = time.monotonic()
        made = await client.decide(user, request=request)
        if made.article == "guest":
            self.history["guest"].append(Operation("seen", "", began, time.monotonic()))
        self.decided.add(made.decision)
        self.uncertain[made.decision] = payoff = float(self.random.random() < 0.5)
        other = self._front()
        async with ts.AsyncClient(other.url, other.key, retries=0, timeout=3) as another:
            again = await another.decide(user, request=request)
            assert (again.decision, again.article) == (made.decision, made.article)
            self.repeats += 1
            await another.feedback(made.decision, payoff)
            self.acknowledged[made.decision] = self.uncertain.pop(made.decision)

    async def _edit(self, editor: int) -> None:
        """Put, remove and read an article through any front end."""
        for number in count():
            if self.over:
                return
            front, title = self._front(), f"{editor}-{number}"
            with suppress(ConnectionError, OSError):
                async with ts.AsyncClient(front.url, front.key, retries=0, timeout=12) as client:
                    await self._edit_once(client, title, remove=number % 3 == 2)
            await asyncio.sleep(0.1)

    async def _edit_once(self, client: ts.AsyncClient, title: str, remove: bool) -> None:
        called = time.monotonic()
        put = Operation("put", None if remove else title, called)
        self.history["guest"].append(put)
        place = len(self.history["guest"]) - 1
        try:
            if remove:
                await client.remove_article("front", "guest")
            else:
                await client.put_article("front", "guest", article(1, title))
        except ApiError as error:
            if error.status != 404:
                return
            put = Operation("get", None, called)  # there was nothing to remove
        self.history["guest"][place] = put._replace(returned=time.monotonic())
        called = time.monotonic()
        try:
            value = (await client.article("front", "guest")).title
        except ApiError as error:
            if error.status != 404:
                return
            value = None
        self.history["guest"].append(Operation("get", value, called, time.monotonic()))

    async def again(self) -> None:
        """What had no answer is sent once more."""
        front = self.fleet.fronts[0]
        async with ts.AsyncClient(front.url, front.key, timeout=20) as client:
            for decision, payoff in list(self.uncertain.items()):
                await client.feedback(decision, payoff)
                self.acknowledged[decision] = self.uncertain.pop(decision)


def article(number: int, title: str) -> ArticleRequest:
    return ArticleRequest(features=(number / 4, 1 - number / 4, 1.0), title=title)


def count_paid(url: str) -> int:
    """Payoffs in the journal."""
    with psycopg.connect(url, autocommit=True) as connection:
        ((found,),) = connection.execute(
            "SELECT count(*) FROM topstory.journal WHERE decision IS NOT NULL"
        ).fetchall()
        return int(found)
