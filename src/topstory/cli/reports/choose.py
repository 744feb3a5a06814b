"""What `topstory choose --json` prints, and `choice.json` holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.evaluate import EvaluationReport, QuantityReport, evaluation_report
from topstory.cli.reports.evaluate import quantity_report as quantity

if TYPE_CHECKING:
    from topstory.evaluation import Selection


class ChoiceReport(msgspec.Struct, frozen=True):
    """The policy to run: the whole document."""

    format: Annotated[str, Meta(description="`topstory-choose`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    file: Annotated[str, Meta(description="the winner, trained on the whole log")]
    winner: str
    sure: Annotated[bool, Meta(description="whether it surely earns more than what was logged")]
    verdict: Annotated[str, Meta(description="in words")]
    why: Annotated[str, Meta(description="by which method, and why that one")]
    rivals: Annotated[tuple[str, ...], Meta(description="that may be as good as the winner")]
    together: Annotated[
        dict[str, QuantityReport],
        Meta(description="lifts over what was logged; 95 % for all of them at once"),
    ]
    evaluation: Annotated[
        EvaluationReport, Meta(description="each policy alone, as `evaluate` prints it")
    ]


def choice_report(log: str, file: str, found: Selection, warnings: list[str]) -> ChoiceReport:
    """A selection as a record."""
    return ChoiceReport(
        format="topstory-choose",
        version=1,
        log=log,
        file=file,
        winner=found.winner,
        sure=found.sure,
        verdict=found.verdict,
        why=found.why,
        rivals=found.rivals,
        together={name: quantity(lift) for name, lift in found.together.items()},
        evaluation=evaluation_report(log, found.evaluation, warnings),
    )
