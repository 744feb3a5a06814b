"""What an engine is: a function mapped over items, its results in their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

Item = TypeVar("Item")
Shared = TypeVar("Shared")
Out = TypeVar("Out")


class ResultRef(Generic[Out]):
    """Refers to a result that stays with its worker; `map` passes the result to the function."""

    def __init__(self, where: Any) -> None:
        self.where = where


class Engine(ABC):
    """Runs `function(item, shared)` for each item. Results do not depend on the engine.

    So the function must be pure: its arguments decide the result, and it does not change them.
    """

    name: ClassVar[str]
    apart: ClassVar[bool] = False  # workers have memory of their own, perhaps on other machines
    workers: int

    @abstractmethod
    def map(
        self,
        function: Callable[[Item, Shared], Out],
        items: Iterable[Item | ResultRef[Item]],
        shared: Shared,
    ) -> Iterator[Out]:
        """The results in the order of the items, each as soon as it and those before it are done.

        Args:
            function: called with an item and `shared`; for Ray it must be importable or picklable.
            items: small ones, or references to results: each goes to one worker.
            shared: what every call needs, such as a log. It is sent once, not with every call. If
                it is a tuple, references in it are replaced by the results.

        The first error ends the work and is raised here.
        """

    @abstractmethod
    def finished(
        self, function: Callable[[Item, Shared], Out], items: Sequence[Item], shared: Shared
    ) -> Iterator[tuple[int, Out]]:
        """Each item's place and its result, as soon as it is done; started in the items' order.

        The first error ends the work and is raised here. Closing the iterator ends it too.
        """

    @abstractmethod
    def keep(
        self, function: Callable[[Item, Shared], Out], items: Iterable[Item], shared: Shared
    ) -> list[ResultRef[Out]]:
        """Like `map`, but the results stay with the workers, which may have more memory."""
