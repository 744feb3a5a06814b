"""All workers: started together, started again when one dies, ended before the learner."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from time import monotonic

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from topstory.serving.config.schema import Config
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import share
from topstory.serving.workers.counts import add
from topstory.serving.workers.shared_memory.double_buffer import Writer
from topstory.serving.workers.shared_memory.limits import Board
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.wire import Counted
from topstory.serving.workers.worker_handle import MakeLearner, Member

log = logging.getLogger("topstory.serving")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before one that died is started again
SOUND = 30.0  # seconds: one that lived so long was sound
STARTING = 300.0  # seconds until it is ready, at most: the compiler may be needed first


class Group(Collector):
    """The workers."""

    def __init__(
        self, config: Config, listening: list[socket.socket], writer: Writer, board: Board
    ) -> None:
        self._config, self._board, self._requests = config, board, RequestCounts()
        self._listening, self._shared = listening, [*writer.descriptors, board.descriptor]
        self._port = listening[0].getsockname()[1]
        # Before anything else: they import what they need while the learner reads the journal.
        self.members = [self._start(place) for place in range(len(listening))]
        self._keeping: list[asyncio.Task[None]] = []
        self.restarts = 0
        self._torn = 0

    def _start(self, place: int) -> Member:
        return Member(place, [self._listening[place].fileno(), *self._shared])

    async def begin(self, make: MakeLearner, requests: RequestCounts, publisher: Publisher) -> None:
        """Talk to all, until each is ready to answer requests."""
        self._make, self._requests, self._publisher = make, requests, publisher
        for member in self.members:
            await member.talk(self._config, make, self._counted)
        for member in self.members:
            await _either(STARTING, member.ready, member.gone)
            if member.gone.is_set():
                status = await asyncio.to_thread(member.process.wait)
                raise ChildProcessError(
                    f"worker {member.place} ended with status {status} before it began"
                )
            if not member.ready.is_set():
                raise ChildProcessError(
                    f"worker {member.place} was not ready after {STARTING:g} seconds"
                )
        self._keeping = [asyncio.create_task(self._keep(m.place)) for m in self.members]

    async def _keep(self, place: int) -> None:
        """Start another one whenever one dies."""
        pause, since = FIRST_PAUSE, monotonic()
        while True:
            member = self.members[place]
            await member.gone.wait()
            self._listening[place].close()  # new connections go to the others
            status = await asyncio.to_thread(member.process.wait)
            self._board.connected(place, 0)
            self.restarts += 1
            pause = FIRST_PAUSE if monotonic() - since > SOUND else min(2 * pause, LONGEST_PAUSE)
            log.error(
                "worker %d (process %d) ended with status %d; another one starts in %.1f s",
                *(place, member.process.pid, status, pause),
            )
            await asyncio.sleep(pause)
            await self._start_again(place)
            since = monotonic()

    async def _start_again(self, place: int) -> None:
        while True:
            try:
                self._listening[place] = share(self._config.host, self._port)
                self.members[place] = self._start(place)
                break
            except OSError as error:  # no process, no memory, no descriptor: perhaps later
                self._listening[place].close()
                log.error("worker %d cannot be started: %s", place, error)
                await asyncio.sleep(LONGEST_PAUSE)
        member = self.members[place]
        try:
            await member.talk(self._config, self._make, self._counted)
        except Exception:  # whatever it was, nobody else would start another one
            log.exception("worker %d cannot be talked to", place)
            member.process.kill()
            member.gone.set()
            return
        await _either(STARTING, member.ready, member.gone)
        if not member.ready.is_set() and not member.gone.is_set():
            log.error("worker %d was not ready after %g seconds", place, STARTING)
            member.process.kill()

    async def gather(self) -> None:
        """Have all tell what they have counted."""
        await asyncio.gather(*(member.count() for member in self.members))

    async def look(self) -> None:
        """Have all load the kernels for a pool's first article."""
        await asyncio.gather(*(member.look() for member in self.members))

    async def end(self) -> None:
        """End all of them; what they were asked is answered first."""
        for task in self._keeping:
            task.cancel()
        for each in self._listening:  # who comes now is refused, not kept waiting
            each.close()
        seconds = self._config.limits.shutdown_seconds + 2.0
        await asyncio.gather(*(member.end(seconds) for member in self.members))

    def kill(self) -> None:
        """Those that are still there, now."""
        for member in self.members:
            if member.process.poll() is None:
                member.process.kill()
                member.process.wait()

    def _counted(self, told: Counted) -> None:
        add(told, self._requests)
        self._torn += told.again

    def collect(self) -> Iterator[Metric]:
        """What Prometheus sees of it."""
        ready = sum(each.ready.is_set() and not each.gone.is_set() for each in self.members)
        yield GaugeMetricFamily("topstory_workers", "that answer requests", value=ready)
        yield CounterMetricFamily(
            "topstory_worker_restarts", "workers that died", value=self.restarts
        )
        yield CounterMetricFamily(
            *("topstory_torn_reads", "decisions scored again, for the memory was overwritten"),
            value=self._torn,
        )
        yield GaugeMetricFamily(
            *("topstory_publish_lag_records", "learned, but not seen by workers yet"),
            value=self._publisher.behind,
        )
        staleness = self._publisher.staleness
        seen = HistogramMetricFamily(
            "topstory_staleness_seconds", "from a record's being learned to workers' seeing it"
        )
        seen.add_metric([], staleness.buckets(), staleness.total)
        yield seen


async def _either(seconds: float, *events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
