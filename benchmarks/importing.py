"""Importing Yahoo's logs: the readers beside a plain loop, a full parse and `wc -l`."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.measuring import say
from benchmarks.tables import Section, Table
from benchmarks.yahoo import write_r6a, write_r6b
from topstory.events.importing import import_log
from topstory.events.readers import Faults, reader
from topstory.events.readers.sources import pieces
from topstory.kernels.compilation import Counters, compiled
from topstory.kernels.text import COLON, NEWLINE, Bytes, decimal

TARGET_RATE, TARGET_TIMES, TARGET_GZIP = 800, 40, 0.7  # MB/s a core; × the loop; × the text's rate
LOOP = 30  # the plain loop reads a thirtieth of the file: it would take a minute


def run(quick: bool) -> Section:
    """One table of rates for each format, and the targets."""
    lines, repetitions = (20_000, 2) if quick else (400_000, 5)
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        found = {
            "r6a": _rates("r6a", write_r6a, lines, repetitions, room),
            "r6b": _rates("r6b", write_r6b, lines, repetitions, room),
        }
    tables = [
        Table(
            f"{format}, {lines:,} lines: MB of text",
            ("what", "a second", "a second of processor", "× the plain loop"),
            [
                (
                    what,
                    f"{rate['wall']:,.0f}",
                    f"{rate['processor']:,.0f}" if rate["processor"] else "",
                    f"{rate['wall'] / rates['plain Python loop']['wall']:,.1f}",
                )
                for what, rate in rates.items()
            ],
        )
        for format, rates in found.items()
    ]
    notes = [
        "A second of processor counts all threads: gzip is decompressed and Parquet compressed "
        "by threads of their own.",
        "The gzip target supposes a core for each of the two threads: on a machine that is busy "
        "otherwise, both share one, and the ratio is that of the processor times.",
        f"The plain loop, split and float in Python, reads one line in {LOOP}.",
        "An import reads, unites pools and articles, writes Parquet and brings it onto the disk.",
    ]
    return Section([*tables, _targets(found["r6a"])], found, notes)


def _targets(rates: dict[str, Any]) -> Table:
    text, squeezed = rates["reader, text"], rates["reader, gzip"]
    times = text["wall"] / rates["plain Python loop"]["wall"]
    share = squeezed["wall"] / text["wall"]
    rows = [
        ("r6a text, MB/s a core", text["processor"], TARGET_RATE, 0),
        ("r6a text, × the plain loop", times, TARGET_TIMES, 1),
        ("r6a gzip, × the text's rate", share, TARGET_GZIP, 2),
    ]
    return Table(
        "Targets",
        ("what", "found", "target", "met"),
        [
            (what, f"{value:,.{digits}f}", f"≥ {wanted}", "yes" if value >= wanted else "no")
            for what, value, wanted, digits in rows
        ],
    )


def _rates(
    format: str, write: Callable[[Path, int], None], lines: int, repetitions: int, room: Path
) -> dict[str, Any]:
    """What -> MB of text a second, and a second of processor."""
    text, part, squeezed = (room / f"{format}{end}" for end in (".txt", ".part", ".gz"))
    say(f"writing {lines:,} lines of {format}")
    write(text, lines)
    with text.open("rb") as source:
        part.write_bytes(b"".join(source.readline() for _ in range(lines // LOOP)))
        source.seek(0)
        with gzip.open(squeezed, "wb", 6) as file:
            shutil.copyfileobj(source, file, 1 << 20)
    tasks: dict[str, tuple[Callable[[], object], Path]] = {
        "plain Python loop": (partial(_plain, part, dense=format == "r6a"), part),
        "numba, every number parsed": (partial(_full, text), text),
        "wc -l": (partial(subprocess.run, ["wc", "-l", text], stdout=subprocess.DEVNULL), text),
        "reader, text": (partial(_read, format, text), text),
        "reader, gzip": (partial(_read, format, squeezed), text),
        "import, text": (partial(import_log, format, text, room / "log"), text),
        "import, gzip": (partial(import_log, format, squeezed, room / "log"), text),
    }
    if format == "r6b":
        del tasks["numba, every number parsed"]
    seconds: dict[str, list[tuple[float, float]]] = {what: [] for what in tasks}
    for repetition in range(repetitions + 1):
        for what, (task, _) in tasks.items():
            say(f"{repetition} of {repetitions}: {format}, {what}")
            wall, processor = perf_counter(), process_time()
            task()
            taken = perf_counter() - wall, process_time() - processor
            if repetition:  # the first compiles, and fills the caches
                seconds[what].append(taken)
    say("")
    return {
        what: {
            "wall": path.stat().st_size / 1e6 / median(wall for wall, _ in seconds[what]),
            "processor": None
            if what == "wc -l"
            else path.stat().st_size / 1e6 / median(taken for _, taken in seconds[what]),
        }
        for what, (_, path) in tasks.items()
    }


def _read(format: str, path: Path) -> int:
    faults = Faults()
    events = sum(map(len, reader(format).read([path], faults, lambda more: None)))
    assert not faults.counts, faults.first
    return events


def _plain(path: Path, dense: bool) -> int:
    """What anybody would write first: every line split, every number a float."""
    events = 0
    with path.open() as file:
        for line in file:
            heading, user, *articles = line.split("|")
            time, shown, click = heading.split()
            if dense:
                context = [float(word.split(":")[1]) for word in user.split()[1:]]
                pool: dict[str, Any] = {}
                for article in articles:
                    words = article.split()
                    pool[words[0]] = [float(word.split(":")[1]) for word in words[1:]]
            else:
                context = [int(word) for word in user.split()[1:]]
                pool = dict.fromkeys(article.strip() for article in articles)
            events += shown in pool and int(time) > 0 and int(click) < 2 and len(context) > 0
    return events


def _full(path: Path) -> int:
    found = np.zeros(1, np.int64)
    for piece in pieces(path, lambda more: None):
        _every_number(np.frombuffer(piece, np.uint8), found)
    return int(found[0])


@compiled
def _every_number(text: Bytes, found: Counters) -> None:
    """Parse whatever follows a colon; count lines."""
    place, end, total = 0, len(text), 0.0
    while place < end:
        if text[place] == COLON:
            value, after = decimal(text, place + 1, end)
            total += value
            place = max(after, place + 1)
        else:
            found[0] += text[place] == NEWLINE
            place += 1
    if total < 0:
        found[0] = -1  # the sum is used, so that it is not left out
