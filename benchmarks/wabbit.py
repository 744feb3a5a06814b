"""Vowpal Wabbit's own parsers, in this process, and the texts that they are given."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.yahoo import START

# With --noop alone Vowpal Wabbit refuses dsjson at its first line: such a label needs a bandit.
ARGUMENTS = {"dsjson": "--dsjson --cb_adf --noop -t", "r6b": "--noop -t"}
ACTIONS = 20
NOTES = [
    "Vowpal Wabbit runs in this process, imported beforehand; its time includes setting up and "
    "ending a learner. For r6b it is `--noop`: nothing is learned or predicted. dsjson it refuses "
    "with that alone, because the label is a bandit's: `--cb_adf --noop -t` adds a pass over the "
    "parsed actions to its time. That it reads every line is seen before the time is taken.",
    "Vowpal Wabbit cannot read r6b: it is given the same events in its own text, the time and the "
    "article shown as a tag, the pool as a namespace of ids. The text differs, so compare lines, "
    "not MB. It hashes every id of every line; the reader parses a pool that repeats only once.",
    "dsjson is the same file for both. The reader parses a list of actions only once if its bytes "
    "repeat, and else each action only once; in the second, shorter file each line has the actions "
    "in an order of its own, so that no list repeats. Both hash the names of features, the reader "
    "into 32 places. Vowpal Wabbit parses in a thread of its own.",
]


def parse(format: str, path: Path) -> None:
    """Read the file and learn nothing."""
    from vowpalwabbit import Workspace

    Workspace(f"{ARGUMENTS[format]} --quiet --no_stdin -d {path}").finish()


def parsed(format: str, path: Path) -> int:
    """How many examples it finds in the file."""
    from vowpalwabbit import Workspace

    learner = Workspace(f"{ARGUMENTS[format]} --no_stdin -d {path}", enable_logging=True)
    learner.finish()
    found = re.search(r"number of examples = (\d+)", "\n".join(learner.get_log()))
    assert found is not None
    return int(found[1])


def write_r6b_as_vw(source: Path, path: Path) -> None:
    """Each line of r6b as an example in Vowpal Wabbit's text."""
    with source.open() as lines, path.open("w") as file:
        for line in lines:
            heading, user, *articles = line.split("|")
            time, shown, click = heading.split()
            pool = " ".join(article.strip() for article in articles)
            file.write(f"{click} {time}/{shown}|{user.strip()} |pool {pool}\n")


def write_dsjson(path: Path, events: int, mixed: bool, seed: int = 0) -> None:
    """20 actions of three features, one replaced every 2,000 events, and a user of four features.

    Args:
        path: the file.
        events: how many lines.
        mixed: the actions come in another order in each line.
        seed: of everything random.
    """
    random = np.random.default_rng(seed)
    actions = [_action(number, random) for number in range(ACTIONS)]
    with path.open("w") as file:
        for event in range(events):
            if event and event % 2_000 == 0:
                fresh = _action(ACTIONS + event // 2_000, random)
                actions[int(random.integers(ACTIONS))] = fresh
            if mixed:
                actions = [actions[i] for i in random.permutation(ACTIONS)]
            shown = int(random.integers(ACTIONS))
            order = [shown, *(i for i in range(ACTIONS) if i != shown)]
            line = {
                "_label_cost": -float(random.random() < 0.04),
                "_label_probability": 1 / ACTIONS,
                "_label_Action": shown + 1,
                "_labelIndex": shown,
                "Timestamp": datetime.fromtimestamp(START + event, UTC).strftime("%FT%TZ"),
                "Version": "1",
                "EventId": f"{event:016x}",
                "a": [i + 1 for i in order],
                "c": {
                    "User": {
                        "tier": f"tier-{random.integers(5)}",
                        "city": f"city-{random.integers(200)}",
                        "age": round(float(random.random()), 3),
                        "visits": int(random.integers(50)),
                    },
                    "_multi": actions,
                },
                "p": [1 / ACTIONS] * ACTIONS,
            }
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _action(number: int, random: np.random.Generator) -> dict[str, object]:
    return {
        "id": f"article-{number}",
        "Topic": {
            "kind": f"kind-{random.integers(12)}",
            "source": f"source-{random.integers(40)}",
            "length": round(float(random.random()), 3),
        },
    }
