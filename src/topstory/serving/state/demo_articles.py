"""Twenty articles to begin with, so that `topstory serve --demo` has something to show."""

from __future__ import annotations

import numpy as np

from topstory.serving.journal.records import ArticleFacts

TOPICS = ("Politics", "Sports", "Business", "Science", "Arts")
_STORIES = ("what changed overnight", "five things to know", "the long read", "in pictures")


def demo_articles() -> list[ArticleFacts]:
    """Four stories on each of five topics; features are topic memberships, and the constant 1.

    >>> facts = demo_articles()
    >>> len(facts), facts[0].id, facts[0].title, len(facts[0].features)
    (20, 'politics-1', 'Politics: what changed overnight', 6)
    """
    random = np.random.default_rng(0)
    made = []
    for number, topic in enumerate(TOPICS):
        for place, story in enumerate(_STORIES):
            shares = random.dirichlet(np.where(np.arange(len(TOPICS)) == number, 4.0, 0.4))
            made.append(
                ArticleFacts(
                    id=f"{topic.lower()}-{place + 1}",
                    features=(*np.round(shares, 4).tolist(), 1.0),
                    title=f"{topic}: {story}",
                    link=f"https://example.com/{topic.lower()}/{place + 1}",
                )
            )
    return made
