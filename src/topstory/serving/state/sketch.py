"""What was learned and counted at one moment, to be read in a thread while the state goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from threading import Lock
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.models.model import residual
from topstory.serving.state.pool import Pool

Array = npt.NDArray[Any]


class PoolSketch:
    """A pool at one moment.

    Articles' matrices, nearly all of its memory, are not copied: only those of an article that is
    about to change, just before. So the pool has to announce changes while this is read, with
    `keep`. Smaller arrays and those that all articles share are copied.
    """

    def __init__(self, pool: Pool) -> None:
        model = pool.policy.model
        # Not when an article was added: snapshots of earlier versions do not know.
        articles = [
            (each.facts, each.since, each.tally, *((each.earlier,) if each.earlier else ()))
            for each in pool.articles.values()
        ]
        seen = [] if pool.seen is None else [pool.seen_by_visitor()]
        self._counted = msgspec.json.encode([pool.tally, articles, *seen])
        self._ids = list(model.roster.ids)
        self._per_article, self._inverses = model.per_article, model.inverses
        # The slots of removed articles hold leftovers.
        self._alive = [slot for slot, article in enumerate(self._ids) if article is not None]
        learned = model.learned()
        self._matrices = {
            field: array
            for field, array in learned.items()
            if field in self._per_article and array.ndim > 2
        }
        self._small = {
            field: array[self._alive] if field in self._per_article else array.copy()
            for field, array in learned.items()
            if field not in self._matrices
        }
        self._kept: dict[int, dict[str, Array]] = {}
        self._lock = Lock()

    def keep(self, slots: Iterable[int]) -> None:
        """Copy the matrices of these articles, which are about to change."""
        with self._lock:
            for slot in set(slots).difference(self._kept):
                if slot < len(self._ids):
                    self._kept[slot] = {
                        field: array[slot].copy() for field, array in self._matrices.items()
                    }

    def _rows(self, *fields: str) -> Iterator[tuple[Array, ...]]:
        """Article by article, these matrices: in room that the next ones will take."""
        room = tuple(np.empty_like(self._matrices[field][0]) for field in fields)
        for slot in self._alive:
            with self._lock:  # no longer than copying takes: the pool may wait for it
                kept = self._kept.get(slot)
                for target, field in zip(room, fields, strict=True):
                    target[...] = self._matrices[field][slot] if kept is None else kept[field]
            yield room

    def drift(self) -> float:
        """As `Model.drift`."""
        largest = 0.0
        for field, inverse in self._inverses:
            if field in self._matrices:
                for A, A_inverse in self._rows(field, inverse):
                    largest = float(np.maximum(largest, residual(A, A_inverse)))
            elif field in self._small:
                (A,), (A_inverse,) = self._small[field], self._small[inverse]
                largest = float(np.maximum(largest, residual(A, A_inverse)))
        return largest

    def hash_into(self, digest: blake2b) -> None:
        """Everything that was learned and counted."""
        digest.update(self._counted)
        digest.update(msgspec.json.encode(self._ids))
        for field in sorted(self._matrices | self._small):
            array = self._matrices.get(field)
            if array is None:
                array = self._small[field]
                digest.update(f"{field} {array.dtype}".encode())
                digest.update(array.tobytes())
            else:
                digest.update(f"{field} {array.dtype}".encode())
                for (matrix,) in self._rows(field):
                    digest.update(matrix.data)


class StateSketch:
    """All pools at one moment. Used as a context: pools announce changes until it is left."""

    def __init__(self, number: int, pools: dict[str, Pool]) -> None:
        self.number = number
        self._pools = pools
        self._sketches = {name: PoolSketch(pool) for name, pool in pools.items()}

    def __enter__(self) -> Self:
        for name, sketch in self._sketches.items():
            self._pools[name].sketches.append(sketch)
        return self

    def __exit__(self, *_: object) -> None:
        for name, sketch in self._sketches.items():
            self._pools[name].sketches.remove(sketch)

    def drift(self) -> dict[str, float]:
        """By pool: how far its model has drifted by rounding."""
        return {name: sketch.drift() for name, sketch in self._sketches.items()}

    def fingerprint(self) -> str:
        """As `State.fingerprint`."""
        digest = blake2b(f"{self.number}".encode(), digest_size=16)
        for name, sketch in sorted(self._sketches.items()):
            digest.update(name.encode())
            sketch.hash_into(digest)
        return digest.hexdigest()
