"""Twenty articles to begin with, so that `topstory serve --demo` has something to show."""

from __future__ import annotations

import numpy as np

from topstory.serving.demo.stories import TOPICS, picture, story
from topstory.serving.journal.records import ArticleFacts

STORIES_PER_TOPIC = 4


def demo_articles() -> list[ArticleFacts]:
    """Four stories on each of five topics; features are topic memberships, and the constant 1.

    >>> facts = demo_articles()
    >>> len(facts), facts[0].id, facts[0].title, len(facts[0].features)
    (20, 'politics-1', 'Harbour towns win a say over the new ferry tax', 6)
    """
    random = np.random.default_rng(0)
    made = []
    for number, topic in enumerate(TOPICS):
        for place in range(STORIES_PER_TOPIC):
            shares = random.dirichlet(np.where(np.arange(len(TOPICS)) == number, 4.0, 0.4))
            told = story(number, place)
            made.append(
                ArticleFacts(
                    id=f"{topic.lower()}-{place + 1}",
                    features=(*np.round(shares, 4).tolist(), 1.0),
                    title=told.title,
                    link=f"https://example.com/{topic.lower()}/{place + 1}",
                    summary=told.summary,
                    picture=picture(number, place),
                )
            )
    return made
