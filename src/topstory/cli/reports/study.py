"""What `topstory study --json` prints."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from topstory.report.records import Table1


class StudyReport(msgspec.Struct, frozen=True):
    """A whole study: the document."""

    format: Annotated[str, Meta(description="`topstory-study`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    out: Annotated[str, Meta(description="the study's folder")]
    report: Annotated[str, Meta(description="the page to open")]
    summary: Annotated[tuple[str, ...], Meta(description="in words, the most important first")]
    table: Annotated[Table1, Meta(description="relative CTRs on the evaluation log")]
    replays: Annotated[int, Meta(description="that the study is made of")]
    seconds: Annotated[float, Meta(description="it took, over all its sessions")]
