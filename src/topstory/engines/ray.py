"""The engine that runs on a Ray cluster, or on this machine's own processes through Ray."""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, ClassVar

from topstory.engines.engine import Engine, Item, Out, ResultRef, Shared
from topstory.extras import require

QUEUED_PER_WORKER = 2
RETRIES = 5  # of a call whose worker or node died; one that kills so many kills the next
MIN_IN_FLIGHT = 100  # calls, at least
CONNECT_SECONDS = 5.0  # seconds for a cluster's port to open


class RayEngine(Engine):
    """Tasks of a Ray cluster; `shared` and what is kept live in its object store.

    Needs the extra: `pip install 'topstory[ray]'`. A session of Ray that runs already is used as
    it is; otherwise one is begun, here or at the cluster's address.

    Args:
        workers: how many tasks may run at once; by default as many as the cluster has cores.
        address: of a cluster, such as "auto" or "head:6379"; by default what RAY_ADDRESS says, or
            this machine.
    """

    name: ClassVar[str] = "ray"
    apart: ClassVar[bool] = True

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1 (None: one a core), got {workers!r}")
        require("ray")
        ray: Any = import_module("ray")  # its own types are partial
        if not ray.is_initialized():
            # "local" begins one of our own: without it, Ray joins whichever runs on this machine.
            address = address or os.environ.get("RAY_ADDRESS") or "local"
            _check_open(address)
            ray.init(
                address=address,
                num_cpus=workers if address == "local" else None,
                include_dashboard=False if address == "local" else None,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
        self._ray = ray
        self._call = ray.remote(_call).options(num_cpus=1, max_retries=RETRIES)
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._held: tuple[Any, Any] = (None, None)

    def map(
        self,
        function: Callable[[Item, Shared], Out],
        items: Iterable[Item | ResultRef[Item]],
        shared: Shared,
    ) -> Iterator[Out]:
        """The results; at most a few items are sent ahead of the one being waited for."""
        waiting: deque[Any] = deque()
        try:
            for reference in self._begun(function, items, shared):
                waiting.append(reference)
                if len(waiting) > QUEUED_PER_WORKER * self.workers:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            for reference in waiting:
                self._ray.cancel(reference)

    def finished(
        self, function: Callable[[Item, Shared], Out], items: Sequence[Item], shared: Shared
    ) -> Iterator[tuple[int, Out]]:
        """As they finish."""
        # Not all at once: `wait` checks every reference, on a core that workers need (2.8 s for
        # 1,500 at once, 2.2 s in turns). But enough of them to make an autoscaling cluster grow.
        most = max(MIN_IN_FLIGHT, (1 + QUEUED_PER_WORKER) * self.workers)
        places: dict[Any, int] = {}
        left = enumerate(self._begun(function, items, shared))
        try:
            while True:
                for place, reference in islice(left, most - len(places)):
                    places[reference] = place
                if not places:
                    return
                for reference in self._ray.wait(list(places), num_returns=1)[0]:
                    yield places.pop(reference), self._result(reference)
        finally:
            for reference in places:
                self._ray.cancel(reference)

    def keep(
        self, function: Callable[[Item, Shared], Out], items: Iterable[Item], shared: Shared
    ) -> list[ResultRef[Out]]:
        """The results, in the cluster's object store."""
        return [ResultRef(reference) for reference in self._begun(function, items, shared)]

    def _begun(
        self, function: Callable[[Any, Shared], Any], items: Iterable[Any], shared: Shared
    ) -> Iterator[Any]:
        if self._held[0] is not shared or shared is None:
            self._held = (shared, self._ray.put(shared))
        called = self._ray.put(function)
        for item in items:
            given = item.where if isinstance(item, ResultRef) else item
            yield self._call.remote(called, given, [self._held[1]])

    def _result(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # the error itself, not Ray's frame around it


def _check_open(address: str) -> None:
    """Fail at once if nothing listens there; Ray itself would retry for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return  # "local", "auto", or a name that Ray looks up
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(
            f"no Ray cluster answers at {address} ({error}); is its head running, and its port "
            "open to this machine? `ray start --head` prints the address; without one, Ray runs on "
            "this machine alone"
        ) from None


_unpacked: dict[str, Any] = {}  # of a worker: what its calls share


def _call(function: Callable[[Any, Any], Any], item: Any, held: list[Any]) -> Any:
    # Held in a list, Ray leaves it alone; unpacked once, a log is made ready once, not every call.
    key = held[0].hex()
    if key not in _unpacked:
        ray: Any = import_module("ray")
        shared = ray.get(held[0])
        if type(shared) is tuple:
            shared = tuple(ray.get(v.where) if isinstance(v, ResultRef) else v for v in shared)
        _unpacked.clear()
        _unpacked[key] = shared
    return function(item, _unpacked[key])
