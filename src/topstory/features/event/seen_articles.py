"""How often each visitor was shown each article, in bounded memory."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import Any

MAX_SHOWS = 64  # of a visitor that are remembered: the last ones
MAX_VISITORS = 100_000  # who are remembered: those who came last


class SeenArticles:
    """The last articles that each visitor was shown.

    What it forgets depends on what it was told alone, in that order: a log and a live service that
    were told the same remember the same.

    >>> seen = SeenArticles()
    >>> for article in ("rain", "sun", "rain"):
    ...     seen.note("ann", article)
    >>> seen.counts("ann"), seen.counts("bob")
    (Counter({'rain': 2, 'sun': 1}), Counter())
    """

    def __init__(self, max_shows: int = MAX_SHOWS, max_visitors: int = MAX_VISITORS) -> None:
        self._max_shows, self._max_visitors = max_shows, max_visitors
        self._shown: OrderedDict[Hashable, deque[Any]] = OrderedDict()

    def note(self, visitor: Hashable, article: Any) -> None:
        """The visitor was shown the article."""
        shown = self._shown.get(visitor)
        if shown is None:
            shown = self._shown[visitor] = deque(maxlen=self._max_shows)
            if len(self._shown) > self._max_visitors:
                self._shown.popitem(last=False)
        else:
            self._shown.move_to_end(visitor)
        shown.append(article)

    def counts(self, visitor: Hashable) -> Counter[Any]:
        """How often the visitor was shown each article, of those remembered."""
        return Counter(self._shown.get(visitor, ()))

    def __iter__(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """Visitors with what they were shown, those who came last at the end."""
        return ((visitor, tuple(shown)) for visitor, shown in self._shown.items())

    def __len__(self) -> int:
        return len(self._shown)
