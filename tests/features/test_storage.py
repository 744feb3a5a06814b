"""What an earlier version stored is read, and makes the same numbers to the bit."""

import json
from pathlib import Path

import pytest
from tests.features.stored_models import EVENTS, FIXTURES, contexts_of, made_by

import topstory as ts

STORED = sorted(
    path for path in FIXTURES.glob("features-v*.safetensors") if path.stem not in EVENTS
)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_feature_model_makes_the_same_numbers(path: Path) -> None:
    wanted = json.loads(path.with_suffix(".json").read_text())
    assert made_by(ts.FeatureBuilder.load(path)) == wanted


@pytest.mark.parametrize("stem", EVENTS)
def test_a_stored_model_with_features_of_the_event_and_its_log_have_the_same_numbers(
    stem: str,
) -> None:
    wanted = json.loads((FIXTURES / f"{stem}.json").read_text())
    log = ts.EventLog.read(FIXTURES / EVENTS[stem])
    builder = ts.FeatureBuilder.load(FIXTURES / f"{stem}.safetensors")
    assert contexts_of(log) == wanted.pop("contexts")
    assert log.feature_model == builder.identity
    assert made_by(builder, ({"section": "sport", "words": 300.0}, {})) == wanted
    at, slot = 1241150400 * 10**6, 3
    assert builder.event_.of_event(at, slot).shape == (builder.event_.per_event,)
    assert log.event_features == len(builder.event_.feature_columns)
    assert ts.replay(ts.policy("linucb-hybrid"), log).events == len(log)


def test_every_version_and_method_is_stored() -> None:
    assert {path.stem for path in STORED} >= {
        f"features-v2-{method}" for method in ("bilinear", "clusters", "direct", "pca")
    }
