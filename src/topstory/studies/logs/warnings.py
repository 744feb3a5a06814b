"""What a study's logs cannot show, whatever it runs; and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topstory.policies import REGISTRY
from topstory.studies.logs.summaries import LogSummary


class StudyWarning(UserWarning):
    """The logs cannot show what the study is asked.

    >>> issubclass(StudyWarning, UserWarning)
    True
    """


def cautions(policies: Sequence[str], logs: Mapping[str, LogSummary]) -> Iterator[str]:
    """Sentences, without a full stop; none where all is well."""
    log = logs.get("tuning")
    if log is None:
        return
    found = log.inspection
    users = [name for name in policies if REGISTRY[name].contextual]
    hybrid = [name for name in users if REGISTRY[name].model.article_features]
    if found.dimension == 1 and users:
        yield (
            f"contexts are the constant alone, so {listed(users)} "
            f"{'know' if len(users) > 1 else 'knows'} nothing of the user, no more than "
            "egreedy and ucb do: give logs with contexts; or raw logs, with profiles of users "
            "and articles, and one of random exploration as --exploration, of which features are "
            "learned; or leave these policies out (--policy egreedy,ucb)"
        )
    elif found.article_features is None and hybrid:
        yield (
            f"articles have no features, so {listed(hybrid)} can share no more among articles "
            "than one mean of all: give article features, or leave it out"
        )
    if found.ctr == 0:
        yield (
            "nothing was clicked in the tuning log, so no value of a parameter is known to be "
            "better than another: tune on a longer log"
        )


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
