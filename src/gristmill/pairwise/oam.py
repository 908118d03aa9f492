"""Online AUC maximisation by two reservoirs: the baselines that OLP is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common.ranges import Range, is_whole, one_of, positive
from .._common.types import RandomState
from ._base import Array
from ._ranker import Ranker

_pair_of_reservoirs = Range("a whole number >= 2", lambda v: is_whole(v) and v >= 2)


class OAM(Ranker):
    """AUC by a reservoir for each class: one gradient step an event, or one passive-aggressive step a pair.

    An event is compared with the reservoir of the other class. Each pair counts C_t/2 with C_t = C max(1,
    n/s), n events of the other class so far in s places, so that the steps grow with the stream. (The factor
    1/2 only rescales C.)

    Parameters
    ----------
    method : {"gra", "seq"}, default="gra"
        OAM_gra: w += C_t/2 sum y (x - x') over the pairs with margin <= 1. OAM_seq: for one pair after the
        other the smallest step that gives it margin 1, at most C_t/2.
    C : float > 0, default=1.0
    size : int >= 2, default=100
        Points kept in all, half of them for each class.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    buffer_auc_, threshold_, waiting_, buffer_ids_, n_seen_, n_pairs_, memory_bytes_, classes_

    References
    ----------
    P. Zhao, S. C. H. Hoi, R. Jin, T. Yang, Online AUC Maximization, ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.preprocessing import scale
    >>> from gristmill.pairwise import OAM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OAM("gra", C=0.001, random_state=0).fit(scale(X), y)
    >>> print(f"{roc_auc_score(y, model.decision_function(scale(X))):.3f}")
    0.997
    """

    def __init__(self, method: str = "gra", C: float = 1.0, size: int = 100, random_state: RandomState = None) -> None:
        self.method = method
        self.C = C
        self.size = size
        self.random_state = random_state

    def checked_parts(self) -> Any:
        return _core.TwoReservoirRanker, dict(
            C=float(self._check_range("C", positive)),
            sequential=self._check_range("method", one_of("gra", "seq")) == "seq",
            size=int(self._check_range("size", _pair_of_reservoirs)),
        )

    def _report(self) -> dict[str, Any]:
        negative, positive_ = self._engine.report()
        joined = {name: np.concatenate([negative[name], positive_[name]]) for name in ("points", "labels", "ids")}
        return {
            **joined,
            "seen": negative["seen"] + positive_["seen"],
            **{name: negative[name] for name in ("pairs", "auc")},
        }

    @property
    def buffer_ids_(self) -> npt.NDArray[np.int64]:
        """Place of each kept event among the events of its own class, from 0; negative class first."""
        return super().buffer_ids_

    @property
    def coef_(self) -> Array:
        """The weights of the scorer."""
        return self._sign() * np.asarray(self._engine.weights())
