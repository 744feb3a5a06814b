"""An engine maps a function over items; which engine it is changes no result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from topstory.engines import Engine, engine

NAMES = ["serial", "local", "ray"]


@pytest.fixture(scope="module", params=NAMES)
def each(request: pytest.FixtureRequest) -> Iterator[Engine]:
    yield engine(request.param, workers=2)
    if request.param == "ray":
        import ray

        ray.shutdown()


def scaled(item: int, shared: np.ndarray[Any, Any]) -> float:
    return float(item * shared.sum())


def test_results_come_in_the_order_of_the_items(each: Engine) -> None:
    shared = np.arange(1000.0)
    wanted = [item * shared.sum() for item in range(40)]
    assert list(each.map(scaled, range(40), shared)) == wanted
    assert list(each.map(scaled, range(40), shared)) == wanted  # and so they do again
    assert list(each.map(scaled, range(3), shared + 1)) == [
        i * (shared + 1).sum() for i in range(3)
    ]


def one_more(item: int, _: None) -> int:
    return item + 1


def times(item: int, factor: int) -> int:
    return item * factor


def test_no_items_give_no_results(each: Engine) -> None:
    assert list(each.map(scaled, [], np.ones(1))) == []


def test_a_kept_result_is_an_item(each: Engine) -> None:
    kept = each.keep(one_more, range(5), None)
    assert list(each.map(times, kept, 10)) == [10, 20, 30, 40, 50]


def between(item: int, shared: tuple[int, int]) -> int:
    return item * shared[0] + shared[1]


def test_a_kept_result_is_given_as_itself_in_what_is_shared(each: Engine) -> None:
    low, high = each.keep(one_more, [9, 99], None)
    shared: Any = (low, 7)
    assert list(each.map(between, range(3), shared)) == [7, 17, 27]
    shared = (1, high)
    kept = each.keep(between, range(3), shared)
    assert list(each.map(times, kept, 2)) == [200, 202, 204]


def test_an_error_is_raised_as_it_is(each: Engine) -> None:
    def broken(item: int, _: None) -> int:
        if item == 3:
            raise ValueError("article 3 has no features")
        return item

    results = each.map(broken, range(100), None)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^article 3 has no features$"):
        next(results)
    assert list(each.map(broken, range(3), None)) == [0, 1, 2]  # and work goes on


def test_finished_gives_every_result_once_with_its_place(each: Engine) -> None:
    shared = np.arange(1000.0)
    found = dict(each.finished(scaled, list(range(40)), shared))
    assert found == {item: item * shared.sum() for item in range(40)}
    assert list(each.finished(scaled, [], shared)) == []


def test_an_error_ends_what_is_finished_one_by_one(each: Engine) -> None:
    def broken(item: int, _: None) -> int:
        raise ValueError("article 3 has no features")

    with pytest.raises(ValueError, match=r"^article 3 has no features$"):
        list(each.finished(broken, list(range(100)), None))


def which(item: int, shared: Any) -> tuple[int, int]:
    return os.getpid(), id(shared)


def test_a_worker_unpacks_what_is_shared_once(each: Engine) -> None:
    seen = set(each.map(which, range(40), np.arange(10.0)))
    assert len(seen) == len({process for process, _ in seen})


def copied(item: int, shared: np.ndarray[Any, Any]) -> bool:
    return os.getpid() != item and shared.flags.writeable


def test_what_is_shared_is_no_copy(each: Engine) -> None:
    """Ray's processes read it where it lies in the object store; threads have the same object."""
    assert not any(each.map(copied, [os.getpid()] * 4, np.ones(100_000)))


def test_items_are_taken_a_few_at_a_time(each: Engine) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = each.map(scaled, items(), np.ones(1))
    next(results)
    assert taken < 10


def test_an_address_is_rays_alone() -> None:
    with pytest.raises(ValueError, match="it means nothing to 'local'"):
        engine("local", address="auto")


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="engine must be one of serial, local, ray, got 'spark'"):
        engine("spark")


@pytest.mark.parametrize("name", ["local", "ray"])
def test_workers_are_at_least_one(name: str) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1"):
        engine(name, workers=0)
