"""What an earlier version stored is read, and makes the same numbers to the bit."""

import json
from pathlib import Path

import pytest
from tests.features.stored_models import EVENTS_LOG, FIXTURES, contexts_of, made_by

import topstory as ts

WITH_EVENTS = FIXTURES / "features-v3-events.safetensors"
STORED = sorted(set(FIXTURES.glob("features-v*.safetensors")) - {WITH_EVENTS})


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_feature_model_makes_the_same_numbers(path: Path) -> None:
    wanted = json.loads(path.with_suffix(".json").read_text())
    assert made_by(ts.FeatureBuilder.load(path)) == wanted


def test_a_stored_model_with_features_of_the_event_and_its_log_have_the_same_numbers() -> None:
    wanted = json.loads(WITH_EVENTS.with_suffix(".json").read_text())
    log, builder = ts.EventLog.read(EVENTS_LOG), ts.FeatureBuilder.load(WITH_EVENTS)
    assert contexts_of(log) == wanted.pop("contexts")
    assert log.feature_model == builder.identity
    assert made_by(builder, ({"section": "sport", "words": 300.0}, {})) == wanted
    at, slot = 1241150400 * 10**6, 3
    assert builder.event_.of_event(at, slot).shape == (6,)
    assert ts.replay(ts.policy("linucb-hybrid"), log).events == len(log)


def test_every_version_and_method_is_stored() -> None:
    assert {path.stem for path in STORED} >= {
        f"features-v2-{method}" for method in ("bilinear", "clusters", "direct", "pca")
    }
