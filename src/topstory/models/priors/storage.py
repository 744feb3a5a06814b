"""A prior as a sealed file, or as a part of a policy's file."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from topstory.kernels.compilation import Floats
from topstory.models.priors.prior import ARRAYS, NUMBERS, Prior
from topstory.sealed import Arrays, Seal

# Version 2 has features of the event.
_SEAL = Seal(kind="prior", key="prior", version=2, writer="Prior.save", format="topstory-prior")


def save(prior: Prior, path: str | PathLike[str]) -> None:
    """Write the prior; a file that is there already is replaced in one step."""
    seal = replace(_SEAL, version=2 if prior.event_features else 1)
    seal.write(path, describe(prior), {name: getattr(prior, name) for name in ARRAYS})


def load(path: str | PathLike[str]) -> Prior:
    """Read the prior; ValueError says what is wrong with the file."""
    return _SEAL.read(path, build)


def describe(prior: Prior) -> dict[str, Any]:
    """Everything except arrays."""
    found = {name: getattr(prior, name) for name in (*NUMBERS, "events", "articles")}
    if prior.event_features:
        found["event_features"] = prior.event_features
    return found | {"feature_model": prior.feature_model}


def build(described: dict[str, Any], arrays: Arrays) -> Prior:
    """The described prior; ValueError if its parts do not fit together."""
    mean = arrays.get("mean", np.zeros(0))
    d = len(mean)
    b0 = arrays.get("b0", np.zeros(0))  # empty arrays are not stored
    A0 = arrays.get("A0", np.zeros((0, 0)))
    found = {
        "mean": mean,
        "precision": arrays["precision"],
        "A0": A0,
        "b0": b0,
        "averages": arrays.get("averages", np.zeros((0, 2))),
    }
    shapes = {
        "mean": (d,),
        "precision": (d, d),
        "A0": (len(b0),) * 2,
        "b0": b0.shape[:1],
        "averages": (len(found["averages"]), 2),
    }
    for name, array in found.items():
        if array.shape != shapes[name] or array.dtype != np.float64:
            raise ValueError(
                f"{name}: expected float64 {shapes[name]}, found {array.dtype} {array.shape}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: not all of it is numbers")
    event = int(described.get("event_features", 0))
    if not 0 <= event < d or len(b0) % (d - event):
        raise ValueError(f"b0: expected a multiple of {d - event} numbers, found {len(b0)}")
    numbers = {name: _number(name, described[name]) for name in NUMBERS}
    _positive("precision", found["precision"])
    _positive("A0", numbers["shared_ridge"] * np.eye(len(b0)) + A0)
    parts: dict[str, Any] = {**found, **numbers}
    return Prior(
        **parts,
        events=int(described["events"]),
        articles=int(described["articles"]),
        feature_model=described["feature_model"],
        event_features=event,
    )


def _number(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or not 0.0 <= value <= 1e20:
        raise ValueError(f"{name}: expected a number from 0 to 1e20, found {value!r}")
    return float(value)


def _positive(name: str, matrix: Floats) -> None:
    if len(matrix) and not np.linalg.eigvalsh(matrix).min() > 0:
        raise ValueError(f"{name}: not a positive definite matrix")
