"""Every replay of a study as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from topstory.evaluation.replays.run import BUCKETS
from topstory.files import replaced_file
from topstory.policies.registry import TUNED

if TYPE_CHECKING:
    from topstory.studies.result import Study

FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("stage", pa.string()),
    ("policy", pa.string()),
    ("parameter", pa.string()),  # what was tuned: epsilon or alpha; null for a reference
    ("value", pa.float64()),
    ("ridge", pa.float64()),
    ("size", pa.float64()),
    ("seed", pa.int64()),
    ("bucket", pa.string()),
    ("trials", pa.int64()),
    ("payoff", pa.float64()),
    ("ctr", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("relative_ctr", pa.float64()),
    ("relative_low", pa.float64()),
    ("relative_high", pa.float64()),
    ("weighted_relative_ctr", pa.float64()),
    ("events", pa.int64()),
    ("seconds", pa.float64()),
)


def runs_table(study: Study) -> pa.Table:
    """One row for each replay and bucket, in the order of the plan."""
    rows = []
    for stage, outcomes in (("tuning", study.tuned), ("evaluation", study.evaluated)):
        for run, outcome in outcomes.items():
            numbers = dict(run.parameters)
            name = next((key for key in TUNED if key in numbers), None)
            for which in BUCKETS:
                bucket = outcome.bucket(which)
                rows.append(
                    (
                        *(stage, run.policy, name, numbers.get(name or "")),
                        *(numbers.get("ridge"), run.size, run.seed, which),
                        *(bucket.trials, bucket.payoff, bucket.ctr, *bucket.interval),
                        *(bucket.relative_ctr, *bucket.relative_interval),
                        *(bucket.weighted_relative_ctr, outcome.events, outcome.seconds),
                    )
                )
    columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    return pa.table(
        {
            name: pa.array(list(column), kind)
            for (name, kind), column in zip(FIELDS, columns, strict=True)
        }
    )


def write_runs(study: Study, path: Path) -> None:
    """Write the table as Parquet."""
    with replaced_file(path) as file:
        pq.write_table(runs_table(study), file)
