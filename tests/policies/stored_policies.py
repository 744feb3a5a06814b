"""Stored policies that every later version must read.

`python -m tests.policies.stored_policies NAME` writes that of a new policy, before its first
release; `edited` or `event-features` instead, one of format version 2. A file that exists is never
written again: it is what an earlier version wrote.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from tests.policies.test_policies import make, train

import topstory as ts

FIXTURES = Path(__file__).parent.parent / "fixtures"


def trained(name: str, **parameters: Any) -> ts.Policy:
    policy = make(name, seed=3, **parameters)
    train(policy, 40)
    return policy


def general(name: str) -> ts.Policy:
    """A hybrid policy in its general form: an article was edited, or contexts have numbers of f."""
    random = np.random.default_rng(4)
    model = ts.HybridLinear(2.0, event_features=1 if name == "event-features" else 0)
    policy = ts.Policy(model, ts.UpperConfidence(0.3), seed=3)
    for article in ("rain", "sun", "fog"):
        policy.add_article(article, [*random.random(2), 1.0])
    for number in range(40):
        x = np.append(random.random(3), 1.0)
        policy.learn(x, policy.choose(x, ["rain", "sun", "fog"]).article, float(number % 3 == 0))
        if name == "edited" and number == 20:
            policy.edit_article("rain", [0.9, 0.1, 1.0])
    return policy


GENERAL = ("edited", "event-features")


def write(name: str, folder: Path = FIXTURES) -> Path:
    path = folder / f"policy-v{2 if name in GENERAL else 1}-{name}.safetensors"
    if path.exists():
        raise FileExistsError(f"{path.name} is what an earlier version wrote: it stays as it is")
    (general(name) if name in GENERAL else trained(name)).save(path)
    return path


if __name__ == "__main__":
    print(write(sys.argv[1]))
