"""Starts all workers, restarts one that dies, and ends them before the learner."""

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
from topstory.serving.workers.shared_memory.limits import SharedLimits
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.wire import Counted
from topstory.serving.workers.worker_handle import MakeLearner, WorkerHandle

log = logging.getLogger("topstory.serving")

MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0  # before a worker is restarted
HEALTHY_SECONDS = 30.0  # a worker that lived this long was healthy
START_SECONDS = 300.0  # the longest start: kernels may have to be compiled


class Supervisor(Collector):
    """Keeps all workers running."""

    def __init__(
        self, config: Config, listening: list[socket.socket], writer: Writer, limits: SharedLimits
    ) -> None:
        self._config, self._limits, self._requests = config, limits, RequestCounts()
        self._listening, self._shared = listening, [*writer.descriptors, limits.descriptor]
        self._port = listening[0].getsockname()[1]
        # First of all: they import what they need while the learner reads the journal.
        self.workers = [self._start(place) for place in range(len(listening))]
        self._keeping: list[asyncio.Task[None]] = []
        self.restarts = 0
        self._torn_reads = 0

    def _start(self, place: int) -> WorkerHandle:
        return WorkerHandle(place, [self._listening[place].fileno(), *self._shared])

    async def begin(self, make: MakeLearner, requests: RequestCounts, publisher: Publisher) -> None:
        """Connect to all, and wait until each is ready to answer requests."""
        self._make, self._requests, self._publisher = make, requests, publisher
        for worker in self.workers:
            await worker.talk(self._config, make, self._counted)
        for worker in self.workers:
            await _either(START_SECONDS, worker.ready, worker.gone)
            if worker.gone.is_set():
                status = await asyncio.to_thread(worker.process.wait)
                raise ChildProcessError(
                    f"worker {worker.place} ended with status {status} before it was ready"
                )
            if not worker.ready.is_set():
                raise ChildProcessError(
                    f"worker {worker.place} was not ready after {START_SECONDS:g} seconds"
                )
        self._keeping = [asyncio.create_task(self._keep(each.place)) for each in self.workers]
        self._keeping += [asyncio.create_task(self._watch(each.place)) for each in self.workers]

    async def _watch(self, place: int) -> None:
        """Kill the worker in this place if it hangs; `_keep` restarts it."""
        # Twice: if this process stood still, an answer may be there but not read yet.
        seconds = self._config.limits.worker_seconds / 2
        missed = 0
        while True:
            await asyncio.sleep(min(seconds, 1.0))
            worker = self.workers[place]
            missed = 0 if await worker.beat(seconds) else missed + 1
            if missed == 2 and worker is self.workers[place] and not worker.gone.is_set():
                missed = 0
                log.error(
                    "worker %d (process %d) does not answer; killing it", place, worker.process.pid
                )
                worker.process.kill()
                await worker.gone.wait()

    async def _keep(self, place: int) -> None:
        """Restart the worker in this place whenever it dies."""
        pause, since = MIN_PAUSE_SECONDS, monotonic()
        while True:
            worker = self.workers[place]
            await worker.gone.wait()
            self._listening[place].close()  # new connections go to the others
            status = await asyncio.to_thread(worker.process.wait)
            self._limits.connected(place, 0)
            self.restarts += 1
            healthy = monotonic() - since > HEALTHY_SECONDS
            pause = MIN_PAUSE_SECONDS if healthy else min(2 * pause, MAX_PAUSE_SECONDS)
            log.error(
                "worker %d (process %d) ended with status %d; restarting in %.1f s",
                *(place, worker.process.pid, status, pause),
            )
            await asyncio.sleep(pause)
            await self._start_again(place)
            since = monotonic()

    async def _start_again(self, place: int) -> None:
        while True:
            try:
                self._listening[place] = share(self._config.host, self._port)
                self.workers[place] = self._start(place)
                break
            except OSError as error:  # out of processes, memory or descriptors: try later
                self._listening[place].close()
                log.error("worker %d cannot be started: %s", place, error)
                await asyncio.sleep(MAX_PAUSE_SECONDS)
        worker = self.workers[place]
        try:
            await worker.talk(self._config, self._make, self._counted)
        except Exception:  # whatever it was: nobody else would restart it
            log.exception("worker %d cannot be reached", place)
            worker.process.kill()
            worker.gone.set()
            return
        await _either(START_SECONDS, worker.ready, worker.gone)
        if not worker.ready.is_set() and not worker.gone.is_set():
            log.error("worker %d was not ready after %g seconds", place, START_SECONDS)
            worker.process.kill()

    async def gather(self) -> None:
        """Have all report what they have counted."""
        await asyncio.gather(*(worker.count() for worker in self.workers))

    async def warm_up(self) -> None:
        """Have all load the kernels for a pool's first article."""
        await asyncio.gather(*(worker.warm_up() for worker in self.workers))

    async def end(self) -> None:
        """End all of them, once they have answered their open requests."""
        for task in self._keeping:
            task.cancel()
        for each in self._listening:  # new connections are refused, not kept waiting
            each.close()
        seconds = self._config.limits.shutdown_seconds + 2.0
        await asyncio.gather(*(worker.end(seconds) for worker in self.workers))

    def kill(self) -> None:
        """Kill those that are still running."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()

    def _counted(self, counted: Counted) -> None:
        add(counted, self._requests)
        self._torn_reads += counted.torn_reads

    def collect(self) -> Iterator[Metric]:
        """The metrics for Prometheus."""
        ready = sum(each.ready.is_set() and not each.gone.is_set() for each in self.workers)
        yield GaugeMetricFamily("topstory_workers", "workers that answer requests", value=ready)
        yield CounterMetricFamily(
            "topstory_worker_restarts", "workers that died or hung, restarted", value=self.restarts
        )
        yield CounterMetricFamily(
            *("topstory_torn_reads", "reads of shared memory repeated because it was overwritten"),
            value=self._torn_reads,
        )
        yield GaugeMetricFamily(
            *("topstory_publish_lag_records", "records learned but not yet published to workers"),
            value=self._publisher.behind,
        )
        staleness = self._publisher.staleness
        seen = HistogramMetricFamily(
            "topstory_staleness_seconds", "from learning a record to publishing it to workers"
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
