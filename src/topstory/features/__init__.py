"""Features: raw profiles of users and articles turned into a few numbers each (paper, §5.2.2)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from topstory.extras import require

if TYPE_CHECKING:
    from topstory.features.builder import FeatureBuilder as FeatureBuilder
    from topstory.features.clustering.soft_clusters import SoftClusters as SoftClusters
    from topstory.features.encoding.categories import Categories as Categories
    from topstory.features.encoding.encoder import Encoder as Encoder
    from topstory.features.encoding.support import Support as Support
    from topstory.features.encoding.unit_length import UnitLength as UnitLength
    from topstory.features.offset import fit_bilinear_offset as fit_bilinear_offset
    from topstory.features.offset import fit_warm_offset as fit_warm_offset
    from topstory.features.regression.bilinear import BilinearLogistic as BilinearLogistic

_OFFSET = "offset"  # It takes any log without the extra, except where a regression is fitted.
_MODULE_OF = {
    "BilinearLogistic": "regression.bilinear",
    "Categories": "encoding.categories",
    "Encoder": "encoding.encoder",
    "FeatureBuilder": "builder",
    "SoftClusters": "clustering.soft_clusters",
    "Support": "encoding.support",
    "UnitLength": "encoding.unit_length",
    "fit_bilinear_offset": _OFFSET,
    "fit_warm_offset": _OFFSET,
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    # Imported when first asked for: an offset by least squares needs no scikit-learn.
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'topstory.features' has no attribute {name!r}")
    if _MODULE_OF[name] != _OFFSET:
        require("features")
    return getattr(import_module(f"topstory.features.{_MODULE_OF[name]}"), name)
