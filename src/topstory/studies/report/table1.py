"""Table 1: CTR and lift over ε-greedy of every policy, bucket and data size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import replace

from topstory.evaluation.comparison import BASELINE
from topstory.policies.registry import REGISTRY, TUNED
from topstory.report import Cell, Number, Row, Table1, published
from topstory.report.records import finite
from topstory.report.table1_formats import ADDED
from topstory.studies.report.candidates import DEPLOYMENT, LEARNING, Candidate, Candidates, value
from topstory.studies.report.days import spread
from topstory.studies.report.estimates import relative_ctr

if TYPE_CHECKING:
    from topstory.studies.settings import StudySettings


def table1(settings: StudySettings, candidates: Candidates) -> Table1:
    """The table; the highest number of each column is marked."""
    policies, sizes = settings.policies, settings.sizes
    cells = {
        (policy, size): _cell(
            candidates.tuned[policy, size], size, candidates.tuned[BASELINE, size]
        )
        for policy in policies
        for size in sizes
    }
    for size in sizes:
        for column in ("deploy", "learn"):
            key = max(
                ((policy, size) for policy in policies),
                key=lambda key: value(getattr(cells[key], column)),
            )
            cells[key] = replace(cells[key], **{f"best_{column}": True})
    return Table1(
        sizes=sizes,
        rows=tuple(
            Row(policy, REGISTRY[policy].paper, tuple(cells[policy, size] for size in sizes))
            for policy in policies
        ),
        omniscient=relative_ctr(candidates.reference.bucket("deployment")),
        paper_omniscient=published.OMNISCIENT,
    )


def _cell(candidate: Candidate, size: float, base: Candidate) -> Cell:
    paper: tuple[float | None, ...] = (None,) * 4
    # Beside the numbers of another site's log they would be compared with what they are not.
    simulated = candidate.truth() is not None
    if simulated and candidate.policy in published.TABLE_1 and size in published.SIZES:
        place = published.SIZES.index(size)
        lifts = (percent / 100 for percent in published.LIFTS[candidate.policy][place])
        paper = (*published.TABLE_1[candidate.policy][place], *lifts)
    return Cell(
        size=size,
        parameters=candidate.parameters,
        repeats=len(candidate.outcomes),
        deploy=candidate.ctr(),
        learn=candidate.ctr(LEARNING),
        deploy_lift=_lift(candidate, base, DEPLOYMENT),
        learn_lift=_lift(candidate, base, LEARNING),
        best_deploy=False,
        best_learn=False,
        paper_deploy=paper[0],
        paper_learn=paper[1],
        paper_deploy_lift=paper[2],
        paper_learn_lift=paper[3],
        total=candidate.total.value,
        true_deploy=candidate.truth(),
        true_learn=candidate.truth(LEARNING),
        day_sd=spread(candidate.days),
        cost=finite(candidate.exploration.clicks.value),
    )


def _lift(candidate: Candidate, base: Candidate, bucket: str) -> Number:
    if candidate is base:
        return Number(None if base.ctr(bucket).value is None else 0.0, sure=False)
    return candidate.over(base, bucket)


def as_arrow(table: Table1) -> pa.Table:
    """One row for each policy and size."""
    rows = []
    for row in table.rows:
        for cell in row.cells:
            columns: dict[str, object] = {
                "policy": row.policy,
                "algorithm": row.name,
                "size": cell.size,
                **{name: cell.parameters.get(name) for name in (*TUNED, "ridge")},
                "repeats": cell.repeats,
            }
            for name in ("deploy", "learn", "deploy_lift", "learn_lift"):
                number: Number = getattr(cell, name)
                columns |= {
                    name: number.value,
                    f"{name}_low": number.low,
                    f"{name}_high": number.high,
                }
                columns[f"paper_{name}"] = getattr(cell, f"paper_{name}")
            columns |= {name: getattr(cell, name) for name in ADDED}
            rows.append(columns)
    return pa.Table.from_pylist(rows)
