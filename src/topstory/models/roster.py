"""Which article sits in which slot of a model's arrays."""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray


def article_key(article: str) -> int:
    """64 bits that stand for an article id wherever random priorities are drawn.

    They depend on the id alone, so a choice does not depend on the order of pools or slots.

    >>> article_key("109513") == article_key("109513") != article_key("109514")
    True
    """
    return int.from_bytes(blake2b(article.encode(), digest_size=8).digest(), "little")


class Roster:
    """Article ids and their slots. The slots of removed articles are used again.

    >>> roster = Roster()
    >>> [roster.add(article) for article in ("a", "b", "c")]
    [0, 1, 2]
    >>> roster.remove("b"), roster.add("d"), len(roster)
    (1, 1, 3)
    """

    def __init__(self, ids: list[str | None] | None = None) -> None:
        self.ids: list[str | None] = list(ids or [])  # by slot; None where one was removed
        self.slots = {article: slot for slot, article in enumerate(self.ids) if article}
        keys = [article_key(article or "") for article in self.ids]
        self.keys: NDArray[np.uint64] = np.array(keys, np.uint64)  # by slot

    def __contains__(self, article: object) -> bool:
        return article in self.slots

    def __len__(self) -> int:
        return len(self.slots)

    def slot(self, article: str) -> int:
        """The article's slot; KeyError if it has none."""
        return self.slots[article]

    def add(self, article: str) -> int:
        """Give the article a slot: one that became free, or a new one at the end."""
        free = len(self.slots) < len(self.ids)
        slot = self.ids.index(None) if free else len(self.ids)
        if free:
            self.ids[slot] = article
        else:
            self.ids.append(article)
            if slot >= len(self.keys):
                self.keys = np.concatenate([self.keys, np.zeros(max(16, slot), np.uint64)])
        self.keys[slot] = article_key(article)
        self.slots[article] = slot
        return slot

    def remove(self, article: str) -> int:
        """Free the article's slot. Returns which one it was."""
        slot = self.slots.pop(article)
        self.ids[slot] = None
        return slot
