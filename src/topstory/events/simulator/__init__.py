"""A simulated front page, to try policies on: the paper's setting, with the truth known."""

from topstory.events.simulator.settings import Settings
from topstory.events.simulator.world import TodayModule

__all__ = ["Settings", "TodayModule"]
