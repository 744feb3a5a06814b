"""A raw log's folder whose events stay on disk: whoever needs some of them reads those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.arrow_ids import UNKNOWN, look_up
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.visitors import check_numbers
from topstory.events.folder.contents import ARTICLES, USERS, Contents, EventFile, read_contents
from topstory.events.folder.parquet_files import batches
from topstory.events.folder.read_tables import Users, read_articles, read_users
from topstory.events.folder.schemas import events_schema

COLUMNS = ("visitor", "shown", "payoff")
Visits = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]


class Part(NamedTuple):
    """Some files of events, one after the other."""

    start: int  # the number of the first event
    files: tuple[EventFile, ...]

    @property
    def events(self) -> int:
        """How many."""
        return sum(file.events for file in self.files)


@dataclass(frozen=True)
class RawFolder:
    """Where a raw log is, and its table of contents: small enough to send to every worker."""

    folder: Path
    contents: Contents
    article_ids: tuple[str, ...]

    @classmethod
    def opened(cls, folder: str | PathLike[str]) -> tuple[RawFolder, ArticleTable, Users | None]:
        """The folder, its articles, and its users if it knows them."""
        # Workers of this machine may have another folder to work in.
        path = Path(folder).absolute()
        contents = read_contents(path)
        articles = read_articles(path / ARTICLES, contents)
        users = None if contents.users is None else read_users(path / USERS, contents)
        return cls(path, contents, articles.ids), articles, users

    def parts(self, events: int) -> Iterator[Part]:
        """The log in parts of at least so many events; a file is never cut."""
        start, files = 0, list[EventFile]()
        for file in self.contents.files:
            files.append(file)
            part = Part(start, tuple(files))
            if part.events >= events:
                yield part
                start, files = start + part.events, []
        if files:
            yield Part(start, tuple(files))

    def read(self, part: Part) -> Visits:
        """Who came, what was shown (by its row in the table of articles), and what it paid."""
        visitor, shown = np.empty(part.events, np.int32), np.empty(part.events, np.int32)
        payoff = np.empty(part.events, np.float32)
        known = pa.array(self.article_ids, pa.string())
        whole = events_schema(self.contents)
        schema = pa.schema([whole.field(name) for name in COLUMNS])
        before = 0
        for file in part.files:
            path = self.folder / file.name
            for start, batch in batches(path, schema, file.events):
                place = slice(before + start, before + start + len(batch))
                numbers = batch.column("visitor").to_numpy()
                check_numbers(numbers, self.contents.users or 0, f"{path}: row ", start)
                visitor[place] = numbers
                shown[place] = look_up(batch.column("shown"), known)
                payoff[place] = batch.column("payoff").to_numpy()
                _check_events(shown[place], payoff[place], batch, path, start)
            before += file.events
        return visitor, shown, payoff


def _check_events(
    shown: npt.NDArray[np.int32],
    payoff: npt.NDArray[np.float32],
    batch: Any,
    path: Path,
    start: int,
) -> None:
    if shown.min(initial=0) == UNKNOWN:
        at = int((shown == UNKNOWN).argmax())
        name = batch.column("shown")[at].as_py()
        raise ValueError(f"{path}: row {start + at}: shown article {name!r} is not in {ARTICLES}")
    if not np.isfinite(payoff).all():
        at = int((~np.isfinite(payoff)).argmax())
        raise ValueError(f"{path}: row {start + at}: payoff {payoff[at]}; it must be finite")
