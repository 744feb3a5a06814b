"""People to try the demo's front page as: one of each group, and somebody unknown."""

from __future__ import annotations

from collections.abc import Sequence

from topstory.serving.config.pages import PersonaConfig
from topstory.serving.demo.stories import TOPICS

NAMES = ("Ada", "Ben", "Chloé", "Dev", "Elif")
OWN_SHARE = 0.84  # of a person in the group that they stand for


def unknown(dimension: int) -> PersonaConfig:
    """Somebody of whom nothing is known: a little of every group.

    >>> unknown(3).user
    (0.5, 0.5, 1.0)
    """
    share = 1 / max(1, dimension - 1)
    return PersonaConfig(
        name="Anonymous",
        likes="nothing is known about them",
        user=(*([share] * (dimension - 1)), 1.0),
    )


def people(tastes: Sequence[Sequence[float]] | None = None) -> tuple[PersonaConfig, ...]:
    """A person for each group, by what the group likes; `tastes` are (groups, topics).

    >>> people()[1].name, people()[1].likes
    ('Ben', 'follows sports')
    >>> people([[0.0, 2.0, 1.2, 0.1, -1.0]] * 5)[0].likes
    'follows sports and business, rarely opens arts'
    """
    own = (1 - OWN_SHARE) / (len(TOPICS) - 1)
    made = []
    for group, name in enumerate(NAMES):
        user = tuple(round(OWN_SHARE if g == group else own, 4) for g in range(len(TOPICS)))
        likes = f"follows {TOPICS[group].lower()}" if tastes is None else _words(tastes[group])
        made.append(PersonaConfig(name=name, likes=likes, user=(*user, 1.0)))
    return tuple(made)


def _words(taste: Sequence[float]) -> str:
    """What a group likes and dislikes, by how far each topic is from the average."""
    ranked = sorted(range(len(TOPICS)), key=lambda topic: -taste[topic])
    liked = [TOPICS[topic].lower() for topic in ranked[:2] if taste[topic] > 0.5]
    disliked = [TOPICS[ranked[-1]].lower()] if taste[ranked[-1]] < -0.5 else []
    words = f"follows {' and '.join(liked)}" if liked else "reads a bit of everything"
    return words + (f", rarely opens {disliked[0]}" if disliked else "")
