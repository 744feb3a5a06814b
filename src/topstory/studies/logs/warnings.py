"""Warnings about what the logs of a study cannot show, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topstory.evaluation.uncertainty.paths import too_few_paths
from topstory.policies import REGISTRY
from topstory.studies.logs.summaries import LogSummary


class StudyWarning(UserWarning):
    """The logs cannot answer what the study is asked.

    >>> issubclass(StudyWarning, UserWarning)
    True
    """


def study_warnings(
    policies: Sequence[str], logs: Mapping[str, LogSummary], repeats: int
) -> Iterator[str]:
    """Sentences without a full stop; none if all is well."""
    judged = logs.get("evaluation")
    if judged is not None:
        pool, articles = judged.inspection.median_pool or 0.0, judged.inspection.articles
        if too_few_paths(repeats, articles, pool):
            yield (
                "the evaluation log's articles hardly change, so what a learning path misses at "
                f"first it may miss to the end, and {repeats} paths cannot show how often: "
                "intervals may be too narrow; --repeats 20 tells"
            )
    log = logs.get("tuning")
    if log is None:
        return
    found = log.inspection
    users = [name for name in policies if REGISTRY[name].contextual]
    hybrid = [name for name in users if REGISTRY[name].model.article_features]
    if found.dimension == 1 and users:
        yield (
            f"contexts hold only the constant, so {join_names(users)} "
            f"{'know' if len(users) > 1 else 'knows'} no more about the user than egreedy and ucb "
            "do; give logs with contexts, or raw logs with profiles, one of them a log of random "
            "exploration as --exploration to learn features from, or leave these policies out "
            "(--policy egreedy,ucb)"
        )
    elif found.article_features is None and hybrid:
        yield (
            f"articles have no features, so {join_names(hybrid)} can share nothing among articles "
            "but their mean; give article features, or leave out hybrid policies"
        )
    if found.ctr == 0:
        yield (
            "the tuning log has no clicks, so no value of a parameter is known to be better than "
            "another; tune on a longer log"
        )


def join_names(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
