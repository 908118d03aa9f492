from . import checks as checks, cluster as cluster, datasets as datasets, evaluate as evaluate, features as features
from . import pairwise as pairwise, similarity as similarity, streams as streams
from . import theory as theory, video as video
from ._version import __version__ as __version__
from .additive import Additive as Additive, Spline as Spline
from .auto import AutoClassifier as AutoClassifier, AutoNovelty as AutoNovelty, AutoRegressor as AutoRegressor
from .budgets import DropOldest as DropOldest, DropRandom as DropRandom, DropSmallest as DropSmallest
from .budgets import Forget as Forget, Merge as Merge, Project as Project, Unbounded as Unbounded
from .budgets import Window as Window
from .catalogue import adatron as adatron, alma as alma, forgetron as forgetron, ilk_classifier as ilk_classifier
from .catalogue import ilk_novelty as ilk_novelty, ilk_regressor as ilk_regressor
from .catalogue import norma_classifier as norma_classifier, norma_novelty as norma_novelty
from .catalogue import norma_regressor as norma_regressor, passive_aggressive as passive_aggressive
from .catalogue import passive_aggressive_regressor as passive_aggressive_regressor, perceptron as perceptron
from .catalogue import projection_classifier as projection_classifier, projection_regressor as projection_regressor
from .catalogue import projectron as projectron, projectron_pp as projectron_pp
from .catalogue import random_budget_perceptron as random_budget_perceptron, romma as romma, svmd as svmd
from .centred import CentredFleet as CentredFleet
from .compression import compress as compress
from .fleet import Fleet as Fleet
from .keyed import KeyedFleet as KeyedFleet
from .features import FeatureLearner as FeatureLearner, RandomMaclaurin as RandomMaclaurin
from .kernels import Exponential as Exponential, Gaussian as Gaussian, Laplacian as Laplacian, Linear as Linear
from .kernels import Manhattan as Manhattan, Normalized as Normalized, Polynomial as Polynomial, Sigmoid as Sigmoid
from .kernels import SquaredEuclidean as SquaredEuclidean, Vovk as Vovk
from .learners import KernelClassifier as KernelClassifier, KernelNovelty as KernelNovelty
from .learners import KernelRegressor as KernelRegressor
from .losses import EpsilonInsensitive as EpsilonInsensitive, Hinge as Hinge, Huber as Huber, Logistic as Logistic
from .losses import Pinball as Pinball, Squared as Squared
from .merging import merge as merge
from .pairwise import Fifo as Fifo, PairwiseAUC as PairwiseAUC, PairwiseMetric as PairwiseMetric
from .pairwise import PairwiseSimilarity as PairwiseSimilarity, Reservoir as Reservoir, ReservoirX as ReservoirX
from .pairwise import TwoStageMKL as TwoStageMKL
from .persist import ModelFileError as ModelFileError, from_bytes as from_bytes, load as load
from .prepared import Prepared as Prepared
from .race import Race as Race
from .rules import SGD as SGD, Adatron as Adatron, Alma as Alma, Density as Density, FeasibleSet as FeasibleSet
from .rules import Implicit as Implicit
from .rules import MarginProjection as MarginProjection, PassiveAggressive as PassiveAggressive
from .rules import Perceptron as Perceptron, Romma as Romma, Step as Step, StepSizeAdaptation as StepSizeAdaptation
from .rules import Trial as Trial
from .similarity import LandmarkClassifier as LandmarkClassifier, LandmarkOrdinal as LandmarkOrdinal
from .similarity import LandmarkPairClassifier as LandmarkPairClassifier, LandmarkRanker as LandmarkRanker
from .similarity import LandmarkRegressor as LandmarkRegressor, Landmarks as Landmarks
from .similarity import SparseLandmarkRegressor as SparseLandmarkRegressor, goodness as goodness
from .structured import StructuredLearner as StructuredLearner
