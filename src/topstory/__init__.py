"""Learn which story to lead with, for each visitor: contextual bandits, from log to live.

>>> import topstory as ts
>>> ts.policy("ucb", alpha=0.5)
<Policy: context-free × upper-confidence, alpha=0.5, seed=0>
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topstory.evaluation import NotUniformWarning as NotUniformWarning
    from topstory.evaluation import Result as Result
    from topstory.evaluation import lift as lift
    from topstory.evaluation import replay as replay
    from topstory.evaluation import tune as tune
    from topstory.events import Event as Event
    from topstory.events import EventLog as EventLog
    from topstory.events import inspect as inspect
    from topstory.events.simulator import TodayModule as TodayModule
    from topstory.explorers import EpsilonGreedy as EpsilonGreedy
    from topstory.explorers import Greedy as Greedy
    from topstory.explorers import Uniform as Uniform
    from topstory.explorers import UpperConfidence as UpperConfidence
    from topstory.features import FeatureBuilder as FeatureBuilder
    from topstory.features import fit_bilinear_offset as fit_bilinear_offset
    from topstory.features import fit_warm_offset as fit_warm_offset
    from topstory.models import ContextFree as ContextFree
    from topstory.models import DisjointLinear as DisjointLinear
    from topstory.models import Hindsight as Hindsight
    from topstory.models import HybridLinear as HybridLinear
    from topstory.models import Nothing as Nothing
    from topstory.models import Segmented as Segmented
    from topstory.models import Warm as Warm
    from topstory.models import fit_offset as fit_offset
    from topstory.policies import Choice as Choice
    from topstory.policies import Policy as Policy
    from topstory.policies import policy as policy
    from topstory.serving.client import AsyncClient as AsyncClient
    from topstory.serving.client import Client as Client
    from topstory.studies import Study as Study
    from topstory.studies import StudyWarning as StudyWarning
    from topstory.studies import study as study

_ROOMS = {
    "events": ("Event", "EventLog", "inspect"),
    "events.simulator": ("TodayModule",),
    "features": ("FeatureBuilder", "fit_bilinear_offset", "fit_warm_offset"),
    "models": (
        *("ContextFree", "DisjointLinear", "Hindsight", "HybridLinear"),
        *("Nothing", "Segmented", "Warm", "fit_offset"),
    ),
    "explorers": ("EpsilonGreedy", "Greedy", "Uniform", "UpperConfidence"),
    "policies": ("Choice", "Policy", "policy"),
    "evaluation": ("NotUniformWarning", "Result", "lift", "replay", "tune"),
    "studies": ("Study", "StudyWarning", "study"),
    "serving.client": ("AsyncClient", "Client"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__version__ = "0.1.0"
__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> Any:
    # Rooms are imported when first asked for: what needs no kernel starts without numba.
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'topstory' has no attribute {name!r}")
    return getattr(import_module(f"topstory.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
