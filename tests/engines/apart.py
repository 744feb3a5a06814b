"""An engine whose calls share no memory with the caller, as Ray's do, without its processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from topstory.engines import ResultRef, SerialEngine


class ApartEngine(SerialEngine):
    """Everything that goes in or comes out is pickled."""

    name: ClassVar[str] = "apart"
    apart: ClassVar[bool] = True

    def map(
        self,
        function: Callable[[Any, Any], Any],
        items: Iterable[Any | ResultRef[Any]],
        shared: Any,
    ) -> Iterator[Any]:
        """The results."""
        call, given = pickle.loads(pickle.dumps((function, shared)))
        for item in items:
            yield pickle.loads(pickle.dumps(call(pickle.loads(pickle.dumps(item)), given)))
