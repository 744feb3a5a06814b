"""What an earlier version stored is read, and makes the same numbers to the bit."""

import json
from pathlib import Path

import pytest
from tests.features.stored_models import FIXTURES, made_by

import topstory as ts

STORED = sorted(FIXTURES.glob("features-v*.safetensors"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_feature_model_makes_the_same_numbers(path: Path) -> None:
    wanted = json.loads(path.with_suffix(".json").read_text())
    assert made_by(ts.FeatureBuilder.load(path)) == wanted


def test_every_version_and_method_is_stored() -> None:
    assert {path.stem for path in STORED} >= {
        f"features-v2-{method}" for method in ("bilinear", "clusters", "direct", "pca")
    }
