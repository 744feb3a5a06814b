"""Who and what: raw profiles of users and articles to a few numbers each (paper, §5.2.2)."""

from topstory.features.bilinear import BilinearLogistic
from topstory.features.builder import FeatureBuilder
from topstory.features.categories import Categories
from topstory.features.clusters import SoftClusters
from topstory.features.encoder import Encoder
from topstory.features.offset import fit_bilinear_offset, fit_warm_offset
from topstory.features.support import Support
from topstory.features.unit_length import UnitLength

__all__ = [
    "BilinearLogistic",
    "Categories",
    "Encoder",
    "FeatureBuilder",
    "SoftClusters",
    "Support",
    "UnitLength",
    "fit_bilinear_offset",
    "fit_warm_offset",
]
