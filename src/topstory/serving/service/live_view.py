"""The view of a front end in the sequencer's own process: the state itself."""

from __future__ import annotations

from topstory.serving.config.schema import Config
from topstory.serving.service.sequencer.ledger import Ledger
from topstory.serving.service.view import VisibleState
from topstory.serving.state.decider import Decider
from topstory.serving.state.traffic import Traffic


class LiveView:
    """Always up to date: nothing changes while the event loop is at work here."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self._ledger = ledger
        pools = ledger.state.pools
        self.deciders = {
            name: Decider(pools[name], Traffic(config.traffic_of(name), name, config.bucket_secret))
            for name in config.pools
        }
        self._visible = VisibleState(0, self.deciders)

    def latest(self) -> VisibleState:
        """The state as it is now."""
        self._visible.number = self._ledger.state.number
        return self._visible

    def now(self) -> int:
        """The journal's time."""
        return self._ledger.clock.now()
