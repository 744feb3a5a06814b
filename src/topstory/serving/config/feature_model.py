"""The feature model that turns raw profiles into contexts and article features."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from topstory.files import replaced_file

FILE = "features.safetensors"  # in the data folder


class FeatureModel(Protocol):
    """Turns raw profiles of users and articles into the numbers that a policy takes."""

    @property
    def identity(self) -> str:
        """A hash of its content: which model it is."""
        ...

    @property
    def unknown(self) -> MutableMapping[str, int]:
        """By field: how often it held a category that the model does not know."""
        ...

    def user(self, profile: Mapping[str, Any]) -> npt.ArrayLike:
        """(d,) the context of a user; ValueError if the profile cannot be used."""
        ...

    def article(self, profile: Mapping[str, Any]) -> npt.ArrayLike:
        """(m,) the features of an article; ValueError if the profile cannot be used."""
        ...


def load_feature_model(path: str) -> FeatureModel:
    """The feature model in a file or folder that `topstory features fit` wrote."""
    model: FeatureModel = import_module("topstory.features").FeatureBuilder.load(path)
    return model


def keep_feature_model(path: str, folder: Path) -> Path:
    """Copy the file into the data folder, so that a restarted worker reads the same one."""
    copy = folder / FILE
    with Path(path).open("rb") as file, replaced_file(copy) as kept:
        shutil.copyfileobj(file, kept)
    return copy
