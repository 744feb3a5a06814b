"""Stored policies that every later version must read.

`python -m tests.policies.stored_policies NAME` writes that of a new policy, before its first
release. A file that exists is never written again: it is what an earlier version wrote.
"""

import sys
from pathlib import Path
from typing import Any

from tests.policies.test_policies import make, train

import topstory as ts

FIXTURES = Path(__file__).parent.parent / "fixtures"


def trained(name: str, **parameters: Any) -> ts.Policy:
    policy = make(name, seed=3, **parameters)
    train(policy, 40)
    return policy


def write(name: str, folder: Path = FIXTURES) -> Path:
    path = folder / f"policy-v1-{name}.safetensors"
    if path.exists():
        raise FileExistsError(f"{path.name} is what an earlier version wrote: it stays as it is")
    trained(name).save(path)
    return path


if __name__ == "__main__":
    print(write(sys.argv[1]))
