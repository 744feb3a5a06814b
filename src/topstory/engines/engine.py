"""What an engine is: a function mapped over items, its results in their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

Item = TypeVar("Item")
Shared = TypeVar("Shared")
Out = TypeVar("Out")


class Kept(Generic[Out]):
    """A result that stays where it was computed; `map` gives the result itself to the function."""

    def __init__(self, where: Any) -> None:
        self.where = where


class Engine(ABC):
    """Runs `function(item, shared)` for each item. What it computes never depends on the engine.

    So the function must be pure: its result is decided by its arguments, which it leaves alone.
    """

    name: ClassVar[str]
    workers: int

    @abstractmethod
    def map(
        self,
        function: Callable[[Item, Shared], Out],
        items: Iterable[Item | Kept[Item]],
        shared: Shared,
    ) -> Iterator[Out]:
        """The results in the order of the items, each as soon as it and those before it are done.

        Args:
            function: called with an item and `shared`; for Ray it must be importable or picklable.
            items: small ones, or kept ones: each goes to one worker.
            shared: what every call needs, such as a log. It is held once, not once a call. In a
                tuple, what is kept is given as the result itself.

        The first error ends the work and is raised here.
        """

    @abstractmethod
    def finished(
        self, function: Callable[[Item, Shared], Out], items: Sequence[Item], shared: Shared
    ) -> Iterator[tuple[int, Out]]:
        """Each item's place and its result, as soon as that is done; begun in the items' order.

        The first error ends the work and is raised here. Whoever stops asking ends it too.
        """

    @abstractmethod
    def keep(
        self, function: Callable[[Item, Shared], Out], items: Iterable[Item], shared: Shared
    ) -> list[Kept[Out]]:
        """The same, but the results stay with the workers: they may be larger than this machine."""
