"""A simulated front page to try policies on: the paper's setting, with the truth known."""

from topstory.events.simulator.settings import WorldSettings
from topstory.events.simulator.world import TodayModule

__all__ = ["TodayModule", "WorldSettings"]
