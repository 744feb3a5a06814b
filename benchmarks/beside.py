"""What a decision waits for beside heavy reads: contexts of 200 numbers and 1,000 articles.

One connection asks for decisions, one after the other, while another reads, or the service saves
its state. With as many articles as the limits allow for such contexts a decision alone takes some
hundredths of a second.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep

import httpx

from benchmarks.measuring import say
from benchmarks.overload import served
from benchmarks.servers import Target
from benchmarks.tables import Section, Table

ARTICLES, D = 1_000, 200
READERS = 20  # of single articles, at the same time
READS = {
    "nothing": (),
    "`/v1/stats`": ("/v1/stats",),
    "`/metrics`": ("/metrics",),
    "the list of articles": ("/v1/pools/front/articles",),
    f"{READERS} readers of an article each": ("/v1/pools/front/articles/a1",) * READERS,
}
LEAST_SECONDS, SNAPSHOT_SECONDS = 5.0, 20.0


def run(quick: bool) -> Section:
    """Ask and read; a row for each kind of read."""
    articles, d, least = (50, 50, 1.0) if quick else (ARTICLES, D, LEAST_SECONDS)
    saved_every = 1.0 if quick else SNAPSHOT_SECONDS
    say(f"serving {articles} articles with contexts of {d} numbers")
    figures: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        more = f"[journal]\nsnapshot_seconds = {saved_every}\n"
        target = served(stack, folder, articles, d, more)
        for name, paths in READS.items():
            say(f"decisions beside {name}")
            figures[name] = _beside(target, d, paths, least)
        say("decisions beside snapshots")
        figures["snapshots"] = _beside(target, d, (), 1.5 * saved_every)
    say("")
    rows = [
        (
            *(name, f"{each['seconds']:,.1f}", f"{each['bytes'] / 1e6:,.1f}"),
            *(f"{each['made']:,.0f}", f"{1000 * each['p50']:,.0f}", f"{1000 * each['worst']:,.0f}"),
        )
        for name, each in figures.items()
    ]
    heads = ("beside", "it takes s", "answer MB", "decisions made", "median ms", "slowest ms")
    table = Table(f"Decisions beside reads: {articles:,} articles, d = {d}", heads, rows)
    notes = [
        f"Each for {least:g} seconds at least, and until the read is over; snapshots are taken "
        f"every {saved_every:g} seconds of all that was learned."
    ]
    return Section([table], figures, notes)


def _beside(target: Target, d: int, paths: tuple[str, ...], least: float) -> dict[str, float]:
    url, headers = f"http://127.0.0.1:{target.port}", {"authorization": f"Bearer {target.key}"}
    sizes: list[int] = []

    def read(path: str) -> None:
        answer = httpx.get(url + path, headers=headers, timeout=600).raise_for_status()
        sizes.append(len(answer.content))

    place = random.Random(0)
    threads = [Thread(target=read, args=(path,)) for path in paths]
    with httpx.Client(base_url=url, headers=headers, timeout=600) as client:

        def decide() -> float:
            user = [place.random() / d for _ in range(d - 1)] + [1.0]
            began = perf_counter()
            client.post("/v1/decide", content=json.dumps({"user": user})).raise_for_status()
            return perf_counter() - began

        for _ in range(5):  # and there is something new to be read
            decide()
        began = perf_counter()
        for each in threads:
            each.start()
        took = _while(lambda: any(each.is_alive() for each in threads), decide, least)
        seconds = perf_counter() - began
    sleep(0.1)
    took.sort()
    return {
        **{"seconds": seconds, "bytes": sum(sizes), "made": len(took)},
        **{"p50": took[len(took) // 2], "worst": took[-1]},
    }


def _while(busy: Callable[[], bool], work: Callable[[], float], least: float) -> list[float]:
    began, found = perf_counter(), []
    while busy() or perf_counter() - began < least:
        found.append(work())
    return found
