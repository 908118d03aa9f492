"""gristmill: kernel learning on a stream, in bounded memory and bounded time per event.

Names are imported when they are first used, so that `import gristmill` and the command line start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import checks, datasets, evaluate, pairwise, similarity, streams, theory
    from .additive import Additive, Spline
    from .additive_display import AdditiveDisplay
    from .budgets import DropOldest, DropRandom, DropSmallest, Forget, Project, Unbounded, Window
    from .catalogue import (
        adatron,
        alma,
        forgetron,
        ilk_classifier,
        ilk_novelty,
        ilk_regressor,
        norma_classifier,
        norma_novelty,
        norma_regressor,
        passive_aggressive,
        passive_aggressive_regressor,
        perceptron,
        projection_classifier,
        projection_regressor,
        projectron,
        projectron_pp,
        random_budget_perceptron,
        romma,
        svmd,
    )
    from .features import (
        Compose,
        DotProduct,
        FeatureClassifier,
        FeatureLearner,
        FeatureNovelty,
        FeatureRegressor,
        FourierFeatures,
        HomogeneousFeatures,
        RandomMaclaurin,
        n_components_for,
        truncation_degree,
        truncation_error,
    )
    from .kernels import (
        Exponential,
        Gaussian,
        Kernel,
        Laplacian,
        Linear,
        Manhattan,
        Normalized,
        Polynomial,
        PythonKernel,
        Sigmoid,
        SquaredEuclidean,
        Vovk,
    )
    from .learners import KernelClassifier, KernelNovelty, KernelRegressor
    from .losses import EpsilonInsensitive, Hinge, Huber, Logistic, Squared
    from .pairwise import (
        OAM,
        AlignmentPairs,
        AUCPairs,
        ExponentialLoss,
        Fifo,
        GoodnessPairs,
        GroupBall,
        L1Ball,
        L2Ball,
        MetricPairs,
        OnColumns,
        PairwiseAUC,
        PairwiseLearner,
        PairwiseLoss,
        PairwiseMetric,
        PairwiseSimilarity,
        PSDCone,
        Reservoir,
        ReservoirX,
        Simplex,
        SquaredHinge,
        TraceBall,
        TwoStageMKL,
    )
    from .persist import ModelFileError, load
    from .prepared import Prepared
    from .rules import (
        SGD,
        Adatron,
        Alma,
        FeasibleSet,
        Implicit,
        MarginProjection,
        PassiveAggressive,
        Perceptron,
        Romma,
        Step,
        StepSizeAdaptation,
        Trial,
    )
    from .similarity.classifiers import LandmarkClassifier
    from .similarity.criteria import goodness
    from .similarity.landmarks import Landmarks
    from .similarity.ordinal import LandmarkOrdinal
    from .similarity.pairs import LandmarkPairClassifier
    from .similarity.ranking import LandmarkRanker
    from .similarity.regression import LandmarkRegressor
    from .similarity.sparse import SparseLandmarkRegressor
    from .similarity.stream import StreamLandmarkClassifier, StreamLandmarkRegressor
    from .structured import StructuredLearner

_HOME = {
    "additive": ("Additive", "Spline"),
    "additive_display": ("AdditiveDisplay",),
    "budgets": ("DropOldest", "DropRandom", "DropSmallest", "Forget", "Project", "Unbounded", "Window"),
    "catalogue": (
        "adatron",
        "alma",
        "forgetron",
        "ilk_classifier",
        "ilk_novelty",
        "ilk_regressor",
        "norma_classifier",
        "norma_novelty",
        "norma_regressor",
        "passive_aggressive",
        "passive_aggressive_regressor",
        "perceptron",
        "projection_classifier",
        "projection_regressor",
        "projectron",
        "projectron_pp",
        "random_budget_perceptron",
        "romma",
        "svmd",
    ),
    "features": (
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
    ),
    "kernels": (
        "Exponential",
        "Gaussian",
        "Kernel",
        "Laplacian",
        "Linear",
        "Manhattan",
        "Normalized",
        "Polynomial",
        "PythonKernel",
        "Sigmoid",
        "SquaredEuclidean",
        "Vovk",
    ),
    "learners": ("KernelClassifier", "KernelNovelty", "KernelRegressor"),
    "losses": ("EpsilonInsensitive", "Hinge", "Huber", "Logistic", "Squared"),
    "pairwise": (
        "AUCPairs",
        "AlignmentPairs",
        "ExponentialLoss",
        "Fifo",
        "GoodnessPairs",
        "GroupBall",
        "L1Ball",
        "L2Ball",
        "MetricPairs",
        "OAM",
        "OnColumns",
        "PSDCone",
        "PairwiseAUC",
        "PairwiseLearner",
        "PairwiseLoss",
        "PairwiseMetric",
        "PairwiseSimilarity",
        "Reservoir",
        "ReservoirX",
        "Simplex",
        "SquaredHinge",
        "TraceBall",
        "TwoStageMKL",
    ),
    "persist": ("ModelFileError", "load"),
    "prepared": ("Prepared",),
    "rules": (
        "SGD",
        "Adatron",
        "Alma",
        "FeasibleSet",
        "Implicit",
        "MarginProjection",
        "PassiveAggressive",
        "Perceptron",
        "Romma",
        "Step",
        "StepSizeAdaptation",
        "Trial",
    ),
    "similarity": (
        "LandmarkClassifier",
        "LandmarkOrdinal",
        "LandmarkPairClassifier",
        "LandmarkRanker",
        "LandmarkRegressor",
        "Landmarks",
        "SparseLandmarkRegressor",
        "StreamLandmarkClassifier",
        "StreamLandmarkRegressor",
        "goodness",
    ),
    "structured": ("StructuredLearner",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_MODULES = ("checks", "datasets", "evaluate", "pairwise", "similarity", "streams", "theory")

__all__ = ["__version__", *_MODULE_OF, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
