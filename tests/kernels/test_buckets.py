"""The numbers of the buckets are stored in journals, so they are fixed."""

from topstory.kernels.buckets import DEPLOYMENT, LEARNING, UNIFORM
from topstory.serving.api.messages import BUCKETS


def test_the_numbers_that_journals_store_never_change() -> None:
    assert (LEARNING, DEPLOYMENT, UNIFORM) == (0, 1, 2)


def test_the_service_names_the_buckets_by_these_numbers() -> None:
    assert BUCKETS[LEARNING] == "learning"
    assert BUCKETS[DEPLOYMENT] == "deployment"
    assert BUCKETS[UNIFORM] == "uniform"
