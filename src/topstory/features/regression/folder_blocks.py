"""Blocks of events that workers read from a log's folder by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from topstory.events.folder.stream import Part, RawFolder
from topstory.features.regression.event_blocks import Block, Events
from topstory.features.regression.labels import check_clicks, held_out


@dataclass(frozen=True)
class FolderBlocks:
    """Makes a block of a part of the log: small enough to send to every worker."""

    source: RawFolder
    share: float  # of the events, to hold out
    seed: int

    def __call__(self, part: Part) -> Block:
        """The part's events, those held out apart."""
        visitor, shown, clicks = self.source.read(part)
        if len(clicks):  # a file may be empty, if not the log
            check_clicks(clicks)
        aside = held_out(self.seed, self.share, part.events, part.start)
        articles = len(self.source.article_ids)
        return Block(
            *(
                Events.of(visitor[some], shown[some], clicks[some], articles)
                for some in (~aside, aside)
            )
        )
