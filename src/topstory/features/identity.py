"""The identity of a feature model: a hash of everything that the features it makes depend on."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import numpy as np

from topstory.features.clustering.fitted_side import FittedSide

LENGTH = 16  # hexadecimal digits


def identity_of(users: FittedSide, articles: FittedSide) -> str:
    """The identity of a fitted model, from its two sides.

    How it was fitted does not count, nor does what only describes it: the parameters, the loss,
    categories that are not used. So a later topstory finds the same identity for the same file.
    """
    digest = sha256()
    for side in (users, articles):
        encoder, to_features = side.encoder, side.membership_map
        fields: dict[str, Any] = {
            "fields": encoder.categories_.fields_,
            "names": encoder.get_feature_names_out().tolist(),
            "apart": encoder.apart,
            "clusters": to_features.clusters,
        }
        digest.update(json.dumps(fields, sort_keys=True).encode())
        for array in (to_features.weights, to_features.bias):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
    return digest.hexdigest()[:LENGTH]
