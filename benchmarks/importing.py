"""Importing: the readers beside a plain loop, polars, a full parse, `wc -l`, Vowpal Wabbit."""

from __future__ import annotations

import gzip
import json
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

from benchmarks import frames, layouts, wabbit
from benchmarks.measuring import say
from benchmarks.tables import Section, Table
from benchmarks.yahoo import write_r6a, write_r6b
from topstory.events.formats.importing import import_log, process_count
from topstory.events.formats.pipeline.sources import pieces
from topstory.events.formats.registry import reader
from topstory.kernels.compilation import Counters, compiled
from topstory.kernels.parsing.text import COLON, NEWLINE, Bytes, decimal

TARGET_RATE, TARGET_TIMES, TARGET_GZIP = 800, 40, 0.7  # MB/s a core; × the loop; × the text's rate
SEVERAL = "import, text, a process for each core"  # with the time that it takes to start them
LOOP = 30  # the plain loop reads a thirtieth of the file: it would take a minute


def run(quick: bool) -> Section:
    """One table of rates for each format, and the targets."""
    lines, repetitions = (20_000, 2) if quick else (200_000, 5)
    kinds = ((False, "actions repeat", lines // 5), (True, "actions in any order", lines // 10))
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        found = {
            f"r6a, {lines:,} lines": _rates("r6a", write_r6a, lines, repetitions, room),
            f"r6b, {lines:,} lines": _rates("r6b", write_r6b, lines, repetitions, room),
        }
        for mixed, about, count in kinds:  # fewer: a line is long, and its reader is no kernel
            write = partial(wabbit.write_dsjson, mixed=mixed)
            title = f"dsjson, {count:,} lines, {about}"
            found[title] = _rates("dsjson", write, count, min(repetitions, 3), room)
        others, figures = layouts.run(lines // 2, repetitions, room)
    tables = [_table(title, rates) for title, rates in found.items()]
    notes = [
        "A second of processor counts all threads: gzip is decompressed and Parquet compressed "
        "by threads of their own.",
        "The gzip target supposes a core for each of the two threads: on a machine that is busy "
        "otherwise, both share one, and the ratio is that of the processor times.",
        f"The plain loop (split and float; dsjson: json.loads) and polars read one line in {LOOP}.",
        frames.NOTE,
        "An import reads, unites pools and articles, writes Parquet and brings it onto the disk.",
        *wabbit.NOTES,
        layouts.NOTE,
    ]
    targets = _targets(next(iter(found.values())))
    return Section([*tables, others, targets], {**found, "others": figures}, notes)


def _table(title: str, rates: dict[str, Any]) -> Table:
    columns = ("what", "MB a second", "MB a second of processor", "lines a second", "× the loop")
    rows = [
        (
            what,
            f"{rate['wall']:,.0f}",
            f"{rate['processor']:,.0f}" if rate["processor"] else "",
            f"{rate['lines']:,.0f}",
            f"{rate['lines'] / rates['plain Python loop']['lines']:,.1f}",
        )
        for what, rate in rates.items()
    ]
    return Table(title, columns, rows)


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
    """What -> MB of the text that it reads a second and a second of processor, lines a second."""
    tasks = _tasks(format, write, lines, room)
    seconds: dict[str, list[tuple[float, float]]] = {what: [] for what in tasks}
    for repetition in range(repetitions + 1):
        for what, (task, _, _) in tasks.items():
            say(f"{repetition} of {repetitions}: {format}, {what}")
            wall, processor = perf_counter(), process_time()
            task()
            taken = perf_counter() - wall, process_time() - processor
            if repetition:  # the first compiles, and fills the caches
                seconds[what].append(taken)
    say("")
    found: dict[str, Any] = {}
    for what, (_, path, count) in tasks.items():
        size = path.stat().st_size / 1e6
        wall = median(taken for taken, _ in seconds[what])
        processor = median(taken for _, taken in seconds[what])
        found[what] = {
            "wall": size / wall,
            "processor": None if what in ("wc -l", SEVERAL) else size / processor,
            "lines": count / wall,
        }
    return found


def _tasks(
    format: str, write: Callable[[Path, int], None], lines: int, room: Path
) -> dict[str, tuple[Callable[[], object], Path, int]]:
    """What -> what to do, the text whose size counts, and its lines."""
    text, part, squeezed, vw = (room / f"{format}{end}" for end in (".txt", ".part", ".gz", ".vw"))
    say(f"writing {lines:,} lines of {format}")
    write(text, lines)
    some = lines // LOOP
    with text.open("rb") as source:
        part.write_bytes(b"".join(source.readline() for _ in range(some)))
        source.seek(0)
        with gzip.open(squeezed, "wb", 6) as file:
            shutil.copyfileobj(source, file, 1 << 20)
    plain = _decoded if format == "dsjson" else partial(_plain, dense=format == "r6a")
    tasks: dict[str, tuple[Callable[[], object], Path, int]] = {
        "plain Python loop": (partial(plain, part), part, some),
    }
    if format == "r6a":
        assert frames.parse(part) == some
        tasks["polars, every number parsed"] = partial(frames.parse, part), part, some
        tasks["numba, every number parsed"] = partial(_full, text), text, lines
    count = partial(subprocess.run, ["wc", "-l", text], stdout=subprocess.DEVNULL)
    tasks["wc -l"] = count, text, lines
    if format in wabbit.ARGUMENTS:
        if format == "r6b":
            wabbit.write_r6b_as_vw(text, vw)
        theirs = vw if format == "r6b" else text
        assert wabbit.parsed(format, theirs) == lines
        name = f"Vowpal Wabbit, {'its own' if format == 'r6b' else 'the same'} text"
        tasks[name] = partial(wabbit.parse, format, theirs), theirs, lines
    log = room / "log"
    if reader(format).parallel:
        several = partial(import_log, format, text, log, workers=process_count())
        tasks[SEVERAL] = several, text, lines
    return tasks | {
        "reader, text": (partial(layouts.read, format, text, lines), text, lines),
        "reader, gzip": (partial(layouts.read, format, squeezed, lines), text, lines),
        "import, text": (partial(import_log, format, text, log), text, lines),
        "import, gzip": (partial(import_log, format, squeezed, log), text, lines),
    }


def _decoded(path: Path) -> int:
    with path.open("rb") as file:
        return sum("_label_cost" in json.loads(line) for line in file)


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
