"""Features that a study learns from raw profiles. Its folder keeps them, so they can be served."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from topstory.engines import Engine
from topstory.events import EventLog

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder

DEFAULT_SUPPORT = 0.1  # the paper's, and `FeatureBuilder`'s
# For simulated logs: most of their behaviours are rarer than 0.1, and informative. With 0.01 and 3
# million events of 20,000 users, disjoint models with learned features reach 1.82 in two days; with
# the true groups they reach 1.84 (`ceilings`).
SIMULATED_SUPPORT = 0.01
FILE_NAME = "features.safetensors"

Support = float | Mapping[str, float]


def new_builder(engine: Engine, seed: int, support: Support) -> FeatureBuilder:
    """A builder that is not fitted yet."""
    from topstory.features import FeatureBuilder  # a study without raw logs needs no extra

    minimum = dict(sorted(support.items())) if isinstance(support, Mapping) else float(support)
    return FeatureBuilder(support=minimum, engine=engine, seed=seed)


def support_options(support: Support) -> tuple[str, ...]:
    """The options for it on the command line.

    >>> support_options(0.05), support_options({"likes": 0.01, "age": 0})
    (('--support', '0.05'), ('--support', 'age=0', '--support', 'likes=0.01'))
    """
    if not isinstance(support, Mapping):
        return ("--support", f"{support:g}")
    return tuple(w for k, v in sorted(support.items()) for w in ("--support", f"{k}={v:g}"))


def parameters_text(unfitted: FeatureBuilder) -> str:
    """The parameters of a builder; without the engine, which changes no number.

    >>> from topstory.engines import SerialEngine
    >>> parameters_text(new_builder(SerialEngine(), 3, DEFAULT_SUPPORT)).split(", ")[-2:]
    ['timezone UTC', 'tol 1e-07']
    """
    return ", ".join(
        f"{name} {value}" for name, value in unfitted.get_params().items() if name != "engine"
    )


def fit_or_load(unfitted: FeatureBuilder, raw: EventLog, folder: Path) -> FeatureBuilder:
    """The builder that an earlier session saved in the folder, or else a new one, saved there."""
    path = folder / FILE_NAME
    if path.exists():
        loaded = type(unfitted).load(path)
        loaded.engine = unfitted.engine
        return loaded
    fitted = unfitted.fit(raw)
    fitted.save(path)
    return fitted
