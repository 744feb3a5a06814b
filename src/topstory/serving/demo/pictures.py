"""Pictures for the demo's stories: flat landscapes of their topic, drawn as SVG."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

from topstory.serving.demo import streets, trades, wonders
from topstory.serving.demo.shapes import HEIGHT, WIDTH
from topstory.serving.demo.stories import TOPICS

NAME = re.compile(rf"({'|'.join(topic.lower() for topic in TOPICS)})-([0-9]{{1,4}})")

# By topic: skies from top to bottom, then the colours of shapes from far to near, and an accent.
_PALETTES = {
    "politics": (
        ("#1d3557", "#a8c5da", ("#7f9db9", "#54779b", "#2c4d75", "#16304f"), "#e9b872"),
        ("#f4d9b5", "#e8a87c", ("#c9806a", "#95596a", "#5a3d5c", "#33274a"), "#fff3df"),
        ("#20344a", "#d8b4a0", ("#a58a94", "#6f6a86", "#454c6e", "#232c4b"), "#f6e27f"),
    ),
    "sports": (
        ("#bfe3c0", "#eef7d8", ("#8cc084", "#5aa469", "#2f7d4f", "#1b5a3c"), "#ff7f51"),
        ("#fde2a7", "#f7b267", ("#f08a5d", "#b83b5e", "#6a2c70", "#3b1c4a"), "#fffbea"),
        ("#a9d6e5", "#e8f6fa", ("#61a5c2", "#2c7da0", "#1b5f80", "#013a63"), "#ffd166"),
    ),
    "business": (
        ("#f1e9db", "#d9c5a0", ("#c2a878", "#8c7851", "#5d5441", "#35322b"), "#d1495b"),
        ("#20344a", "#3d6b7d", ("#4f8a8b", "#2f6b6d", "#1f4c53", "#122f38"), "#fbd46d"),
        ("#dfe7ee", "#b8c7d6", ("#93a9be", "#66809a", "#3f5a76", "#233a54"), "#f28f3b"),
    ),
    "science": (
        ("#0b1033", "#3a2c6b", ("#5b3f8c", "#7d5ba6", "#3f2a6a", "#1c1440"), "#ffd6a5"),
        ("#03263b", "#0f6474", ("#1f8a8c", "#146a72", "#0d4756", "#06293a"), "#f4f1bb"),
        ("#1a1423", "#5c2a4d", ("#8d4a6b", "#6b3558", "#442343", "#22142b"), "#9be7d8"),
    ),
    "arts": (
        ("#fbe9d7", "#f6c9b0", ("#e98074", "#c05c7e", "#7b4b94", "#3f2a56"), "#2a9d8f"),
        ("#2b1b3d", "#7a2e4d", ("#b23a48", "#8c2f39", "#5b1f33", "#2a1022"), "#fcbf49"),
        ("#e6e2f3", "#c3b4de", ("#9f86c0", "#6f5aa0", "#4a3f7a", "#2b2550"), "#ff9f68"),
    ),
}
_MOTIFS = {
    "politics": (streets.parliament, streets.bridge, streets.town),
    "sports": (streets.pitch, streets.track, streets.road),
    "business": (trades.skyline, trades.harbour, trades.market),
    "science": (wonders.planet, wonders.molecule, wonders.sea),
    "arts": (wonders.stage, wonders.collage, wonders.keys),
}


@lru_cache(maxsize=256)
def draw(topic: str, number: int) -> str:
    """The picture of a story: the same number always has the same.

    >>> draw("arts", 4)[:60]
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 67'
    """
    random = Random(f"{topic}-{number}")
    high, low, shades, accent = _PALETTES[topic][number % 3]
    motif = _MOTIFS[topic][(number // 3 + number) % len(_MOTIFS[topic])]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'preserveAspectRatio="xMidYMid slice" role="img">',
        '<defs><linearGradient id="s" x1="0" y1="0" x2="0" y2="1">'
        f'<stop stop-color="{high}"/><stop offset="1" stop-color="{low}"/>'
        "</linearGradient></defs>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="url(#s)"/>',
        *motif(random, shades, accent),
        "</svg>",
    ]
    return "".join(parts)
