"""A fitted builder in one file: its description, and its arrays."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from topstory.engines import Engine
from topstory.features.clustering.fit import Groups
from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.memberships import MembershipMap
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.categories import Categories
from topstory.features.encoding.encoder import Encoder
from topstory.features.event.declared import EventFeatures
from topstory.features.fields.profile_encoder import ProfileEncoder
from topstory.features.regression.bilinear import BilinearLogistic
from topstory.features.regression.early_stopping import HELD_OUT, Step
from topstory.sealed import Arrays, Seal

if TYPE_CHECKING:
    from topstory.features.builder import FeatureBuilder

VERSION = 3
_SEAL = Seal(
    kind="feature model",
    key="builder",
    version=VERSION + 1,  # some features of the event are in f
    writer="FeatureBuilder.save",
    format="topstory-features",
)


def save(builder: FeatureBuilder, path: str | PathLike[str]) -> None:
    """Write the builder; an existing file is replaced in one step."""
    check_is_fitted(builder)
    arrays: dict[str, npt.NDArray[Any]] = {}
    parameters = dict(builder.get_params())
    if isinstance(parameters["engine"], Engine):
        parameters["engine"] = parameters["engine"].name
    parameters["event"] = list(parameters["event"])
    in_f = list(parameters.pop("event_in_f"))
    if in_f:
        parameters["event_in_f"] = in_f
    described: dict[str, Any] = {
        "parameters": parameters,
        "users": _describe(builder.user_side_, "users", arrays),
        "event": builder.event_.described(),
    }
    if hasattr(builder, "article_side_"):
        described["articles"] = _describe(builder.article_side_, "articles", arrays)
    if hasattr(builder, "means_"):
        arrays |= {
            "means": builder.means_,
            "sizes": builder.sizes_,
            "histogram": builder.histogram_,
        }
    if hasattr(builder, "model_"):
        model = builder.model_
        arrays["coef"] = model.coef_
        described["model"] = {
            "intercept": model.intercept_,
            "log_loss": model.log_loss_,
            "auc": model.auc_,
            "scored_on": model.scored_on_,
            "n_iter": model.n_iter_,
            "history": [msgspec.structs.astuple(step) for step in model.history_],
        }
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # The lowest version that has all of it, so that earlier topstories read what they can.
    seal = _SEAL if in_f else replace(_SEAL, version=VERSION)
    seal.write(path, described, whole)


def load(path: str | PathLike[str]) -> FeatureBuilder:
    """Read the builder; ValueError if the file is damaged or of another kind."""
    return _SEAL.read(path, _build)


def _build(described: dict[str, Any], arrays: Arrays) -> FeatureBuilder:
    from topstory.features.builder import FeatureBuilder

    parameters = described["parameters"]
    parameters |= {key: tuple(parameters.get(key, ())) for key in ("event", "event_in_f")}
    builder = FeatureBuilder(**parameters)
    articles = described.get("articles")
    builder.learn(
        _side(described["users"], "users", arrays),
        None if articles is None else _side(articles, "articles", arrays),
        _model(builder.regression(), described.get("model"), arrays),
        Groups(*(arrays[name] for name in Groups._fields)) if "means" in arrays else None,
        # Version 2 had no features of events.
        EventFeatures.restored(described["event"]) if "event" in described else None,
    )
    return builder


def _model(
    model: BilinearLogistic, fitted: dict[str, Any] | None, arrays: Arrays
) -> BilinearLogistic | None:
    if fitted is None:
        return None
    model.coef_, model.intercept_ = arrays["coef"], fitted["intercept"]
    model.log_loss_, model.auc_ = fitted["log_loss"], fitted["auc"]
    model.history_ = tuple(Step(*step) for step in fitted["history"])
    # The first files of version 1 have neither.
    model.n_iter_ = fitted.get("n_iter", len(model.history_) - 1)
    model.scored_on_ = fitted.get("scored_on", HELD_OUT)
    return model


def _describe(side: FittedSide, name: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    encoder = side.encoder
    described: dict[str, Any] = {"encoder": encoder.get_params()}
    arrays[f"{name}.weights"] = side.membership_map.weights
    arrays[f"{name}.bias"] = side.membership_map.bias
    if isinstance(encoder, Encoder):
        arrays[f"{name}.support"] = encoder.support_
        arrays[f"{name}.kept"] = encoder.kept_
        described["fields"] = encoder.categories_.fields_
        described["categories"] = encoder.categories_.categories_
    else:
        described["profile"] = encoder.described(name, arrays)
    if side.soft is not None and side.projection is not None:
        arrays[f"{name}.projection"] = side.projection
        arrays[f"{name}.centers"] = side.soft.centers_
        described |= {"soft": side.soft.get_params(), "width": side.soft.width_}
    return described


def _side(described: dict[str, Any], name: str, arrays: Arrays) -> FittedSide:
    encoder = _encoder(described, name, arrays)
    # An array without entries is not stored.
    weights = arrays.get(f"{name}.weights", np.zeros((encoder.n_features_out_, 0)))
    bias = arrays.get(f"{name}.bias", np.zeros(0))
    if "soft" not in described:
        return FittedSide(encoder, MembershipMap(weights, bias, 0))
    soft = SoftClusters(**described["soft"])
    soft.centers_, soft.width_ = arrays[f"{name}.centers"], described["width"]
    soft.n_features_in_ = soft.centers_.shape[1]
    membership_map = MembershipMap(weights, bias, len(soft.centers_))
    return FittedSide(encoder, membership_map, arrays[f"{name}.projection"], soft)


def _encoder(described: dict[str, Any], name: str, arrays: Arrays) -> Encoder | ProfileEncoder:
    if "profile" in described:
        return ProfileEncoder.restored(described["profile"], arrays, **described["encoder"])
    categories = Categories().learn(described["fields"], described["categories"])
    none = np.zeros(0)
    return Encoder(**described["encoder"]).learn(
        categories,
        arrays.get(f"{name}.support", none),
        arrays.get(f"{name}.kept", none.astype(bool)),
    )
