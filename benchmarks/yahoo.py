"""Text like Yahoo's, of any length: the same lines for everyone who measures a reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np

START = 1_241_160_900
STEP = 300  # seconds between timestamps


def write_r6a(path: Path, events: int, seed: int = 0) -> None:
    """Version 1: pools of 20 with five features and the constant, one replaced every 2,000 events.

    45 million events of ten days have some 20 pools an hour; a pool serves thousands of lines.
    """
    random = np.random.default_rng(seed)
    ids = [str(109_000 + i) for i in range(20)]
    described = {key: _article(key, random) for key in ids}
    with path.open("wb") as file:
        for first in range(0, events, 2_000):
            time = START + first // 2_000 * STEP
            tail = " ".join(described[key] for key in ids) + "\n"
            count = min(2_000, events - first)
            shown, click = random.integers(20, size=count), random.random(count) < 0.04
            users = random.dirichlet(np.full(5, 0.3), count)
            file.writelines(
                (
                    f"{time} {ids[s]} {int(c)} |user {_features(user)} {tail}".encode()
                    for s, c, user in zip(shown, click, users.tolist(), strict=True)
                )
            )
            fresh = str(109_020 + first // 2_000)
            described[fresh] = _article(fresh, random)
            ids[int(random.integers(20))] = fresh


def write_r6b(path: Path, events: int, seed: int = 0) -> None:
    """Version 2: pools of 40 bare ids, up to 20 of 136 features on."""
    random = np.random.default_rng(seed)
    ids = [f"id-{552_000 + i}" for i in range(40)]
    with path.open("wb") as file:
        for first in range(0, events, 2_000):
            time = START + first // 2_000 * STEP
            tail = " ".join(f"|{key}" for key in ids) + "\n"
            lines = []
            for _ in range(min(2_000, events - first)):
                on = random.choice(135, size=int(random.integers(1, 20)), replace=False) + 2
                features = " ".join(map(str, (1, *on.tolist())))
                shown, click = ids[int(random.integers(40))], int(random.random() < 0.04)
                lines.append(f"{time} {shown} {click} |user {features} {tail}".encode())
            file.writelines(lines)
            ids[int(random.integers(40))] = f"id-{553_000 + first // 2_000}"


def _features(values: list[float]) -> str:
    numbered = " ".join(f"{i}:{value:.6f}" for i, value in enumerate(values, 2))
    return f"{numbered} 1:1.000000"


def _article(key: str, random: np.random.Generator) -> str:
    return f"|{key} {_features(random.dirichlet(np.full(5, 0.5)).tolist())}"
