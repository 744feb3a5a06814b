"""A log read in parts, each of which fits any worker: never more than some 250 MB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import msgspec

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.pools import PoolTable
from topstory.events.folder.contents import (
    ARTICLES,
    POOLS,
    USERS,
    EventFile,
    LogContents,
    read_contents,
)
from topstory.events.folder.location import Location, location
from topstory.events.folder.parquet_files import BATCH_ROWS
from topstory.events.folder.read import LogBuffers
from topstory.events.folder.read_tables import UserTable, read_articles, read_pools, read_users
from topstory.events.log import EventLog

PART_BYTES = 1 << 28
OTHER_BYTES = 40  # of an event, beside its context


class LogPart(NamedTuple):
    """Some events of one file."""

    file: EventFile
    first: int  # rows of the file: from this one
    last: int  # up to this one, which is not in the part
    start: int  # the number of the first event in the log

    @property
    def events(self) -> int:
        """How many."""
        return self.last - self.first


@dataclass(frozen=True)
class LogFolder:
    """A log's folder with what all its parts share: it can be sent to workers."""

    place: Location
    contents: LogContents
    articles: ArticleTable
    pools: PoolTable
    people: UserTable | None

    @classmethod
    def opened(cls, folder: str | PathLike[str]) -> LogFolder:
        """The folder; errors say what is wrong with it."""
        place = location(folder)
        if isinstance(place, Path):
            place = place.absolute()  # workers may have another working directory
        contents = read_contents(place)
        articles = read_articles(place / ARTICLES, contents)
        pools = read_pools(place / POOLS, contents, articles)
        people = None if contents.users is None else read_users(place / USERS, contents)
        return cls(place, contents, articles, pools, people)

    def parts(self, start: int, stop: int, beside: int = 0) -> list[LogPart]:
        """The events start … stop − 1 of the log. A large file is cut, small ones stay apart.

        `beside`: so many bytes for each event will be needed beside the log.
        """
        found, before, most = list[LogPart](), 0, part_events(self.contents, beside)
        for file in self.contents.files:
            for row in range(0, file.events, most):
                first = max(start - before, row)
                last = min(stop - before, row + most, file.events)
                if first < last:
                    found.append(LogPart(file, first, last, before + first))
            before += file.events
        return found

    def read(self, part: LogPart) -> EventLog:
        """The events of a part as a log."""
        file = EventFile(part.file.name, part.events)
        # How many propensities of a part were recorded is not known, but that of the whole is.
        alone = msgspec.structs.replace(
            self.contents, events=part.events, files=(file,), recorded_count=None
        )
        columns = LogBuffers(alone, self.articles, self.pools, self.people)
        path = self.place / part.file.name
        columns.fill(0, path, part.file.events, part.first, part.last)
        return columns.log()


def part_events(contents: LogContents, beside: int = 0) -> int:
    """How many events a part has at most: whole batches, so that sums over them do not differ."""
    event = contents.dimension * (12 if contents.exact else 4) + OTHER_BYTES + beside
    return max(1, PART_BYTES // event // BATCH_ROWS) * BATCH_ROWS


def read_parts(folder: str | PathLike[str], start: int, stop: int) -> Iterator[EventLog]:
    """The events start … stop − 1 as logs of some events each; one of them is in memory."""
    opened = LogFolder.opened(folder)
    for part in opened.parts(start, stop):
        yield opened.read(part)
