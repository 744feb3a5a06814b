"""The policy that a command recommends, trained and written to a file (`--save`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topstory.cli.reports.replay import SavedReport
from topstory.events import EventLog
from topstory.policies.entries import Setting, listed


def save_trained(
    path: Path,
    name: str,
    parameters: Mapping[str, Setting],
    log: EventLog,
    learned: Mapping[str, Any],  # from exploration: offset or prior, if it takes one
    seed: int,
    features: Path | None = None,
) -> SavedReport:
    """Train a policy on every event of the log, as `topstory train` does, and write it.

    `features`: the file of the feature model that made the log's contexts, if it is new.
    """
    import topstory as ts

    fresh = ts.policy(name, seed=seed, **parameters, **learned)
    training = ts.train(fresh, log, held_out=0, seed=seed)
    training.policy.save(path)
    model = None if features is None else str(features)
    return SavedReport(str(path), name, dict(parameters), training.events, model)


def saved_line(saved: SavedReport) -> str:
    """What was saved, in a sentence."""
    from topstory.policies.registry import REGISTRY

    numbers = listed(saved.parameters)
    return (
        f"Saved {REGISTRY[saved.policy].paper}{f' ({numbers})' if numbers else ''}, trained on all "
        f"{saved.events:,} events, to {saved.file}"
        + (f"; it goes with the feature model {saved.features}" if saved.features else "")
    )
