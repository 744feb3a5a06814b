"""The numbers of the paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topstory.evaluation import Bucket, Outcome, Run
from topstory.evaluation.tuning.grids import parameter_name
from topstory.kernels.scans.replay import PAYOFF, TRIALS
from topstory.policies import REGISTRY
from topstory.report import Curve, CurvePoint, Histogram, Lifted, Scatter, Series
from topstory.report.records import Late, finite
from topstory.studies.logs.summaries import HISTOGRAM_BINS, Memberships
from topstory.studies.report.estimates import number_of, relative_ctr

if TYPE_CHECKING:
    from topstory.studies.result import Study

MAX_ARTICLES, MIN_TRIALS = 50, 100  # of a policy in Figure 3; of each article there
MAX_WINDOWS = 56  # of the evaluation log: three hours each in a week


def curves(study: Study) -> tuple[Curve, ...]:
    """Figure 2: relative CTR against ε or α on the tuning log, with the ridge that was chosen."""
    return tuple(
        Curve(
            policy=policy,
            name=REGISTRY[policy].paper,
            parameter=parameter_name(policy),
            size=size,
            points=tuple(
                CurvePoint(
                    point.parameter,
                    number_of(point.deployment),
                    number_of(point.learning),
                    point.parameters == best,
                )
                for point in tuning.curve(size)
                if point.parameters.get("ridge") == best.get("ridge")
            ),
        )
        for policy, tuning in study.tunings.items()
        for size in tuning.sizes
        for best in [study.chosen(policy, size)]
    )


def late(study: Study) -> tuple[Late, ...]:
    """Relative CTR by delay, of the first learning path; nothing if no delay was asked for."""
    size, delays = max(study.settings.sizes), study.settings.delays
    found = []
    for policy in study.settings.policies if delays else ():
        given = study.chosen(policy, size)
        runs = [Run.of(policy, given, size, study.settings.seed, each) for each in delays]
        outcomes = [study.outcomes(policy, size)[0], *(study.delayed[run] for run in runs)]
        found.append(
            Late(
                policy,
                REGISTRY[policy].paper,
                (0.0, *delays),
                tuple(relative_ctr(each.bucket("deployment")) for each in outcomes),
                tuple(relative_ctr(each.bucket("learning")) for each in outcomes),
            )
        )
    return tuple(found)


def scatters(study: Study) -> tuple[Scatter, ...]:
    """Figure 3: base and lifted CTR of the articles that each policy chose most, learning bucket.

    It uses all data, as the paper does, or else the largest size that was run. A policy that starts
    from a prior is left out if the same one without is there.
    """
    size, drawn = max(study.settings.sizes), study.settings.policies
    return tuple(
        _scatter(policy, panel, study.outcomes(policy, size)[0])
        for policy in study.settings.policies
        if (panel := REGISTRY[policy].model.panel) is not None
        and not (REGISTRY[policy].from_prior and policy.removesuffix("-prior") in drawn)
    )


def _scatter(policy: str, panel: str, outcome: Outcome) -> Scatter:
    random = outcome.bucket("learning").log_sums
    base_ctr = float(random[:, PAYOFF].sum() / random[:, TRIALS].sum())
    most = sorted(outcome.by_article.items(), key=lambda item: -item[1].shown)[:MAX_ARTICLES]
    found = [
        Lifted(article, each.shown, each.base_ctr / base_ctr, each.ctr / base_ctr)
        for article, each in most
        if each.shown >= MIN_TRIALS and each.base_shown and base_ctr > 0
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
        edges=tuple(np.linspace(0, 1, HISTOGRAM_BINS + 1).round(10).tolist()),
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
    together = -(-len(bucket.sums) // MAX_WINDOWS)
    firsts = np.arange(0, len(bucket.sums), together)
    ours, base = (np.add.reduceat(sums, firsts) for sums in (bucket.sums, bucket.log_sums))
    random = bucket.log_sums[:, PAYOFF].sum() / bucket.log_sums[:, TRIALS].sum()

    def relative(
        sums: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    ) -> tuple[float | None, ...]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return tuple(finite(each) for each in sums[:, PAYOFF] / sums[:, TRIALS] / random)

    return Series(
        policy,
        REGISTRY[policy].paper,
        tuple(str(start) for start in bucket.blocks.starts()[firsts]),
        relative(ours),
        relative(base),
    )
