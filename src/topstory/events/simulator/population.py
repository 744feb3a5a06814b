"""The population: the users, and what a site knows about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.array_record import blocks
from topstory.events.simulator.settings import GROUPS, WorldSettings
from topstory.kernels.simulation import habits

CHUNK_USERS = 2048  # drawn at a time, so that their behaviours fit in the cache
GENDERS = ("female", "male")


class Population:
    """Users with their true groups, and raw profiles that hint at them.

    User 0 visits most often, the last one least often; what they like does not depend on it.

    >>> people = Population(WorldSettings(users=1000), seed=0)
    >>> people.groups.shape, people.profiles.column_names
    ((1000, 5), ['gender', 'age', 'location', 'behaviours'])
    >>> sorted(people.profile(3)), people.profile(3)["location"][:9]
    (['age', 'behaviours', 'gender', 'location'], 'location-')
    """

    def __init__(self, settings: WorldSettings, seed: int) -> None:
        self.settings = settings
        self._seed = seed

    @cached_property
    def groups(self) -> npt.NDArray[np.float32]:
        """(V, GROUPS) how much a user belongs to each group; the sum is 1."""
        have = self.settings
        random = np.random.default_rng([self._seed, 3])
        shares = np.array(have.group_shares) / sum(have.group_shares)
        mixes = np.empty((have.users, GROUPS), np.float32)
        for start, stop in blocks(have.users):
            mixes[start:stop] = random.dirichlet(have.group_mixing * shares, stop - start)
        lost = np.flatnonzero(~np.isfinite(mixes).all(axis=1))  # all shares underflowed
        mixes[lost] = np.eye(GROUPS)[random.choice(GROUPS, len(lost), p=shares)]
        mixes.flags.writeable = False
        return mixes

    @cached_property
    def profiles(self) -> pa.Table:
        """What a site knows: one row for each user (paper, §5.2.2); null is unknown."""
        have, users = self.settings, self.settings.users
        random = np.random.default_rng([self._seed, 4])
        # Each trait follows one of the user's groups, drawn separately, so a mix shows as a mix.
        female = np.array(have.female)[self._showing(random)]
        gender = np.where(random.random(users) < female, 0, 1)
        centre = np.array(have.age_centres)[self._showing(random)]
        age = np.rint(random.normal(centre, have.age_width)).clip(0, have.ages - 1).astype(int)
        columns = {
            "gender": _one(gender, GENDERS, random.random(users) < have.unknown),
            "age": _one(age, _names("age", have.ages), random.random(users) < have.unknown),
            "location": _one(self._locations(random), _names("location", have.locations)),
            "behaviours": self._behaviours(random),
        }
        return pa.table(columns)

    def profile(self, user: int) -> dict[str, str | list[str] | None]:
        """What a site knows about one user."""
        row: dict[str, str | list[str] | None] = self.profiles.slice(user, 1).to_pylist()[0]
        return row

    def _showing(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        """(V,) one of each user's groups, drawn by its share."""
        bounds = self.groups.cumsum(axis=1)[:, :-1]
        return np.asarray((random.random(len(bounds))[:, None] > bounds).sum(axis=1))

    def _locations(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        have = self.settings
        tilt = random.lognormal(0, have.location_tilt, (GROUPS, have.locations))
        bounds = (tilt / np.arange(1, have.locations + 1)).cumsum(axis=1)
        bounds /= bounds[:, -1:]
        group, place = self._showing(random), np.empty(have.users, np.intp)
        draw = random.random(have.users)
        for g in range(GROUPS):
            place[group == g] = np.searchsorted(bounds[g], draw[group == g], side="right")
        return place.clip(0, have.locations - 1)

    def _behaviours(self, random: np.random.Generator) -> Any:
        have = self.settings
        low, high = np.log(have.behaviour_support)
        support = np.exp(random.uniform(low, high, have.behaviours))
        odds = np.log(support / (1 - support))
        tilt = random.normal(0, have.behaviour_tilt, (GROUPS, have.behaviours))
        tilt *= random.random(have.behaviours) < have.telling
        rates = 1 / (1 + np.exp(-(odds + tilt)))
        # Tilted or not, a behaviour keeps its support among all users.
        rates *= support / (np.array(have.group_shares) @ rates / sum(have.group_shares))
        activity = random.lognormal(*have.activity, have.users)
        seed = np.uint64(random.integers(2**63))

        def draw(part: tuple[int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
            start, stop = part
            counts = np.empty(stop - start, np.int64)
            codes = np.empty((stop - start) * have.behaviours + 1, np.int32)
            room = np.empty(have.behaviours)
            total = habits(seed, start, self.groups, activity, rates, room, counts, codes)
            return counts, codes[:total].copy()

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            parts = list(threads.map(draw, blocks(have.users, CHUNK_USERS)))
        offsets = np.cumsum([0, *np.concatenate([counts for counts, _ in parts])])
        codes = np.concatenate([codes for _, codes in parts])
        values = _one(codes, _names("behaviour", have.behaviours))
        return pa.ListArray.from_arrays(_numbers(offsets), values)


def _names(kind: str, count: int) -> list[str]:
    width = len(str(count - 1))
    return [f"{kind}-{number:0{width}}" for number in range(count)]


def _one(
    codes: npt.NDArray[Any], names: Sequence[str], unknown: npt.NDArray[np.bool_] | None = None
) -> Any:
    return pa.DictionaryArray.from_arrays(_numbers(codes, unknown), pa.array(names, pa.string()))


def _numbers(values: npt.NDArray[Any], unknown: npt.NDArray[np.bool_] | None = None) -> Any:
    return pa.array(values.astype(np.int32), pa.int32(), mask=unknown)
