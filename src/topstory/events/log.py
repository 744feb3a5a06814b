"""The event log, stored in columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord, blocks
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.checks import Mask, row_numbers
from topstory.events.columns.contexts import Contexts, context
from topstory.events.columns.exact import ExactValues
from topstory.events.columns.pools import Indices, PoolTable
from topstory.events.columns.propensity import uniform
from topstory.events.columns.times import TimeLike, Times, parse_time
from topstory.events.columns.varying import VaryingNumbers
from topstory.events.columns.visitors import Visitors
from topstory.events.event import Event, event_of
from topstory.events.rows import take_rows

if TYPE_CHECKING:
    from pyarrow import Table

    from topstory.events.quality.uniformity import Uniformity


def check_log(log: Any, name: str = "log") -> None:
    """Raise TypeError, naming the argument, for what is not a log.

    >>> check_log("logs")
    Traceback (most recent call last):
    ...
    TypeError: log must be an EventLog, got 'logs': read the folder first, \
ts.EventLog.read('logs')
    """
    if isinstance(log, EventLog):
        return
    hint = ""
    if isinstance(log, str | PathLike):
        hint = f": read the folder first, ts.EventLog.read({fspath(log)!r})"
    shown = repr(log) if isinstance(log, str | PathLike) else type(log).__name__
    raise TypeError(f"{name} must be an EventLog, got {shown}{hint}")


@dataclass(frozen=True, eq=False, repr=False)
class EventLog(ArrayRecord):
    """Logged events in the order in which they are replayed; columns are read-only.

    Make one with `from_arrays`, `read` or `concat`; the constructor does not check its arguments.

    >>> log = EventLog.from_arrays(
    ...     users=[[0.2, 1.0], [0.7, 1.0], [0.1, 1.0]],
    ...     pools=[["sports", "politics"], ["politics", "science", "arts"]],
    ...     pool=[0, 0, 1],
    ...     shown=["politics", "sports", "arts"],
    ...     payoff=[1, 0, 0],
    ...     timestamps=[1241136000, 1241136060, 1241222400],
    ... )
    >>> log
    <EventLog: 3 events, 4 articles, 2 pools, 2009-05-01 to 2009-05-02, CTR 0.3333>
    >>> log[2].pool, log[2].shown, round(log[2].propensity, 4)
    (('politics', 'science', 'arts'), 'arts', 0.3333)
    >>> len(log[:2]), len(log[log.payoff > 0]), len(log.between("2009-05-02", "2009-05-03"))
    (2, 1, 1)
    """

    users: Contexts  # (n, d) float32, or SparseContexts
    pool: npt.NDArray[np.int32]  # (n,) which pool
    position: npt.NDArray[np.uint16] | npt.NDArray[np.int32]  # (n,) of the shown article in it
    payoff: npt.NDArray[np.float32]  # (n,)
    recorded_propensity: npt.NDArray[np.float32] | None  # (n,) None: 1 / the pool's size
    times: Times | None
    pool_table: PoolTable
    article_table: ArticleTable
    visitors: Visitors | None = None  # None: the log does not identify its users
    # Events whose propensity is known, not assumed; None: all of them, or none if it is uniform.
    recorded_count: int | None = None
    # Contexts and payoffs before they were rounded to float32; None: they are not known.
    exact: ExactValues | None = None
    # The identity of the feature model that made contexts and features; None: unknown, or none.
    feature_model: str | None = None
    # What a service recorded of each decision (columns/decisions.py); None: nothing.
    decisions: Table | None = None
    # How many numbers of a context are of the event, not of its user: the last before the constant.
    event_numbers: int = 0
    # Those of them that differ between the articles of a pool; None: none does.
    varying: VaryingNumbers | None = None
    # How many of those, the last ones, are features of the article: of f in z = x ⊗ f, not of x.
    event_features: int = 0
    # How the propensities were estimated; None: they were not, but recorded or taken as uniform.
    propensity_estimate: str | None = None

    @classmethod
    def from_arrays(
        cls,
        users: Any,
        pools: Sequence[Iterable[str | int]],
        pool: npt.ArrayLike,
        shown: Any,
        payoff: npt.ArrayLike,
        articles: Mapping[Any, npt.ArrayLike | None] | None = None,
        timestamps: npt.ArrayLike | None = None,
        propensity: npt.ArrayLike | None = None,
        visitor: npt.ArrayLike | None = None,
        profiles: Any = None,
        article_profiles: Any = None,
        exact: bool = False,
        text: Collection[str] = (),
        decisions: Any = None,
        visitor_ids: Any = None,
    ) -> EventLog:
        """A log from its columns. Raises ValueError for the first bad row, naming it.

        Args:
            users: (n, d) contexts, the constant included, kept as float32; or a scipy.sparse
                matrix of zeros and ones. A read-only float32 array is taken without a copy.
            pools: lists of article ids (texts or whole numbers); events may share one.
            pool: (n,) index into `pools`.
            shown: (n,) article ids: a list, a numpy array, or (fastest) a dictionary-encoded
                Arrow array.
            payoff: (n,) a click 0/1, or any finite number; kept as float32, to 7 digits.
            articles: id -> (m,) features. Articles in no pool are kept. Without it, the ids are
                those of the pools, in order of appearance.
            timestamps: (n,) unix seconds, or datetime64 in UTC. They need not ascend: replay
                runs in the log's order.
            propensity: (n,) the probability with which `shown` was chosen; 1 / the pool's size
                if not given, and the log counts as uniform if that is what is given.
            visitor: (n,) which user came, where users come again: an index into `users`, which
                then holds one row for each user instead of one for each event.
            profiles: the raw profiles of those users, one row each: a table of Arrow, pandas or
                polars, a dict of columns, or a list of dicts. A field holds categories (strings, or
                lists of strings), numbers, booleans, dates, or text; None is missing. With them
                `users` may be None: the constant alone.
            article_profiles: the raw profiles of the articles, in the order of `articles`.
            exact: keep dense contexts and payoffs as float64, too. Replay does not need them, but
                `log[i]` and `log.context(i)` give them.
            text: fields of the profiles whose strings are text, such as a headline; all other
                strings are categories.
            decisions: a table or dict of more columns, null where unknown: decision, request,
                visitor, bucket, bucket_propensity, mixture_propensity, model_version, slot.
            visitor_ids: the name of each row of `users`, where one person has several rows, since
                the profile changed; None is not known. Without it every row is another visitor.
        """
        from topstory.events.from_arrays import from_arrays

        return from_arrays(
            users=users,
            pools=pools,
            pool=pool,
            shown=shown,
            payoff=payoff,
            articles=articles,
            timestamps=timestamps,
            propensity=propensity,
            visitor=visitor,
            profiles=profiles,
            article_profiles=article_profiles,
            exact=exact,
            text=text,
            decisions=decisions,
            visitor_ids=visitor_ids,
        )

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> EventLog:
        """The log in a folder that `write` made (docs/reference/log-format.md)."""
        from topstory.events.folder.read import read

        return read(folder)

    def write(self, folder: str | PathLike[str]) -> None:
        """Write a folder of Parquet files. If that fails or is killed, an old log there stays."""
        from topstory.events.folder.write import write

        write(self, folder)

    @classmethod
    def concat(cls, logs: Iterable[EventLog]) -> EventLog:
        """One log after the other; their pools and articles are merged.

        >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
        >>> EventLog.concat([log, log])
        <EventLog: 2 events, 2 articles, 1 pool, untimed, CTR 1.0000>
        """
        from topstory.events.concat import concat

        return concat(logs)

    def uniformity(self, keep: Mask | None = None) -> Uniformity:
        """Whether articles were shown uniformly at random from their pools: a chi-square test."""
        from topstory.events.quality.uniformity import uniformity

        return uniformity(self, keep)

    def __len__(self) -> int:
        return len(self.pool)

    def __repr__(self) -> str:
        def count(number: int, noun: str) -> str:
            return f"{number:,} {noun}{'' if number == 1 else 's'}"

        when = "untimed" if self.times is None else self.times.span()
        clicks = ((self.payoff == 0) | (self.payoff == 1)).all()
        return (
            f"<EventLog: {count(len(self), 'event')}, {count(len(self.article_ids), 'article')}, "
            f"{count(len(self.pool_table), 'pool')}, {when}, "
            f"{'CTR' if clicks else 'payoff'} {self.ctr:.4f}>"
        )

    @property
    def ctr(self) -> float:
        """The mean payoff; nan for a log without events."""
        return float(self.payoff.mean(dtype=np.float64)) if len(self) else float("nan")

    @property
    def dimension(self) -> int:
        """d: how many features a context has."""
        return int(self.users.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of all columns and tables (article ids aside)."""
        columns: list[Any] = [self.users, self.pool, self.position, self.payoff]
        columns += [self.recorded_propensity, None if self.times is None else self.times.ticks]
        columns += [self.pool_offsets, self.pool_members, self.features]
        columns += [self.article_profiles, self.profiles, self.exact, self.decisions, self.varying]
        if self.visitors is not None:
            columns += [self.visitors.number, self.visitors.contexts]
        return sum(column.nbytes for column in columns if column is not None)

    @property
    def propensity(self) -> npt.NDArray[np.float32]:
        """(n,) the probability of the shown article: as recorded, else 1 / the pool's size."""
        if self.recorded_propensity is not None:
            return self.recorded_propensity
        return uniform(self.pool, self.pool_table)

    @property
    def propensities_recorded(self) -> int:
        """How many events came with a propensity; that of the others is taken to be uniform."""
        if self.recorded_count is not None:
            return self.recorded_count
        return 0 if self.recorded_propensity is None else len(self)

    @property
    def timestamps(self) -> npt.NDArray[np.datetime64] | None:
        """(n,) datetime64[us] in UTC; None for an untimed log."""
        return None if self.times is None else self.times.microseconds().view("M8[us]")

    @property
    def articles(self) -> Mapping[str, npt.NDArray[np.float64] | None]:
        """Id -> (m,) features, read-only; the values are None if the log has no features."""
        return self.article_table.mapping

    @property
    def article_ids(self) -> tuple[str, ...]:
        """All ids, in the order of the article indices."""
        return self.article_table.ids

    @property
    def features(self) -> npt.NDArray[np.float64] | None:
        """(A, m) article features, or None."""
        return self.article_table.features

    @property
    def profiles(self) -> Table | None:
        """The raw profiles of the users, a row each as `visitors.number` counts them; or None."""
        return None if self.visitors is None else self.visitors.profiles

    @property
    def visitor_number(self) -> npt.NDArray[np.int64] | None:
        """(n,) equal for events of one visitor, -1 where none is known; None: none is at all."""
        if self.visitors is not None:
            return self.visitors.person
        if self.decisions is None:
            return None
        from topstory.events.columns.decisions import visitor_numbers

        return visitor_numbers(self.decisions)

    @property
    def article_profiles(self) -> Table | None:
        """The raw profiles of the articles, in the order of `article_ids`; or None."""
        return self.article_table.profiles

    @property
    def pools(self) -> list[list[str]]:
        """The pools as lists of ids (built on each call)."""
        return self.pool_table.lists(self.article_ids)

    @property
    def pool_offsets(self) -> npt.NDArray[np.int64]:
        """(P + 1,) where each pool begins in `pool_members`."""
        return self.pool_table.offsets

    @property
    def pool_members(self) -> Indices:
        """Article indices of all pools, end to end."""
        return self.pool_table.members

    @property
    def pool_sizes(self) -> npt.NDArray[np.int64]:
        """(P,) how many articles each pool holds."""
        return self.pool_table.sizes

    @property
    def shown_index(self) -> Indices:
        """(n,) index of the article shown (built on each call)."""
        index = np.empty(len(self), np.int32)
        for start, stop in blocks(len(self)):
            places = self.pool_offsets[self.pool[start:stop]] + self.position[start:stop]
            index[start:stop] = self.pool_members[places]
        return index

    @property
    def shown(self) -> npt.NDArray[np.object_]:
        """(n,) id of the article shown (built on each call)."""
        ids = np.array([*self.article_ids, None], dtype=object)[:-1]  # never numpy's own strings
        return ids[self.shown_index]

    def context(self, i: int) -> npt.NDArray[np.float64]:
        """(d,) the context of event i, dense."""
        return context(self.users, i) if self.exact is None else self.exact.users[i].copy()

    def contexts(self, i: int) -> npt.NDArray[np.float64]:
        """(d,) the context of event i, or (K, d) one for each article of its pool, if they differ.

        It is what a policy's `choose` takes.
        """
        shared = self.context(i)
        if self.varying is None:
            return shared
        start, width = int(self.varying.starts[i]), self.varying.width
        rows = np.repeat(shared[np.newaxis], self.pool_sizes[self.pool[i]], axis=0)
        rows[:, -1 - width : -1] = self.varying.values[start : start + len(rows)]
        return rows

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> Event: ...

    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any] | list[int]) -> EventLog: ...

    def __getitem__(self, rows: Any) -> Event | EventLog:
        """An int gives an Event; a slice, a mask or an array of row numbers gives a log.

        Rows in one piece (step 1) are views of this log's columns.
        """
        if isinstance(rows, int | np.integer):
            return event_of(self, range(len(self))[rows])
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return take_rows(self, slice(start, max(start, stop)))
            return take_rows(self, np.arange(start, stop, step))
        return take_rows(self, row_numbers(rows, len(self)))

    def between(self, start: TimeLike | None = None, end: TimeLike | None = None) -> EventLog:
        """The events with start <= time < end; None leaves that side open."""
        if self.times is None:
            raise ValueError("this log has no timestamps; take rows with log[start:stop]")
        bounds = (None if edge is None else parse_time(edge) for edge in (start, end))
        rows = np.flatnonzero(self.times.within(*bounds))
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return take_rows(self, slice(int(rows[0]), int(rows[-1]) + 1))
        return take_rows(self, rows)

    def split(self, at: float | TimeLike) -> tuple[EventLog, EventLog]:
        """An earlier and a later part: one to learn on, one to judge on.

        Args:
            at: a share of the events (0.8: the first 80 %), or a time, which begins the later part.

        >>> log = EventLog.from_arrays(
        ...     np.ones((4, 1)), [["a"]], [0] * 4, ["a"] * 4, [0, 0, 1, 0],
        ...     timestamps=[1241136000, 1241136060, 1241222400, 1241222460])
        >>> [len(part) for part in log.split(0.75)], [len(part) for part in log.split("2009-05-02")]
        ([3, 1], [2, 2])
        """
        from topstory.events.split import split

        return split(self, at)

    def head(self, events: int = 5) -> EventLog:
        """The first events; a notebook shows them as a table."""
        return self[:events]

    def to_arrow(self, pools: bool = False) -> Table:
        """One row for each event: what was shown, what it paid, the context, and raw profiles.

        Args:
            pools: list the candidates of each event as well, not only the number of its pool.

        >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
        >>> log.to_arrow(pools=True).drop_columns(["user"]).to_pylist()
        [{'shown': 'b', 'payoff': 1.0, 'propensity': 0.5, 'pool': 0, 'candidates': ['a', 'b']}]
        """
        from topstory.events.tables import to_arrow

        return to_arrow(self, pools)

    def to_pandas(self, pools: bool = False) -> Any:
        """The same as a data frame of pandas, which must be installed."""
        from topstory.events.tables import to_frame

        return to_frame(self, "pandas", pools)

    def to_polars(self, pools: bool = False) -> Any:
        """The same as a data frame of polars, which must be installed."""
        from topstory.events.tables import to_frame

        return to_frame(self, "polars", pools)

    def _repr_html_(self) -> str:
        from topstory.events.tables import to_html

        return to_html(self)

    def __iter__(self) -> Iterator[Event]:
        return (event_of(self, i) for i in range(len(self)))
