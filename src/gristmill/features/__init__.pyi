from .bounds import n_components_for as n_components_for, truncation_degree as truncation_degree
from .bounds import truncation_error as truncation_error
from .compose import Compose as Compose, FourierFeatures as FourierFeatures
from .compose import HomogeneousFeatures as HomogeneousFeatures
from .learner import FeatureClassifier as FeatureClassifier, FeatureLearner as FeatureLearner
from .learner import FeatureNovelty as FeatureNovelty, FeatureRegressor as FeatureRegressor
from .maclaurin import RandomMaclaurin as RandomMaclaurin
from .series import DotProduct as DotProduct
