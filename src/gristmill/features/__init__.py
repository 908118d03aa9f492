"""Random maps for dot-product kernels, and the same online rules over explicit weights in their space."""

from .bounds import n_components_for, truncation_degree, truncation_error
from .compose import Compose, FourierFeatures, HomogeneousFeatures
from .learner import FeatureClassifier, FeatureLearner, FeatureNovelty, FeatureRegressor
from .maclaurin import RandomMaclaurin
from .series import DotProduct

__all__ = [
    "Compose",
    "DotProduct",
    "FeatureClassifier",
    "FeatureLearner",
    "FeatureNovelty",
    "FeatureRegressor",
    "FourierFeatures",
    "HomogeneousFeatures",
    "RandomMaclaurin",
    "n_components_for",
    "truncation_degree",
    "truncation_error",
]
