"""A fitted builder in one file: its description, and its arrays."""

from __future__ import annotations

from collections import Counter
from os import PathLike
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from topstory.engines import Engine
from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.memberships import MembershipMap
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.categories import Categories
from topstory.features.encoding.encoder import Encoder
from topstory.features.regression.bilinear import BilinearLogistic
from topstory.features.regression.early_stopping import HELD_OUT, Step
from topstory.sealed import Arrays, Seal

if TYPE_CHECKING:
    from topstory.features.builder import FeatureBuilder

_SEAL = Seal(
    kind="feature model",
    key="builder",
    version=1,
    writer="FeatureBuilder.save",
    format="topstory-features",
)


def save(builder: FeatureBuilder, path: str | PathLike[str]) -> None:
    """Write the builder; an existing file is replaced in one step."""
    check_is_fitted(builder)
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
            "scored_on": model.scored_on_,
            "n_iter": model.n_iter_,
            "history": [msgspec.structs.astuple(step) for step in model.history_],
        },
        "users": _describe(builder.user_side_, "users", arrays),
        "articles": _describe(builder.article_side_, "articles", arrays),
    }
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    _SEAL.write(path, described, whole)


def load(path: str | PathLike[str]) -> FeatureBuilder:
    """Read the builder; ValueError if the file is damaged or of another kind."""
    return _SEAL.read(path, _build)


def _build(described: dict[str, Any], arrays: Arrays) -> FeatureBuilder:
    from topstory.features.builder import FeatureBuilder

    builder = FeatureBuilder(**described["parameters"])
    model: BilinearLogistic = builder.regression()
    fitted = described["model"]
    model.coef_, model.intercept_ = arrays["coef"], fitted["intercept"]
    model.log_loss_, model.auc_ = fitted["log_loss"], fitted["auc"]
    model.history_ = tuple(Step(*step) for step in fitted["history"])
    # The first files of version 1 have neither.
    model.n_iter_ = fitted.get("n_iter", len(model.history_) - 1)
    model.scored_on_ = fitted.get("scored_on", HELD_OUT)
    builder.model_ = model
    builder.means_, builder.sizes_ = arrays["means"], arrays["sizes"]
    builder.histogram_ = arrays["histogram"]
    builder.user_side_ = _side(described["users"], "users", arrays)
    builder.article_side_ = _side(described["articles"], "articles", arrays)
    builder.unknown = Counter()
    return builder


def _describe(side: FittedSide, name: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    encoder = side.encoder
    arrays[f"{name}.support"] = encoder.support_
    arrays[f"{name}.kept"] = encoder.kept_
    arrays[f"{name}.projection"] = side.projection
    arrays[f"{name}.centers"] = side.soft.centers_
    arrays[f"{name}.weights"] = side.membership_map.weights
    arrays[f"{name}.bias"] = side.membership_map.bias
    return {
        "fields": encoder.categories_.fields_,
        "categories": encoder.categories_.categories_,
        "encoder": encoder.get_params(),
        "soft": side.soft.get_params(),
        "width": side.soft.width_,
    }


def _side(described: dict[str, Any], name: str, arrays: Arrays) -> FittedSide:
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
    membership_map = MembershipMap(
        arrays[f"{name}.weights"], arrays[f"{name}.bias"], len(soft.centers_)
    )
    return FittedSide(encoder, arrays[f"{name}.projection"], soft, membership_map)
