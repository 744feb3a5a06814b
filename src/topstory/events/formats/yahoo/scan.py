"""Lines of Yahoo's logs into batches: the kernel reads what is as expected, Python the rest."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from topstory.events.columns.contexts import Contexts
from topstory.events.columns.positions import position_type
from topstory.events.columns.times import LATEST, SECOND, Times
from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.sources import LONGEST, TOO_LONG, Damage, pieces
from topstory.events.formats.reader import BATCH, Progress
from topstory.events.formats.yahoo.pools import NO_POOL, STRUCTURE, Article, Pools, Unfit
from topstory.events.log import EventLog
from topstory.kernels.yahoo import ENDED, EVENT, FULL, LINE, PLACE, SIZE

EMPTY = "an empty line"
TIME = "the time is not in unix seconds"
CLICK = "the click is not 0 or 1"
NUMBER = "a number is malformed"
CONSTANT = "feature 1, the constant, is missing or not 1"

FLOAT32 = float(np.finfo(np.float32).max)
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")


class Scan(ABC):
    """A batch in the making."""

    def __init__(self, size: int = BATCH) -> None:
        self.state = np.zeros(SIZE, np.int64)
        self.times = np.empty(size, np.int64)
        self.pool = np.empty(size, np.int32)
        self.position = np.empty(size, np.int32)
        self.payoff = np.empty(size, np.float32)
        self.pools = Pools(self.article)

    @abstractmethod
    def scan(self, text: npt.NDArray[np.uint8]) -> int:
        """Run the kernel."""

    @abstractmethod
    def user(self, words: list[bytes], event: int) -> None:
        """Put an event's features; Unfit if they are none."""

    @abstractmethod
    def article(self, key: str, words: list[bytes]) -> Article:
        """An article from its id and features; Unfit if they are none."""

    @abstractmethod
    def contexts(self, events: int) -> Contexts:
        """A copy of the contexts so far."""

    def read(
        self, files: Sequence[Path], faults: Faults, progress: Progress
    ) -> Iterator[tuple[Path, EventLog]]:
        """`Reader.read`."""
        for path in files:
            self.state[LINE] = 0
            for batch in self._file(path, faults, progress):
                yield path, batch
            if self.state[EVENT]:
                yield path, self._batch(faults)

    def _file(self, path: Path, faults: Faults, progress: Progress) -> Iterator[EventLog]:
        rest, skipping = b"", False  # a line whose end is in the next piece; one that is too long
        try:
            for piece in pieces(path, progress):
                begin = 0
                if rest or skipping:
                    begin = piece.find(b"\n") + 1
                    if not begin:
                        rest += b"" if skipping else piece
                    elif skipping:
                        self.state[LINE] += 1
                        skipping = False
                    else:
                        rest = yield from self._lines(rest + piece[:begin], 0, path, faults)
                if not (rest or skipping):
                    rest = yield from self._lines(piece, begin, path, faults)
                if len(rest) > LONGEST:
                    faults.add(TOO_LONG, str(path), int(self.state[LINE]) + 1, rest[:200])
                    rest, skipping = b"", True
        except Damage as damage:
            # The last line is cut off: it counts as the bad row.
            faults.add(damage.reason, str(path), int(self.state[LINE]) + 1, rest[:200])
            return
        if rest:
            yield from self._lines(rest + b"\n", 0, path, faults)

    def _lines(
        self, text: bytes, begin: int, path: Path, faults: Faults
    ) -> Generator[EventLog, None, bytes]:
        """Read the whole lines of a text; what comes after the last newline is returned."""
        array = np.frombuffer(text, np.uint8)
        self.state[PLACE] = begin
        while True:
            why = self.scan(array)
            place = int(self.state[PLACE])
            if why == ENDED:
                return b""
            if why == FULL:
                yield self._batch(faults)
                continue
            newline = text.find(b"\n", place)
            if newline < 0:
                return text[place:]
            line, number = text[place:newline].removesuffix(b"\r"), int(self.state[LINE]) + 1
            try:
                self._line(line, str(path), number)
                self.state[EVENT] += 1
            except Unfit as unfit:
                faults.add(str(unfit), str(path), number, line[:200])
            self.state[LINE], self.state[PLACE] = number, newline + 1

    def _line(self, line: bytes, file: str, number: int) -> None:
        """Any line, slowly, into the columns; Unfit if it is no event."""
        if len(line) > LONGEST:
            raise Unfit(TOO_LONG)
        if not line.strip():
            raise Unfit(EMPTY)
        bars = line.split(b"|", 2)
        words, user = bars[0].split(), bars[1].split() if len(bars) > 1 else []
        if len(words) != 3 or user[:1] != [b"user"]:
            raise Unfit(STRUCTURE)
        time, shown, click = words
        if not time.isdigit() or len(time) > 12 or int(time) > LATEST // SECOND:
            raise Unfit(TIME)
        if click not in (b"0", b"1"):
            raise Unfit(CLICK)
        event = int(self.state[EVENT])
        self.user(user[1:], event)
        if len(bars) < 3:
            raise Unfit(NO_POOL)
        pool = self.pools.find(b"|" + bars[2], shown, file, number)
        self.times[event], self.payoff[event] = int(time), int(click)
        self.pool[event], self.position[event] = pool.number, pool.ids.index(shown)

    def _batch(self, faults: Faults) -> EventLog:
        events = int(self.state[EVENT])
        articles, pools = self.pools.tables()
        log = EventLog(
            users=self.contexts(events),
            pool=self.pool[:events].copy(),
            position=self.position[:events].astype(position_type(pools)),
            payoff=self.payoff[:events].copy(),
            recorded_propensity=None,
            times=Times.from_microseconds(self.times[:events] * SECOND),
            pool_table=pools,
            article_table=articles,
        )
        self.pools.tell(faults, np.bincount(self.pool[:events], minlength=len(pools)))
        self.pools.clear()
        self.state[EVENT] = 0
        return log


def number(word: bytes) -> float:
    """A number, as text files write them; Unfit if it is not one, or does not fit a float32.

    >>> number(b"0.306008")
    0.306008
    """
    value = float(word) if _NUMBER.fullmatch(word) else float("nan")
    if not abs(value) <= FLOAT32:
        raise Unfit(NUMBER)
    return value
