"""The experts of learners that need no settings: few, coarse and wide apart; the best are those of a race, not of a guess.

Widths follow from the number of columns d: standardised columns lie 2 d apart, squared, in the median. The order is that in
which experts are left out where a memory is too small for all.
"""

from __future__ import annotations

from typing import Any

from ._trivial import Majority, NoChange
from .budgets import DropOldest, Merge
from .kernels import Gaussian, Laplacian, Linear
from .learners import KernelClassifier
from .losses import Hinge
from .prepared import Prepared
from .rules import SGD, PassiveAggressive

_ROOM = "1 MB"  # until room is shared out


def for_classes(d: int) -> list[Any]:
    """What lasts with `Merge`, at two rates (noisy labels want the lower); a vote of the newest for what drifts."""

    def one(kernel: Any, C: float = 1.0, scale: str = "standard") -> Prepared:
        return Prepared(KernelClassifier(kernel, PassiveAggressive(C), Merge(_ROOM)), scale)

    vote = SGD(Hinge(1e6), rate=1.0, reg=0.0)  # every event votes for its class, whatever the score
    return [
        one(Laplacian(3 / d)),
        one(Laplacian(3 / d), scale="relevance"),
        one(Gaussian(2 / d), scale="relevance"),
        one(Laplacian(1 / d)),
        one(Laplacian(9 / d)),
        one(Laplacian(9 / d), scale="relevance"),
        one(Gaussian(0.5 / d), scale="relevance"),
        one(Laplacian(1 / d), scale="relevance"),
        one(Gaussian(2 / d)),
        one(Laplacian(3 / d), C=0.1),
        one(Gaussian(2 / d), C=0.1),
        one(Laplacian(27 / d)),
        one(Linear() * (1 / d), C=0.1),
        Prepared(KernelClassifier(Laplacian(27 / d), vote, DropOldest(_ROOM))),
        Majority(),
        NoChange(),
    ]
