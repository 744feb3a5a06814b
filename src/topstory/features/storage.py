"""A fitted builder as one safetensors file: versioned, exact, checked, without pickle.

The header's metadata has `format`, `version`, `builder` (JSON with all that is not an array) and
`checksum` (BLAKE2b over that and the arrays).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from topstory.engines import Engine
from topstory.features.bilinear import BilinearLogistic
from topstory.features.categories import Categories
from topstory.features.clusters import SoftClusters
from topstory.features.compact import Compact
from topstory.features.encoder import Encoder
from topstory.features.side import Side
from topstory.features.watching import Step

if TYPE_CHECKING:
    from topstory.features.builder import FeatureBuilder

FORMAT = "topstory-features"
VERSION = 1

Arrays = Mapping[str, npt.NDArray[Any]]


def save(builder: FeatureBuilder, path: str | PathLike[str]) -> None:
    """Write the builder; a file that is there already is replaced in one step."""
    if not hasattr(builder, "model_"):
        raise ValueError("the builder is not fitted yet: call fit before save")
    model = builder.model_
    arrays: dict[str, npt.NDArray[Any]] = {
        "coef": model.coef_,
        "means": builder.means_,
        "sizes": builder.sizes_,
        "histogram": builder.histogram_,
    }
    parameters = dict(builder.get_params())
    if isinstance(parameters["engine"], Engine):
        parameters["engine"] = parameters["engine"].name
    described = {
        "parameters": parameters,
        "model": {
            "intercept": model.intercept_,
            "log_loss": model.log_loss_,
            "auc": model.auc_,
            "history": [msgspec.structs.astuple(step) for step in model.history_],
        },
        "users": _describe(builder.user_side_, "users", arrays),
        "articles": _describe(builder.article_side_, "articles", arrays),
    }
    text = json.dumps(described)
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array.size}
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "builder": text,
        "checksum": _checksum(text, whole),
    }
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(to_bytes(whole, metadata))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: str | PathLike[str]) -> FeatureBuilder:
    """Read the builder; ValueError says what is wrong with the file."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(
                    f"{path}: not a topstory feature model; FeatureBuilder.save writes one"
                )
            version = metadata.get("version", "")
            if not version.isdigit() or not 1 <= int(version) <= VERSION:
                raise ValueError(
                    f"{path}: feature format {version or 'unknown'}, but this topstory reads up "
                    f"to {VERSION}; a newer topstory may read it"
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
    except SafetensorError as error:
        raise ValueError(f"{path}: not a safetensors file, or damaged: {error}") from None
    text = metadata.get("builder", "")
    if metadata.get("checksum") != _checksum(text, arrays):
        raise ValueError(f"{path}: damaged: the checksum does not match its contents")
    try:
        return _build(json.loads(text), arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a builder that can be loaded: {error}") from error


def _build(described: dict[str, Any], arrays: Arrays) -> FeatureBuilder:
    from topstory.features.builder import FeatureBuilder

    builder = FeatureBuilder(**described["parameters"])
    model: BilinearLogistic = builder.regression()
    told = described["model"]
    model.coef_, model.intercept_ = arrays["coef"], told["intercept"]
    model.log_loss_, model.auc_ = told["log_loss"], told["auc"]
    model.history_ = tuple(Step(*step) for step in told["history"])
    model.n_iter_ = len(model.history_) - 1
    builder.model_ = model
    builder.means_, builder.sizes_ = arrays["means"], arrays["sizes"]
    builder.histogram_ = arrays["histogram"]
    builder.user_side_ = _side(described["users"], "users", arrays)
    builder.article_side_ = _side(described["articles"], "articles", arrays)
    builder.unknown = Counter()
    return builder


def _describe(side: Side, name: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    encoder = side.encoder
    arrays[f"{name}.support"] = encoder.support_
    arrays[f"{name}.kept"] = encoder.kept_
    arrays[f"{name}.projection"] = side.projection
    arrays[f"{name}.centers"] = side.soft.centers_
    arrays[f"{name}.weights"] = side.compact.weights
    arrays[f"{name}.bias"] = side.compact.bias
    return {
        "fields": encoder.categories_.fields_,
        "categories": encoder.categories_.categories_,
        "encoder": encoder.get_params(),
        "soft": side.soft.get_params(),
        "width": side.soft.width_,
    }


def _side(described: dict[str, Any], name: str, arrays: Arrays) -> Side:
    categories = Categories().learn(described["fields"], described["categories"])
    encoder = Encoder(**described["encoder"])
    # An array without entries is not stored.
    none = np.zeros(0)
    encoder.learn(
        categories,
        arrays.get(f"{name}.support", none),
        arrays.get(f"{name}.kept", none.astype(bool)),
    )
    soft = SoftClusters(**described["soft"])
    soft.centers_, soft.width_ = arrays[f"{name}.centers"], described["width"]
    soft.n_features_in_ = soft.centers_.shape[1]
    compact = Compact(arrays[f"{name}.weights"], arrays[f"{name}.bias"], len(soft.centers_))
    return Side(encoder, arrays[f"{name}.projection"], soft, compact)


def _checksum(text: str, arrays: Arrays) -> str:
    digest = blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
