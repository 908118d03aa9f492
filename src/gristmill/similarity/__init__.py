"""Learning with similarities that need not be kernels: any function of two objects, through landmarks.

A similarity compares two objects; a landmark is an object that all others are compared with; a predictor is
linear in the similarities to the landmarks. Nothing asks the similarity to be positive definite or even
symmetric, and nothing ever needs the matrix of all pairs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifiers import LandmarkClassifier as LandmarkClassifier
    from .compare import SimilarityError as SimilarityError
    from .criteria import Goodness as Goodness
    from .criteria import GoodnessReport as GoodnessReport
    from .criteria import goodness as goodness
    from .landmarks import Landmarks as Landmarks
    from .ordinal import LandmarkOrdinal as LandmarkOrdinal
    from .pairs import LandmarkPairClassifier as LandmarkPairClassifier
    from .ranking import LandmarkRanker as LandmarkRanker
    from .regression import LandmarkRegressor as LandmarkRegressor
    from .sparse import SparseLandmarkRegressor as SparseLandmarkRegressor
    from .stream import StreamLandmarkClassifier as StreamLandmarkClassifier
    from .stream import StreamLandmarkRegressor as StreamLandmarkRegressor
    from .transfer import Identity as Identity
    from .transfer import Ramp as Ramp
    from .transfer import Sign as Sign

_HOME = {
    "classifiers": ("LandmarkClassifier",),
    "compare": ("SimilarityError",),
    "criteria": ("Goodness", "GoodnessReport", "goodness"),
    "landmarks": ("Landmarks",),
    "ordinal": ("LandmarkOrdinal",),
    "pairs": ("LandmarkPairClassifier",),
    "ranking": ("LandmarkRanker",),
    "regression": ("LandmarkRegressor",),
    "sparse": ("SparseLandmarkRegressor",),
    "stream": ("StreamLandmarkClassifier", "StreamLandmarkRegressor"),
    "transfer": ("Identity", "Ramp", "Sign"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [*_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
