"""What segments, features and visitors are called on the pages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.config.pages import PersonaConfig
from topstory.serving.config.schema import Config
from topstory.serving.demo.people import people, unknown
from topstory.serving.demo.stories import TOPICS


class Names:
    """Words for the numbers of contexts and features."""

    def __init__(self, config: Config, model: FeatureModel | None) -> None:
        pages, count = config.pages, max(1, config.context - 1)
        demo = (config.demo or pages.simulated) and config.context == len(TOPICS) + 1
        described = () if model is None else _described(model)
        segments = pages.segments or described
        if not segments and demo:
            segments = tuple(each.likes for each in people())
        self.segments = tuple(
            segments[place] if place < len(segments) else f"Segment {place + 1}"
            for place in range(count)
        )
        self.topics = pages.topics or (TOPICS if demo else ())
        personas = pages.personas or (people() if demo else ())
        fitting = tuple(each for each in personas if len(each.user) == config.context)
        self.personas: tuple[PersonaConfig, ...] = (unknown(config.context), *fitting)
        self.raw = model is not None  # whether visitors may be given as raw profiles


def _described(model: FeatureModel) -> tuple[str, ...]:
    """The clusters of a feature model, in words."""
    describe = import_module("topstory.features.description").describe
    return tuple(cluster_name(cluster) for cluster in describe(model).clusters)


def cluster_name(cluster: Any) -> str:
    """What a cluster likes, and what its people are.

    >>> from types import SimpleNamespace as Some
    >>> likes = (Some(category="category=sport"), Some(category="category=local news"))
    >>> cluster_name(Some(cluster=0, likes=likes, traits=(Some(category="device=mobile"),)))
    'likes sport and local news, mostly mobile'
    """
    likes = [_category(each.category) for each in cluster.likes[:2]]
    traits = [_category(each.category) for each in cluster.traits[:1]]
    words = f"likes {' and '.join(likes)}" if likes else f"group {cluster.cluster + 1}"
    return words + (f", mostly {traits[0]}" if traits else "")


def _category(name: str) -> str:
    """The value of `field=value`."""
    return name.partition("=")[2] or name
