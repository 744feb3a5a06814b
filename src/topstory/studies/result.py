"""What a study found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from topstory.evaluation import Bucket, Outcome, Run, Tuning
from topstory.extras import require
from topstory.studies.logs.summaries import LogSummary
from topstory.studies.plan import entries
from topstory.studies.settings import Settings

if TYPE_CHECKING:
    from pyarrow import Table

    from topstory.report import Report


@dataclass(frozen=True)
class Study:
    """Every run of a study, and what follows from them.

    `runs()` and `table1()` are Arrow tables: pandas, polars and DuckDB take them as they are.
    """

    folder: Path
    settings: Settings
    logs: Mapping[str, LogSummary]  # by role
    tunings: Mapping[str, Tuning]  # by policy
    ridge_tunings: Mapping[str, Tuning] = field(repr=False)  # by policy, where ridges were searched
    tuned: Mapping[Run, Outcome] = field(repr=False)  # all runs on the tuning log
    evaluated: Mapping[Run, Outcome] = field(repr=False)  # all runs on the evaluation log
    seconds: float
    engine: str
    known_by: Mapping[str, str] = field(repr=False)  # what tells its logs from others, by role
    options: tuple[str, ...] = field(repr=False)  # what names them on the command line

    def chosen(self, policy: str, size: float = 1.0) -> Mapping[str, float]:
        """The parameter that was best on the tuning log."""
        return self.tunings[policy].best(size).parameters

    def outcomes(self, policy: str, size: float = 1.0) -> tuple[Outcome, ...]:
        """A policy's runs on the evaluation log with its chosen parameter: one for each seed."""
        return self._outcomes[policy, size]

    def buckets(self, policy: str, size: float, bucket: str) -> list[Bucket]:
        """The same, one bucket of each."""
        return [outcome.bucket(bucket) for outcome in self.outcomes(policy, size)]

    def reference(self, policy: str, log: str = "evaluation") -> Outcome:
        """`random` or `omniscient`, on either log."""
        runs = self.evaluated if log == "evaluation" else self.tuned
        return runs[Run.of(policy, {}, 1.0, self.settings.seed)]

    @property
    def _outcomes(self) -> dict[tuple[str, float], tuple[Outcome, ...]]:
        return {
            (entry.policy, entry.size): tuple(self.evaluated[run] for run in entry.runs)
            for entry in entries(self.settings, self.tunings)
        }

    def runs(self) -> Table:
        """One row for each replay and bucket."""
        from topstory.studies.report.runs_table import runs_table

        return runs_table(self)

    def table1(self) -> Table:
        """The paper's Table 1: one row for each policy and size."""
        from topstory.studies.report.table1 import as_arrow, table1

        return as_arrow(table1(self))

    def report(self) -> Report:
        """All that the report shows, as a record."""
        from topstory.studies.report.build import report

        return report(self)

    def write(self) -> Path:
        """Write `runs.parquet`, `table1.*`, the figures and `report.html`; its path."""
        require("report")
        from topstory.report.writing import write
        from topstory.studies.report.runs_table import write_runs

        write_runs(self, self.folder / "runs.parquet")
        return write(self.report(), self.folder)
