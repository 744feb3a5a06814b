"""What `topstory plan --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from topstory.evaluation import Plan


class PlanOption(msgspec.Struct, frozen=True):
    """One way to see the lift."""

    share: Annotated[float, Meta(description="of visitors who are shown an article at random")]
    visits: Annotated[int, Meta(description="in all, until the lift would be seen")]
    days: Annotated[float | None, Meta(description="at the log's pace; null: it has no times")]
    cost: Annotated[float, Meta(description="payoff lost, compared with what is shown today")]
    cost_share: Annotated[float, Meta(description="the same, of what those visits earn today")]


class PlanReport(msgspec.Struct, frozen=True):
    """How a lift could be seen: the whole document."""

    format: Annotated[str, Meta(description="`topstory-plan`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    lift: float
    value: Annotated[float, Meta(description="what the log earns per visit")]
    random_value: Annotated[
        float | None, Meta(description="what random articles earn; null: the log does not say")
    ]
    pool_size: Annotated[float, Meta(description="articles in a pool, on average")]
    design_effect: Annotated[
        float, Meta(description="as many events tell as much as an independent one")
    ]
    visits_per_day: float | None
    options: tuple[PlanOption, ...]


def plan_report(log: str, found: Plan) -> PlanReport:
    """A plan as a record."""
    return PlanReport(
        format="topstory-plan",
        version=1,
        log=log,
        lift=found.lift,
        value=found.value,
        random_value=found.random_value,
        pool_size=found.pool_size,
        design_effect=found.design_effect,
        visits_per_day=found.visits_per_day,
        options=tuple(
            PlanOption(each.share, each.visits, each.days, each.cost, each.cost_share)
            for each in found.options
        ),
    )
