"""The feature model that turns raw profiles into contexts and article features."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topstory.files import replaced_file

FILE = "features.safetensors"  # in the data folder


class EventFeatures(Protocol):
    """The features of events that a feature model declares."""

    @property
    def used(self) -> tuple[str, ...]:
        """Their names."""
        ...

    @property
    def published(self) -> str | None:
        """The field of an article's profile that says when it came out."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of their numbers."""
        ...

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """Those of them that are features of the article."""
        ...

    @property
    def per_article(self) -> int:
        """How many of them are kept for each article."""
        ...

    def of_event(self, at: int, slot: int = 0) -> npt.NDArray[np.float32]:
        """The numbers of an event."""
        ...

    def of_articles(
        self, at: int, published: Sequence[int] | None, seen: Sequence[int] | None
    ) -> npt.NDArray[np.float32]:
        """(K, per_article) the numbers of an event with each article."""
        ...

    def described(self) -> dict[str, Any]:
        """As JSON takes it."""
        ...


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


def events_of(model: FeatureModel | None) -> EventFeatures | None:
    """The features of events that a model declares; None if it has none, or there is none."""
    return getattr(model, "event_", None) or None


def event_features(described: dict[str, Any]) -> EventFeatures:
    """The features of events that a journal's configuration tells of."""
    found: EventFeatures = import_module("topstory.features.event.declared").EventFeatures.restored(
        described
    )
    return found


def keep_feature_model(path: str, folder: Path) -> Path:
    """Copy the file into the data folder, so that a restarted worker reads the same one."""
    copy = folder / FILE
    with Path(path).open("rb") as file, replaced_file(copy) as kept:
        shutil.copyfileobj(file, kept)
    return copy
