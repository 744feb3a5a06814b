"""The payoff models that estimators such as dr need, learned as sums over the parts of a log."""

from __future__ import annotations

from collections.abc import Callable

from topstory.engines import Engine
from topstory.evaluation.off_policy.folders.survey import JudgedPart
from topstory.evaluation.off_policy.weighting.payoff_model import FOLDS, folds_of, new_model
from topstory.events.folder.parts import LogFolder
from topstory.models.priors.sums import ArticleSums
from topstory.policies import Policy
from topstory.policies.sum_learner import LogKind, absorb_apart, sums_apart


def learned_payoffs(
    folder: LogFolder,
    parts: list[JudgedPart],
    engine: Engine,
    progress: Callable[[int], object],
) -> list[Policy]:
    """The model of each fold, learned from the others: `PayoffModel`'s to 1e-9."""
    start, events = parts[0].part.start, 0
    whole: list[ArticleSums] = []
    kinds: list[LogKind] = []
    found = engine.map(_sum_folds, parts, (folder, start))
    for part, (kind, sums) in zip(parts, found, strict=True):
        whole = [a.plus(b) for a, b in zip(whole, sums, strict=True)] if whole else sums
        kinds = [kind]  # all parts are of one kind
        events += part.part.events
        progress(part.part.events)
    learned = []
    for fold in range(FOLDS):
        others = [sums for other, sums in enumerate(whole) if other != fold]
        model = new_model()
        absorb_apart(model, kinds[0], others[0].plus(others[1]), events)
        learned.append(model)
    return learned


def _sum_folds(
    judged: JudgedPart, shared: tuple[LogFolder, int]
) -> tuple[LogKind, list[ArticleSums]]:
    folder, start = shared
    log = folder.read(judged.part)
    fold = folds_of(log, judged.part.start - start)
    sums = [sums_apart(new_model(), log[fold == each], None) for each in range(FOLDS)]
    # A payoff model reads contexts alone, whoever made them.
    return LogKind.of(log)._replace(feature_model=None, event_features=0), sums
