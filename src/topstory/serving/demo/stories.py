"""Sixty-five made-up stories on five topics, so that the demo looks like a page one would read."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

TOPICS = ("Politics", "Sports", "Business", "Science", "Arts")


class Story(NamedTuple):
    """A headline, and what it is about."""

    title: str
    summary: str


def _read() -> tuple[tuple[Story, ...], ...]:
    """By topic: `# Topic`, then lines of "title | summary"."""
    text = files("topstory.serving.demo").joinpath("stories.txt").read_text("utf-8")
    told: dict[str, list[Story]] = {}
    for line in filter(None, text.splitlines()):
        if line.startswith("# "):
            told[line[2:]] = found = []
        else:
            found.append(Story(*line.split(" | ")))
    return tuple(tuple(told[topic]) for topic in TOPICS)


STORIES = _read()


def story(topic: int, number: int) -> Story:
    """The story of that number on a topic; after the last one they begin anew, as a sequel.

    >>> story(1, 0).title
    'Underdogs from the hills reach the final'
    >>> story(1, 13).title
    'Underdogs from the hills reach the final, part 2'
    """
    told = STORIES[topic]
    found, part = told[number % len(told)], number // len(told) + 1
    return found if part == 1 else Story(f"{found.title}, part {part}", found.summary)


def picture(topic: int, number: int) -> str:
    """Where the pages have its picture.

    >>> picture(1, 3)
    '/pictures/sports-3.svg'
    """
    return f"/pictures/{TOPICS[topic].lower()}-{number}.svg"
