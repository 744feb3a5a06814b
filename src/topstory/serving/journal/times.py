"""Times as people and JSON write them."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=64)  # all decisions of one turn of the event loop expire together
def moment(microseconds: int) -> datetime:
    """Microseconds since 1970 as a time in UTC.

    >>> moment(1_241_136_000_000_000)
    datetime.datetime(2009, 5, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds(when: datetime) -> int:
    """The reverse.

    >>> microseconds(moment(1_241_136_000_000_007))
    1241136000000007
    """
    return (when - _EPOCH) // timedelta(microseconds=1)
