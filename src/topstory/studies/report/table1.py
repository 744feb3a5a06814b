"""Table 1: CTR and lift over ε-greedy of every policy, bucket and data size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import replace

from topstory.evaluation import mean_lift, mean_relative_ctr
from topstory.evaluation.comparison import BASELINE
from topstory.evaluation.run import BUCKETS
from topstory.policies import REGISTRY
from topstory.report import Cell, Number, Row, Table1, published
from topstory.studies.report.numbers import estimated, number

if TYPE_CHECKING:
    from topstory.studies.result import Study


def table1(study: Study) -> Table1:
    """The table; the highest of each column is marked."""
    policies, sizes = study.settings.policies, study.settings.sizes
    cells = {(policy, size): _cell(study, policy, size) for policy in policies for size in sizes}
    for size in sizes:
        for column in ("deploy", "learn"):
            key = max(
                ((policy, size) for policy in policies),
                key=lambda key: _value(getattr(cells[key], column)),
            )
            cells[key] = replace(cells[key], **{f"best_{column}": True})
    omniscient = study.reference("omniscient").bucket("deployment")
    return Table1(
        sizes=sizes,
        rows=tuple(
            Row(policy, REGISTRY[policy].paper, tuple(cells[policy, size] for size in sizes))
            for policy in policies
        ),
        omniscient=number(omniscient.relative_ctr, omniscient.relative_interval),
        paper_omniscient=published.OMNISCIENT,
    )


def _cell(study: Study, policy: str, size: float) -> Cell:
    deploy, learn = (study.buckets(policy, size, name) for name in BUCKETS)
    base_deploy, base_learn = (study.buckets(BASELINE, size, name) for name in BUCKETS)
    paper: tuple[float | None, ...] = (None,) * 4
    if policy in published.TABLE_1 and size in published.SIZES:
        place = published.SIZES.index(size)
        lifts = (percent / 100 for percent in published.LIFTS[policy][place])
        paper = (*published.TABLE_1[policy][place], *lifts)
    return Cell(
        size=size,
        parameters=dict(study.chosen(policy, size)),
        repeats=len(deploy),
        deploy=estimated(mean_relative_ctr(deploy)),
        learn=estimated(mean_relative_ctr(learn)),
        deploy_lift=estimated(mean_lift(deploy, base_deploy)),
        learn_lift=estimated(mean_lift(learn, base_learn)),
        best_deploy=False,
        best_learn=False,
        paper_deploy=paper[0],
        paper_learn=paper[1],
        paper_deploy_lift=paper[2],
        paper_learn_lift=paper[3],
    )


def _value(found: Number) -> float:
    return float("-inf") if found.value is None else found.value


def as_arrow(table: Table1) -> pa.Table:
    """One row for each policy and size."""
    rows = []
    for row in table.rows:
        for cell in row.cells:
            told: dict[str, object] = {
                "policy": row.policy,
                "algorithm": row.name,
                "size": cell.size,
                "epsilon": cell.parameters.get("epsilon"),
                "alpha": cell.parameters.get("alpha"),
                "repeats": cell.repeats,
            }
            for column in ("deploy", "learn", "deploy_lift", "learn_lift"):
                found: Number = getattr(cell, column)
                told |= {
                    column: found.value,
                    f"{column}_low": found.low,
                    f"{column}_high": found.high,
                }
                told[f"paper_{column}"] = getattr(cell, f"paper_{column}")
            rows.append(told)
    return pa.Table.from_pylist(rows)
