"""Learn which story to lead with, for each visitor: contextual bandits, from log to live.

>>> import topstory as ts
>>> ts.policy("ucb", alpha=0.5)
<Policy: context-free × upper-confidence, alpha=0.5, seed=0>
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from topstory.policies.registry import EXPLORERS as _EXPLORERS
from topstory.policies.registry import MODELS as _MODELS

if TYPE_CHECKING:  # what `_MODULES` and the registry say, for type checkers
    from topstory.anytime import AnytimeValue as AnytimeValue
    from topstory.anytime import anytime_lift as anytime_lift
    from topstory.anytime import anytime_rate as anytime_rate
    from topstory.evaluation import Comparison as Comparison
    from topstory.evaluation import EstimatedPropensityWarning as EstimatedPropensityWarning
    from topstory.evaluation import Evaluation as Evaluation
    from topstory.evaluation import NotAnswerable as NotAnswerable
    from topstory.evaluation import NotUniformWarning as NotUniformWarning
    from topstory.evaluation import Result as Result
    from topstory.evaluation import RetentionWarning as RetentionWarning
    from topstory.evaluation import Selection as Selection
    from topstory.evaluation import Training as Training
    from topstory.evaluation import choose as choose
    from topstory.evaluation import compare as compare
    from topstory.evaluation import compile_kernels as compile_kernels
    from topstory.evaluation import dr_ns as dr_ns
    from topstory.evaluation import estimate_propensities as estimate_propensities
    from topstory.evaluation import evaluate as evaluate
    from topstory.evaluation import lift as lift
    from topstory.evaluation import replay as replay
    from topstory.evaluation import train as train
    from topstory.evaluation import tune as tune
    from topstory.events import Event as Event
    from topstory.events import EventLog as EventLog
    from topstory.events import inspect as inspect
    from topstory.events.formats.exporting import export_log as export_log
    from topstory.events.formats.importing import ImportReport as ImportReport
    from topstory.events.formats.importing import import_log as import_log
    from topstory.events.simulator import TodayModule as TodayModule
    from topstory.explorers import *  # noqa: F403 (every explorer, without listing them again)
    from topstory.features import FeatureBuilder as FeatureBuilder
    from topstory.features import fit_bilinear_offset as fit_bilinear_offset
    from topstory.features import fit_warm_offset as fit_warm_offset
    from topstory.models import *  # noqa: F403 (every model, without listing them again)
    from topstory.policies import Choice as Choice
    from topstory.policies import Policy as Policy
    from topstory.policies.banditron import Banditron as Banditron
    from topstory.policies.combination import Combination as Combination
    from topstory.policies.combination import combine as combine
    from topstory.policies.registry import policy as policy
    from topstory.serving.client import AsyncClient as AsyncClient
    from topstory.serving.client import Client as Client
    from topstory.studies import Study as Study
    from topstory.studies import StudyWarning as StudyWarning
    from topstory.studies import study as study

_MODULES = {
    "anytime": ("AnytimeValue", "anytime_lift", "anytime_rate"),
    "events": ("Event", "EventLog", "inspect"),
    "events.formats.importing": ("ImportReport", "import_log"),
    "events.formats.exporting": ("export_log",),
    "events.simulator": ("TodayModule",),
    "features": ("FeatureBuilder", "fit_bilinear_offset", "fit_warm_offset"),
    "models": (
        "LinearOffset",
        "Model",
        "NotFiniteError",
        "Prior",
        "ScaleError",
        "fit_offset",
        "fit_prior",
    ),
    "explorers": ("Explorer",),
    "policies": ("Choice", "Policy"),
    "policies.banditron": ("Banditron",),
    "policies.combination": ("Combination", "combine"),
    "policies.registry": ("policy",),
    "evaluation": (
        *("Comparison", "EstimatedPropensityWarning", "Evaluation", "NotAnswerable"),
        *("NotUniformWarning", "Result"),
        *(
            "RetentionWarning",
            "Selection",
            "Training",
            "choose",
            "compare",
            "compile_kernels",
            "dr_ns",
            "estimate_propensities",
            "evaluate",
            "lift",
            "replay",
            "train",
            "tune",
        ),
    ),
    "studies": ("Study", "StudyWarning", "study"),
    "serving.client": ("AsyncClient", "Client"),
}
_MODULE_OF = {
    name: f"topstory.{module}" for module, names in _MODULES.items() for name in names
} | {
    name: module
    for table in (_MODELS, _EXPLORERS)
    for module, name in (entry.path.split(":") for entry in table.values())
}

__version__ = "0.1.0"
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    # Modules are imported when first used: what needs no kernel starts without numba.
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'topstory' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
