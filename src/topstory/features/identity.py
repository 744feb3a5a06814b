"""The identity of a feature model: a hash of everything that the features it makes depend on."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.encoding.encoder import Encoder
from topstory.features.event.declared import EventFeatures

LENGTH = 16  # hexadecimal digits
DESCRIBES = frozenset({"support", "dropped", "explained", "why"})  # what a field only reports


def identity_of(users: FittedSide, articles: FittedSide | None, event: EventFeatures) -> str:
    """The identity of a fitted model, from its two sides.

    How it was fitted does not count, nor does what only describes it: the parameters, the loss,
    categories that are not used. So a later topstory finds the same identity for the same file.
    """
    digest = sha256()
    for side in (users, articles):
        if side is None:
            digest.update(b"none")
            continue
        encoder, to_features = side.encoder, side.membership_map
        arrays: dict[str, npt.NDArray[Any]] = {}
        fields: dict[str, Any] = {"clusters": to_features.clusters}
        if isinstance(encoder, Encoder):
            fields |= {
                "fields": encoder.categories_.fields_,
                "names": encoder.get_feature_names_out().tolist(),
                "apart": encoder.apart,
            }
        else:
            fields["profile"] = _content(encoder.described("", arrays))
        digest.update(json.dumps(fields, sort_keys=True).encode())
        for array in (*arrays.values(), to_features.weights, to_features.bias):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
    if event:
        digest.update(json.dumps(event.described(), sort_keys=True).encode())
    return digest.hexdigest()[:LENGTH]


def _content(described: Any) -> Any:
    if isinstance(described, dict):
        return {key: _content(value) for key, value in described.items() if key not in DESCRIBES}
    return [_content(each) for each in described] if isinstance(described, list) else described
