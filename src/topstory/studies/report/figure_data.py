"""The numbers of the paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topstory.evaluation import Bucket, Outcome, mean_lift, mean_relative_ctr
from topstory.kernels.replay import PAYOFF, TRIALS
from topstory.policies import REGISTRY
from topstory.report import Curve, CurvePoint, Histogram, Lifted, Ridge, Scatter, Series
from topstory.studies.logs.summaries import BINS, Memberships
from topstory.studies.plan import entries
from topstory.studies.report.numbers import estimated, known

if TYPE_CHECKING:
    from topstory.studies.result import Study

MOST_CHOSEN, FEWEST = 50, 100  # articles in Figure 3, and trials that each of them needs
WINDOWS = 56  # at most, over the evaluation log: of three hours in a week


def curves(study: Study) -> tuple[Curve, ...]:
    """Figure 2: relative CTR against ε or α on the tuning log, every policy and size."""
    return tuple(
        Curve(
            policy=policy,
            name=REGISTRY[policy].paper,
            parameter=next(iter(tuning.points[0].parameters)),
            size=size,
            points=tuple(
                CurvePoint(
                    point.parameter,
                    estimated(point.deployment),
                    estimated(point.learning),
                    point is tuning.best(size),
                )
                for point in tuning.curve(size)
            ),
        )
        for policy, tuning in study.tunings.items()
        for size in tuning.sizes
    )


def scatters(study: Study) -> tuple[Scatter, ...]:
    """Figure 3: base and lifted CTR of the articles that each policy chose most, learning bucket.

    The paper uses all data; so does this, or the largest size that was run.
    """
    size = max(study.settings.sizes)
    return tuple(
        _scatter(policy, panel, study.outcomes(policy, size)[0])
        for policy in study.settings.policies
        if (panel := REGISTRY[policy].model.panel) is not None
    )


def _scatter(policy: str, panel: str, outcome: Outcome) -> Scatter:
    random = outcome.bucket("learning").log_sums
    base_ctr = float(random[:, PAYOFF].sum() / random[:, TRIALS].sum())
    most = sorted(outcome.by_article.items(), key=lambda item: -item[1].shown)[:MOST_CHOSEN]
    found = [
        Lifted(article, told.shown, told.base_ctr / base_ctr, told.ctr / base_ctr)
        for article, told in most
        if told.shown >= FEWEST and told.base_shown and base_ctr > 0
    ]
    expected = sum(each.trials * each.base for each in found)
    lifted = sum(each.trials * each.lifted for each in found)
    return Scatter(
        policy,
        REGISTRY[policy].paper,
        panel,
        tuple(found),
        lifted / expected - 1 if expected else None,
    )


def histogram(found: Memberships | None) -> Histogram | None:
    """Figure 5."""
    if found is None:
        return None
    counts = np.array(found.counts)
    return Histogram(
        edges=tuple(np.linspace(0, 1, BINS + 1).round(10).tolist()),
        shares=tuple((counts / counts.sum()).tolist()),
        above_half=found.above_half,
        above_four_fifths=found.above_four_fifths,
    )


def series(study: Study) -> tuple[Series, ...]:
    """The deployment bucket's CTR over time, all data; divided by random's over the whole log."""
    size = max(study.settings.sizes)
    return tuple(
        _series(policy, study.outcomes(policy, size)[0].bucket("deployment"))
        for policy in study.settings.policies
    )


def _series(policy: str, bucket: Bucket) -> Series:
    together = -(-len(bucket.sums) // WINDOWS)
    firsts = np.arange(0, len(bucket.sums), together)
    ours, base = (np.add.reduceat(sums, firsts) for sums in (bucket.sums, bucket.log_sums))
    random = bucket.log_sums[:, PAYOFF].sum() / bucket.log_sums[:, TRIALS].sum()

    def relative(
        sums: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    ) -> tuple[float | None, ...]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return tuple(known(each) for each in sums[:, PAYOFF] / sums[:, TRIALS] / random)

    return Series(
        policy,
        REGISTRY[policy].paper,
        tuple(str(start) for start in bucket.blocks.starts()[firsts]),
        relative(ours),
        relative(base),
    )


def ridges(study: Study) -> tuple[Ridge, ...]:
    """What searching the ridge earned over the paper's 1, in the deployment bucket."""
    found = []
    for entry in entries(study.settings, study.ridge_tunings):
        tuned = [study.evaluated[run].bucket("deployment") for run in entry.runs]
        fixed = study.buckets(entry.policy, entry.size, "deployment")
        best = study.ridge_tunings[entry.policy].best(entry.size)
        found.append(
            Ridge(
                policy=entry.policy,
                name=REGISTRY[entry.policy].paper,
                size=entry.size,
                ridge=best.parameters.get("ridge", 1.0),
                parameter=best.parameter,
                fixed=estimated(mean_relative_ctr(fixed)),
                tuned=estimated(mean_relative_ctr(tuned)),
                gain=estimated(mean_lift(tuned, fixed)),
            )
        )
    return tuple(found)
