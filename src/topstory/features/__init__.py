"""Features: raw profiles of users and articles turned into a few numbers each (paper, §5.2.2)."""

from topstory.features.builder import FeatureBuilder
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.categories import Categories
from topstory.features.encoding.encoder import Encoder
from topstory.features.encoding.support import Support
from topstory.features.encoding.unit_length import UnitLength
from topstory.features.offset import fit_bilinear_offset, fit_warm_offset
from topstory.features.regression.bilinear import BilinearLogistic

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
