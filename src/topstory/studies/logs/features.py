"""Features that a study learns from raw profiles; they are kept in its folder, to be served."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from topstory.engines import Engine
from topstory.events import EventLog

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder

SUPPORT = 0.1  # the paper's, and `FeatureBuilder`'s
# Of simulated logs: most of their behaviours are rarer than that, and tell much. With this and 3
# million events of 20,000 users, features let disjoint models reach 1.82 in two days, the true
# groups 1.84 (`ceilings`).
SIMULATED_SUPPORT = 0.01
FEATURES = "features.safetensors"

Support = float | Mapping[str, float]


def builder(engine: Engine, seed: int, support: Support) -> FeatureBuilder:
    """Not fitted yet."""
    from topstory.features import FeatureBuilder  # a study without raw logs needs no extra

    least = dict(sorted(support.items())) if isinstance(support, Mapping) else float(support)
    return FeatureBuilder(support=least, engine=engine, seed=seed)


def support_options(support: Support) -> tuple[str, ...]:
    """What names it on the command line.

    >>> support_options(0.05), support_options({"likes": 0.01, "age": 0})
    (('--support', '0.05'), ('--support', 'age=0', '--support', 'likes=0.01'))
    """
    if not isinstance(support, Mapping):
        return ("--support", f"{support:g}")
    return tuple(w for k, v in sorted(support.items()) for w in ("--support", f"{k}={v:g}"))


def described(unfitted: FeatureBuilder) -> str:
    """Its parameters; not the engine, which changes no number.

    >>> from topstory.engines import SerialEngine
    >>> described(builder(SerialEngine(), 3, SUPPORT)).split(", ")[-2:]
    ['support 0.1', 'tol 1e-07']
    """
    told = unfitted.get_params()
    return ", ".join(f"{name} {told[name]}" for name in told if name != "engine")


def learned(unfitted: FeatureBuilder, raw: EventLog, folder: Path) -> FeatureBuilder:
    """Fitted on a raw log, or as the study that this one goes on with has fitted it."""
    kept = folder / FEATURES
    if kept.exists():
        loaded = type(unfitted).load(kept)
        loaded.engine = unfitted.engine
        return loaded
    made = unfitted.fit(raw)
    made.save(kept)
    return made
