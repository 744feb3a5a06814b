"""What `topstory study --json` prints."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.replay import SavedReport
from topstory.report.records import Table1


class StudyReport(msgspec.Struct, frozen=True):
    """A study: the whole document."""

    format: Annotated[str, Meta(description="`topstory-study`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    out: Annotated[str, Meta(description="folder of the study")]
    report: Annotated[str, Meta(description="path of report.html")]
    summary: Annotated[tuple[str, ...], Meta(description="sentences, the most important first")]
    table: Annotated[Table1, Meta(description="relative CTRs on the evaluation log")]
    replays: Annotated[int, Meta(description="number of replays")]
    seconds: Annotated[float, Meta(description="duration, over all sessions")]
    saved: Annotated[
        SavedReport | None, Meta(description="the policy that --save wrote, if it was asked to")
    ] = None
    learning_share: Annotated[
        float, Meta(description="share of visits that learn, in `total` and `cost`")
    ] = 0.1
