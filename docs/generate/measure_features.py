"""Measure how many events it takes to find the groups: `python -m docs.generate.measure_features`.

Prints the table of docs/guides/features.md.
"""

import numpy as np

import topstory as ts
from topstory.features import FeatureBuilder
from topstory.kernels.compilation import Floats

EVENTS = (1_000_000, 3_000_000)


def main() -> None:
    """Fit, and compare with the true groups."""
    world = ts.TodayModule(seed=0, users=20_000)
    population = world.population
    truth = population.groups.argmax(axis=1)
    print("| events | distances | purity | largest membership above 0.5 / 0.8 | disjoint models |")
    print("|---|---|---|---|---|")
    for events in EVENTS:
        explored = world.random_log(events, "2008-09-01", 10, raw=True)
        for distances in ("weighted", "plain"):
            builder = FeatureBuilder(support=0.01, distances=distances).fit(explored)
            found = builder.segments(population.profiles)
            pure = sum(np.bincount(truth[found == c]).max() for c in np.unique(found))
            earned = world.ceilings("2009-05-03", 2, users=500, features=builder).disjoint
            largest = builder.largest_memberships(population.profiles).astype(np.float64)
            row(f"{events:,}", distances, pure / len(truth), largest, earned)
    ideal = world.ceilings("2009-05-03", 2, users=500).disjoint
    row("the true groups", "", 1.0, population.groups.max(axis=1), ideal)


def row(events: str, distances: str, purity: float, largest: Floats, earned: float) -> None:
    """One line."""
    above = f"{(largest > 0.5).mean():.0%} / {(largest > 0.8).mean():.0%}"
    print(f"| {events} | {distances} | {purity:.2f} | {above} | {earned:.3f} × random |")


if __name__ == "__main__":
    main()
