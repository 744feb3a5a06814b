"""Measure the methods of making features: `python -m docs.generate.measure_methods [HILLSTROM]`.

Prints the tables of docs/guides/features.md: on the simulator, whose truth is known, and on
Hillstrom's e-mail experiment, if the folder with its hillstrom.csv is given.
"""

import sys
from pathlib import Path

import numpy as np
from pyarrow import csv

import topstory as ts
from topstory.evaluation.feature_choice import choose_features

EVENTS = 300_000
REPLAYED = 100_000
ALPHA = 0.2
SUPPORT = 0.01
COMPRESSING = ("clusters", "bilinear", "pca")  # the simulated profiles are too wide for direct


def main() -> None:
    """Both tables."""
    simulated()
    if len(sys.argv) > 1:
        hillstrom(Path(sys.argv[1]))
    else:
        print("\nNo folder of Hillstrom's data was given, so that table is left out.")


def simulated() -> None:
    """What policies could earn with each method's features, by the simulator's truth, and did."""
    world = ts.TodayModule(seed=0, users=20_000)
    explored = world.random_log(EVENTS, "2008-09-01", 10, raw=True)
    may = world.random_log(REPLAYED, "2009-05-03", 2, raw=True)
    print("| method | numbers | disjoint models may earn | shared ones | replayed | hybrid |")
    print("|---|---|---|---|---|---|")
    for method in COMPRESSING:
        builder = ts.FeatureBuilder(method=method, support=SUPPORT).fit(explored)
        found = world.ceilings("2009-05-03", 2, users=500, features=builder)
        width = builder.user_side_.membership_map.dimension
        log = builder.apply(may)
        numbers = [found.disjoint, found.shared]
        for kind in ("disjoint", "hybrid"):
            result = ts.replay(ts.policy(f"linucb-{kind}", alpha=ALPHA), log)
            numbers.append(result.deployment.relative_ctr)
        listed = " | ".join(f"{each:.3f}" for each in numbers)
        print(f"| `{method}` | {width} | {listed} |", flush=True)
    truth = world.ceilings("2009-05-03", 2, users=500)
    print(f"| the true groups | 6 | {truth.disjoint:.3f} | {truth.shared:.3f} | | |")


def hillstrom(folder: Path) -> None:
    """Which e-mail to send: the first half teaches, the second judges."""
    table = csv.read_csv(folder / "hillstrom.csv")
    rows = np.random.default_rng(0).permutation(table.num_rows)  # they are sorted by nothing known
    table = table.take(rows)
    sent = [str(each) for each in table["segment"].to_pylist()]
    people = {
        name: table[name]
        for name in ("recency", "history", "history_segment", "zip_code", "channel")
    }
    people |= {name: table[name].cast("bool") for name in ("mens", "womens", "newbie")}
    print("\n| payoff | method | earned per customer | lift over no features |")
    print("|---|---|---|---|")
    for payoff in ("visit", "spend"):
        log = ts.EventLog.from_arrays(
            None,
            [sorted(set(sent))],
            np.zeros(len(sent), int),
            sent,
            table[payoff].to_numpy().astype(float),
            visitor=np.arange(len(sent)),
            profiles=people,
        )
        for method, value in choose_features(log, ["direct", "pca"]).values.items():
            low, high = value.lift.best_interval
            lift = f"{value.lift.value:+.1%} [{low:+.1%}, {high:+.1%}]"
            print(f"| `{payoff}` | `{method}` | {value.value.value:.4f} | {lift} |")


if __name__ == "__main__":
    main()
