"""The result of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from topstory.evaluation import Bucket, Outcome, Run, Tuning
from topstory.extras import require
from topstory.studies.logs.summaries import LogSummary
from topstory.studies.plan import Recommended, evaluation_cells
from topstory.studies.settings import StudySettings

if TYPE_CHECKING:
    from pyarrow import Table

    from topstory.report import Report


@dataclass(frozen=True)
class Study:
    """Every run of a study, and its tables and report.

    `runs()` and `table1()` are Arrow tables: pandas, polars and DuckDB take them as they are.
    """

    folder: Path
    settings: StudySettings
    logs: Mapping[str, LogSummary]  # by role
    tunings: Mapping[str, Tuning]  # by policy
    recommended: Recommended = field(repr=False)  # parameters by policy and size
    tuned: Mapping[Run, Outcome] = field(repr=False)  # all runs on the tuning log
    evaluated: Mapping[Run, Outcome] = field(repr=False)  # all runs on the evaluation log
    seconds: float
    engine: str
    identities: Mapping[str, str] = field(repr=False)  # of its logs, by role
    options: tuple[str, ...] = field(repr=False)  # that name the logs on the command line
    delayed: Mapping[Run, Outcome] = field(default_factory=dict, repr=False)  # payoffs came late

    def chosen(self, policy: str, size: float = 1.0) -> Mapping[str, float]:
        """The parameters that the tuning log recommends."""
        return self.recommended[policy, size].parameters

    def advised(self) -> tuple[str, Mapping[str, float]]:
        """The policy that the summary recommends, and its parameters."""
        from topstory.studies.report.candidates import Candidates

        policy = Candidates.of(self).advised().policy
        return policy, self.chosen(policy, max(self.settings.sizes))

    def outcomes(self, policy: str, size: float = 1.0) -> tuple[Outcome, ...]:
        """The runs of a policy on the evaluation log with these parameters: one for each seed."""
        return self._outcomes[policy, size]

    def buckets(self, policy: str, size: float, bucket: str) -> list[Bucket]:
        """One bucket of each of these runs."""
        return [outcome.bucket(bucket) for outcome in self.outcomes(policy, size)]

    def reference(self, policy: str, log: str = "evaluation") -> Outcome:
        """The run of `random` or `omniscient`, on either log."""
        runs = self.evaluated if log == "evaluation" else self.tuned
        return runs[Run.of(policy, {}, 1.0, self.settings.seed)]

    @cached_property
    def _outcomes(self) -> dict[tuple[str, float], tuple[Outcome, ...]]:
        return {
            (cell.policy, cell.size): tuple(self.evaluated[run] for run in cell.runs)
            for cell in evaluation_cells(self.settings, self.recommended)
        }

    def runs(self) -> Table:
        """One row for each replay and bucket."""
        from topstory.studies.report.runs_table import runs_table

        return runs_table(self)

    def table1(self) -> Table:
        """The paper's Table 1: one row for each policy and size."""
        from topstory.studies.report.table1 import as_arrow

        return as_arrow(self.report().table)

    def report(self) -> Report:
        """Everything that the report shows, as a record; computed once."""
        return self._report

    @cached_property
    def _report(self) -> Report:
        from topstory.studies.report.build import build_report

        return build_report(self)

    def write(self) -> Path:
        """Write `runs.parquet`, `table1.*`, the figures and `report.html`; returns its path."""
        require("report")
        from topstory.report.folder import write_report
        from topstory.studies.report.runs_table import write_runs

        write_runs(self, self.folder / "runs.parquet")
        return write_report(self.report(), self.folder)
