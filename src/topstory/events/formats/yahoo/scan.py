"""Scanning Yahoo's logs: the kernel reads the regular lines, Python all others."""

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
from topstory.events.formats.pipeline.lines import BOM
from topstory.events.formats.pipeline.sources import MAX_LINE_BYTES, TOO_LONG, CutOff, pieces
from topstory.events.formats.pipeline.validation import MAX_FLOAT32
from topstory.events.formats.reader import MAX_BATCH_EVENTS, Progress
from topstory.events.formats.yahoo.pools import (
    NO_POOL,
    STRUCTURE,
    BatchPools,
    InvalidLine,
    ListedArticle,
)
from topstory.events.log import EventLog
from topstory.kernels.parsing.yahoo import ENDED, EVENT, FULL, LINE, PLACE, SIZE

EMPTY = "an empty line"
TIME = "the time is not in unix seconds"
CLICK = "the click is not 0 or 1"
NUMBER = "a number is malformed"
CONSTANT = "feature 1, the constant, is missing or not 1"

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")


class LineScanner(ABC):
    """Collects a batch of events."""

    def __init__(self, size: int = MAX_BATCH_EVENTS) -> None:
        self.state = np.zeros(SIZE, np.int64)
        self.times = np.empty(size, np.int64)
        self.pool = np.empty(size, np.int32)
        self.position = np.empty(size, np.int32)
        self.payoff = np.empty(size, np.float32)
        self.pools = BatchPools(self.article)

    @abstractmethod
    def scan(self, text: npt.NDArray[np.uint8]) -> int:
        """Run the kernel."""

    @abstractmethod
    def user(self, words: list[bytes], event: int) -> None:
        """Store an event's user features; raises InvalidLine."""

    @abstractmethod
    def article(self, key: str, words: list[bytes]) -> ListedArticle:
        """An article from its id and features; raises InvalidLine."""

    @abstractmethod
    def contexts(self, events: int) -> Contexts:
        """A copy of the contexts so far."""

    def read(
        self, files: Sequence[Path], faults: Faults, progress: Progress
    ) -> Iterator[tuple[Path, EventLog]]:
        """`FormatReader.read`."""
        for path in files:
            self.state[LINE] = 0
            for batch in self._file(path, faults, progress):
                yield path, batch
            if self.state[EVENT]:
                yield path, self._batch(faults)

    def _file(self, path: Path, faults: Faults, progress: Progress) -> Iterator[EventLog]:
        rest = b""  # an incomplete line
        skipping = False  # a line that is too long
        begun = False
        try:
            for piece in pieces(path, progress, faults.intact.get(str(path))):
                if not begun:
                    piece, begun = piece.removeprefix(BOM), True
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
                if len(rest) > MAX_LINE_BYTES:
                    faults.add(TOO_LONG, str(path), int(self.state[LINE]) + 1, rest[:200])
                    rest, skipping = b"", True
        except CutOff as damage:
            # The incomplete last line counts as the bad row.
            faults.add(damage.reason, str(path), int(self.state[LINE]) + 1, rest[:200])
            return
        if rest:
            yield from self._lines(rest + b"\n", 0, path, faults)

    def _lines(
        self, text: bytes, begin: int, path: Path, faults: Faults
    ) -> Generator[EventLog, None, bytes]:
        """Read the complete lines of a text; returns what follows the last newline."""
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
            except InvalidLine as invalid:
                faults.add(str(invalid), str(path), number, line[:200])
            self.state[LINE], self.state[PLACE] = number, newline + 1

    def _line(self, line: bytes, file: str, number: int) -> None:
        """Parse any line, slowly, into the columns; raises InvalidLine."""
        if len(line) > MAX_LINE_BYTES:
            raise InvalidLine(TOO_LONG)
        if not line.strip():
            raise InvalidLine(EMPTY)
        bars = line.split(b"|", 2)
        words, user = bars[0].split(), bars[1].split() if len(bars) > 1 else []
        if len(words) != 3 or user[:1] != [b"user"]:
            raise InvalidLine(STRUCTURE)
        time, shown, click = words
        if not time.isdigit() or len(time) > 12 or int(time) > LATEST // SECOND:
            raise InvalidLine(TIME)
        if click not in (b"0", b"1"):
            raise InvalidLine(CLICK)
        event = int(self.state[EVENT])
        self.user(user[1:], event)
        if len(bars) < 3:
            raise InvalidLine(NO_POOL)
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
        self.pools.note_remarks(faults, np.bincount(self.pool[:events], minlength=len(pools)))
        self.pools.clear()
        self.state[EVENT] = 0
        return log


def number(word: bytes) -> float:
    """A decimal number; raises InvalidLine if it is not one, or does not fit a float32.

    >>> number(b"0.306008")
    0.306008
    """
    value = float(word) if _NUMBER.fullmatch(word) else float("nan")
    if not abs(value) <= MAX_FLOAT32:
        raise InvalidLine(NUMBER)
    return value
