"""The three buckets, by name."""

from typing import Literal

Bucket = Literal["learning", "deployment", "uniform"]
BUCKETS: tuple[Bucket, ...] = ("learning", "deployment", "uniform")  # by their kernel's number
