"""The engine that runs everything here, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from topstory.engines.engine import Engine, Item, Out, ResultRef, Shared


class SerialEngine(Engine):
    """In this thread.

    >>> list(SerialEngine().map(lambda item, shared: item * shared, [1, 2, 3], shared=10))
    [10, 20, 30]
    """

    name: ClassVar[str] = "serial"
    workers = 1

    def map(
        self,
        function: Callable[[Item, Shared], Out],
        items: Iterable[Item | ResultRef[Item]],
        shared: Shared,
    ) -> Iterator[Out]:
        """The results, computed as they are asked for."""
        given = shared_here(shared)
        return (function(kept_here(item), given) for item in items)

    def finished(
        self, function: Callable[[Item, Shared], Out], items: Sequence[Item], shared: Shared
    ) -> Iterator[tuple[int, Out]]:
        """One after the other."""
        return enumerate(self.map(function, items, shared))

    def keep(
        self, function: Callable[[Item, Shared], Out], items: Iterable[Item], shared: Shared
    ) -> list[ResultRef[Out]]:
        """The results, in this process."""
        return [ResultRef(result) for result in self.map(function, items, shared)]


def kept_here(item: Any) -> Any:
    """The item itself, where what is kept is kept in this process.

    >>> kept_here(3), kept_here(ResultRef(3))
    (3, 3)
    """
    return item.where if isinstance(item, ResultRef) else item


def shared_here(shared: Any) -> Any:
    """What is shared, and itself whatever is kept in it.

    >>> shared_here((1, ResultRef(2))), shared_here([ResultRef])
    ((1, 2), [<class 'topstory.engines.engine.ResultRef'>])
    """
    return tuple(kept_here(value) for value in shared) if type(shared) is tuple else shared
