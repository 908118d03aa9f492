"""Learning from pairs of events on a stream, with a finite buffer.

AUC, metrics, similarities and kernel mixtures are losses of two events, and a stream has no room for all
pairs. Each new event meets the points of a buffer, which is kept as a sample of the past; one step follows;
the event is offered to the buffer. P. Kar, Topics in Resource-efficient Kernel Learning, 2013, chapter 6.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .auc import PairwiseAUC
    from .buffers import Fifo, PairBuffer, Reservoir, ReservoirX
    from .learner import AlignmentPairs, AUCPairs, GoodnessPairs, MetricPairs, PairwiseLearner, PairwiseLoss
    from .losses import ExponentialLoss, SquaredHinge
    from .metric import PairwiseMetric
    from .mkl import OnColumns, TwoStageMKL
    from .oam import OAM
    from .projections import ConvexSet, GroupBall, L1Ball, L2Ball, PSDCone, Simplex, TraceBall
    from .similarity import PairwiseSimilarity

_HOME = {
    "auc": ("PairwiseAUC",),
    "buffers": ("Fifo", "PairBuffer", "Reservoir", "ReservoirX"),
    "learner": (
        "AUCPairs",
        "AlignmentPairs",
        "GoodnessPairs",
        "MetricPairs",
        "PairwiseLearner",
        "PairwiseLoss",
    ),
    "losses": ("ExponentialLoss", "SquaredHinge"),
    "metric": ("PairwiseMetric",),
    "mkl": ("OnColumns", "TwoStageMKL"),
    "oam": ("OAM",),
    "projections": ("ConvexSet", "GroupBall", "L1Ball", "L2Ball", "PSDCone", "Simplex", "TraceBall"),
    "similarity": ("PairwiseSimilarity",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "OAM",
    "AUCPairs",
    "AlignmentPairs",
    "ConvexSet",
    "ExponentialLoss",
    "Fifo",
    "GoodnessPairs",
    "GroupBall",
    "L1Ball",
    "L2Ball",
    "MetricPairs",
    "OnColumns",
    "PSDCone",
    "PairBuffer",
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
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
