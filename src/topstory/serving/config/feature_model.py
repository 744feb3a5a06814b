"""From raw profiles to contexts, where a feature model is loaded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from topstory.files import replaced_file

FILE = "features.safetensors"  # in a service's data folder


class FeatureModel(Protocol):
    """Turns what is known of a user or an article into the numbers that a policy takes."""

    @property
    def unknown(self) -> MutableMapping[str, int]:
        """Field -> how often it held a category that the model does not know."""
        ...

    def user(self, profile: Mapping[str, Any]) -> npt.ArrayLike:
        """(d,) the context of one user; ValueError if the profile cannot be used."""
        ...

    def article(self, profile: Mapping[str, Any]) -> npt.ArrayLike:
        """(m,) the features of one article; ValueError if the profile cannot be used."""
        ...


def load_feature_model(path: str) -> FeatureModel:
    """The feature model in a file or folder that `topstory features fit` wrote."""
    model: FeatureModel = import_module("topstory.features").FeatureBuilder.load(path)
    return model


def keep_feature_model(path: str, folder: Path) -> Path:
    """The service's own copy: a worker that is started again reads what the first one read."""
    copy = folder / FILE
    with Path(path).open("rb") as file, replaced_file(copy) as kept:
        shutil.copyfileobj(file, kept)
    return copy
