"""Streaming a raw log's events from its folder, some files at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.arrow_ids import UNKNOWN, as_numpy, id_indices, string_array
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.visitors import check_visitor_numbers
from topstory.events.folder.contents import ARTICLES, USERS, EventFile, LogContents, read_contents
from topstory.events.folder.location import Location, location
from topstory.events.folder.parquet_files import batches
from topstory.events.folder.read_tables import UserTable, read_articles, read_users
from topstory.events.folder.schemas import events_schema

COLUMNS = ("visitor", "shown", "payoff")
Visits = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]


class FileGroup(NamedTuple):
    """Some consecutive files of events."""

    start: int  # the number of the first event
    files: tuple[EventFile, ...]

    @property
    def events(self) -> int:
        """How many events they hold."""
        return sum(file.events for file in self.files)


@dataclass(frozen=True)
class RawFolder:
    """A raw log's folder and its table of contents: small enough to send to every worker."""

    folder: Location
    contents: LogContents
    article_ids: tuple[str, ...]

    @classmethod
    def opened(
        cls, folder: str | PathLike[str]
    ) -> tuple[RawFolder, ArticleTable, UserTable | None]:
        """The folder, its articles, and its users if it has them."""
        # Workers may have another working directory.
        path = location(folder)
        if isinstance(path, Path):
            path = path.absolute()
        contents = read_contents(path)
        articles = read_articles(path / ARTICLES, contents)
        users = None if contents.users is None else read_users(path / USERS, contents)
        return cls(path, contents, articles.ids), articles, users

    def parts(self, events: int) -> Iterator[FileGroup]:
        """The log in groups of files with at least `events` events each; files are not split."""
        start, files = 0, list[EventFile]()
        for file in self.contents.files:
            files.append(file)
            part = FileGroup(start, tuple(files))
            if part.events >= events:
                yield part
                start, files = start + part.events, []
        if files:
            yield FileGroup(start, tuple(files))

    def read(self, part: FileGroup) -> Visits:
        """Visitor, shown article (its row in the table of articles) and payoff of each event."""
        visitor, shown = np.empty(part.events, np.int32), np.empty(part.events, np.int32)
        payoff = np.empty(part.events, np.float32)
        known = string_array(self.article_ids)
        whole = events_schema(self.contents)
        schema = pa.schema([whole.field(name) for name in COLUMNS])
        before = 0
        for file in part.files:
            path = self.folder / file.name
            for start, batch in batches(path, schema, file.events):
                place = slice(before + start, before + start + len(batch))
                numbers = as_numpy(batch.column("visitor"), zero_copy_only=True)
                check_visitor_numbers(numbers, self.contents.users or 0, f"{path}: row ", start)
                visitor[place] = numbers
                shown[place] = id_indices(batch.column("shown"), known)
                payoff[place] = as_numpy(batch.column("payoff"), zero_copy_only=True)
                _check_events(shown[place], payoff[place], batch, path, start)
            before += file.events
        return visitor, shown, payoff


def _check_events(
    shown: npt.NDArray[np.int32],
    payoff: npt.NDArray[np.float32],
    batch: Any,
    path: Location,
    start: int,
) -> None:
    if shown.min(initial=0) == UNKNOWN:
        at = int((shown == UNKNOWN).argmax())
        name = batch.column("shown")[at].as_py()
        raise ValueError(f"{path}: row {start + at}: shown article {name!r} is not in {ARTICLES}")
    if not np.isfinite(payoff).all():
        at = int((~np.isfinite(payoff)).argmax())
        raise ValueError(f"{path}: row {start + at}: payoff {payoff[at]}; it must be finite")
