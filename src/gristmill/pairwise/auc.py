"""AUC on a stream: a scorer that puts positives above negatives, learned through a finite buffer."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core, persist
from .._base.estimator import Run
from .._common import inputs
from .._common.ranges import flag, non_negative, optional, positive
from .._common.types import Fields, Fitted, Labels, RandomState, State
from ..budgets import DropOldest, DropRandom, DropSmallest, Merge, Unbounded, counted
from ..kernels import as_kernel
from ._base import Array
from ._ranker import Ranker
from .buffers import check_buffer
from .losses import check_margin_loss
from .projections import L1Ball, L2Ball


class PairwiseAUC(Ranker):
    """Online AUC maximisation (OLP): each event is ranked against a buffer of earlier ones.

    Step t: w <- P[w - rate/sqrt(t) * mean over the buffer of the gradient of phi(y <w, x - x'>)], where pairs
    of one class have no gradient; then the event is offered to the buffer. Memory does not grow with the
    stream: it is the buffer, and with a kernel the budget. While only one class has come nothing is learned
    and `waiting_` is True.

    Parameters
    ----------
    kernel : kernel, callable or None, default=None
        None: a linear scorer over the features. Else f is an expansion whose stored points include the
        buffer's.
    loss : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()
        phi.
    buffer : buffer, default=ReservoirX(100)
        s points of the past; may also be a Python object with a method `offer`.
    rate : float > 0, default=1.0
        eta; the step at event t is rate/sqrt(t), or rate/(reg t) with `reg`.
    radius : float > 0 or None, default=None
        Afterwards ||w|| is at most this (the theorems need one).
    average : bool, default=False
        Score with the mean of all hypotheses, as the theory does; with a kernel it needs budget=Unbounded().
    random_state : int, Generator, RandomState or None
        Seeds the buffer; the generator is part of the model.
    reg : float >= 0, default=0.0
        sigma: adds reg/2 ||w||^2 to the loss, which makes it strongly convex and the rate faster.
    norm : {"l2", "l1"}, default="l2"
        The norm of `radius`; "l1" gives sparse weights (linear scorers only).
    opposite_only : bool, default=False
        Take the mean over the pairs of two classes, not over the whole buffer.
    budget : budget, default=Merge(1000)
        With a kernel: which stored point leaves when more than `size` are not in the buffer. `Merge` folds it onto
        the one most like it, so that the ranking survives; points of the buffer may take others' terms but stay.
        DropSmallest, DropOldest and DropRandom drop it; Unbounded keeps all.
    features : transformer or None, default=None
        A map applied to every row first, such as a random feature map. One that is not fitted is fitted on
        the first event alone: a random map needs only its width.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        w of a linear scorer, for the outward sign.
    buffer_auc_, threshold_, waiting_, buffer_ids_, n_seen_, n_pairs_, memory_bytes_, classes_

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Algorithm 8 (with the sign of the step set
    right).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.preprocessing import scale
    >>> from gristmill import PairwiseAUC, ReservoirX
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PairwiseAUC(buffer=ReservoirX(50), rate=0.1, random_state=0)
    >>> scores = model.prequential(scale(X), y)
    >>> print(f"{roc_auc_score(y, model.decision_function(scale(X))):.3f}")
    0.994
    """

    def __init__(
        self,
        kernel: object = None,
        loss: object = None,
        buffer: object = None,
        rate: float = 1.0,
        radius: float | None = None,
        average: bool = False,
        random_state: RandomState = None,
        reg: float = 0.0,
        norm: str = "l2",
        opposite_only: bool = False,
        budget: object = None,
        features: Any = None,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.buffer = buffer
        self.rate = rate
        self.radius = radius
        self.average = average
        self.random_state = random_state
        self.reg = reg
        self.norm = norm
        self.opposite_only = opposite_only
        self.budget = budget
        self.features = features

    # ---- composition -------------------------------------------------------------------------------------

    def checked_parts(self) -> Any:
        common = {
            "loss": check_margin_loss(self.loss, "PairwiseAUC").core_spec(),
            "rate": float(self._check_range("rate", positive)),
            "reg": float(self._check_range("reg", non_negative)),
            "average": bool(self._check_range("average", flag)),
            "opposite_only": bool(self._check_range("opposite_only", flag)),
            "buffer": check_buffer(self.buffer, 100),
        }
        radius = self._check_range("radius", optional(positive))
        if self.norm not in ("l2", "l1"):
            raise ValueError(f"PairwiseAUC: norm must be 'l2' or 'l1', got {self.norm!r}")
        drop, size = self._budget()
        if self.kernel is None:
            ball = None if radius is None else (L2Ball if self.norm == "l2" else L1Ball)(radius).core_ball()
            return _core.LinearRanker, {**common, "ball": ball}
        if self.norm == "l1":
            raise ValueError("PairwiseAUC: norm='l1' is for linear scorers; with a kernel use norm='l2'")
        kernel = as_kernel(self.kernel)
        if not kernel.positive_definite:
            warnings.warn(
                f"PairwiseAUC: {kernel!r} is not positive definite, so guarantees and radius have no meaning",
                stacklevel=4,
            )
        return _core.KernelRanker, {
            **common,
            "kernel": kernel.kernel_program() if kernel.is_native else kernel.value_of_pair,  # type: ignore[attr-defined]
            "radius": 0.0 if radius is None else float(radius),
            "drop": drop,
            "size": size,
        }

    def _budget(self) -> tuple[str, int]:
        budget = Merge(1000) if self.budget is None else self.budget
        if not isinstance(budget, Unbounded | Merge | DropSmallest | DropOldest | DropRandom):
            raise TypeError(
                f"PairwiseAUC: budget must be Merge, DropSmallest, DropOldest, DropRandom or Unbounded, got {budget!r}"
            )
        if isinstance(budget, DropRandom) and budget.uniform:
            raise ValueError(f"PairwiseAUC: the buffer samples events uniformly, the budget cannot; got {budget!r}")
        if self.average and self.kernel is not None and not budget.averages:
            raise ValueError(
                f"average=True needs every point that was ever stored, and {budget!r} drops points; "
                "use budget=Merge(...) or Unbounded()"
            )
        return type(budget).__name__, 0 if isinstance(budget, Unbounded) else counted(budget, "PairwiseAUC")

    # ---- input -------------------------------------------------------------------------------------------

    def takes_objects(self) -> bool:
        return self.kernel is not None and not as_kernel(self.kernel).is_native

    def _read(self, X: Any, first: bool) -> Any:
        X = super()._read(X, first)
        if self.features is None or isinstance(X, list):
            return X
        rows = X.toarray() if inputs.is_sparse(X) else X
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            row, column = bad[0]
            raise ValueError(f"Input X contains NaN or infinity: row {row}, column {column} is {rows[row, column]}")
        if first:
            self.features_ = self._ready_features(rows[:1])
        return self.features_.transform(rows)

    def _ready_features(self, event: Array) -> Any:
        from sklearn.base import clone
        from sklearn.exceptions import NotFittedError

        try:
            self.features.transform(event)
        except (NotFittedError, AttributeError):
            return clone(self.features).fit(event)
        return copy.deepcopy(self.features)

    def _number(self, run: Run, y: Labels) -> float | None:
        return None if self.features is not None else super()._number(run, y)

    def _scores_one(self, x: object) -> Any:
        run = self._started()
        if self.features is None:
            return super()._scores_one(x)
        scores, view = self._scores_of_row(run, x)
        return scores[0], view

    def parts_fields(self, parts: object) -> tuple[State, Fitted]:
        if self.features is None:
            return super().parts_fields(parts)
        from ..features._files import map_to_file

        arrays, text = map_to_file(self.features_)
        return arrays, {"map": text}

    def restored_parts(self, arrays: Fields, fitted: Fitted) -> Any:
        if self.features is not None:
            from ..features._files import map_from_file

            self.features_ = map_from_file(arrays, fitted["map"])
            if self.features_.n_features_in_ != self.n_features_in_:
                raise persist.ModelFileError("its map does not have the number of features it states")
        return super().restored_parts(arrays, fitted)

    # ---- fitted attributes -------------------------------------------------------------------------------

    def _kernel_core(self) -> Any:
        core = self._engine
        if self.kernel is None:
            raise AttributeError("a linear scorer stores no support points; its weights are coef_")
        return core

    @property
    def coef_(self) -> Array:
        """The weights of a linear scorer."""
        core = self._engine
        if self.kernel is not None:
            raise AttributeError("a kernel expansion has no weights of features; see dual_coef_ and support_vectors_")
        return self._sign() * np.asarray(core.weights())

    @property
    def support_vectors_(self) -> Any:
        """The stored points of a kernel scorer, the buffer's among them; oldest first."""

        def look(model: PairwiseAUC) -> Any:
            core = model._kernel_core()
            points, order = core.points(), np.argsort(core.ids())
            return [points[i] for i in order] if isinstance(points, list) else points[order]

        return self._at_rest(look)

    @property
    def support_ids_(self) -> npt.NDArray[np.int64]:
        """Place in the stream of each stored point; oldest first."""
        return np.sort(self._kernel_core().ids())

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the stored points, one row each."""

        def look(model: PairwiseAUC) -> Array:
            core = model._kernel_core()
            return np.asarray(model._sign() * core.dual_coef()[np.argsort(core.ids())])

        return self._at_rest(look)

    @property
    def n_support_(self) -> int:
        """How many points are stored."""
        return len(self._kernel_core().ids())

    @property
    def norm_(self) -> float:
        """||w||, in the space of the kernel if there is one."""
        if self.kernel is None:
            return float(np.linalg.norm(self.coef_))
        return float(np.sqrt(max(self._engine.norm2, 0.0)))

    def _buffer_scores(self) -> tuple[Array, Array]:
        if self.kernel is None:
            return super()._buffer_scores()
        report = self._report()
        if len(report["labels"]) == 0:
            return np.empty(0), np.empty(0)
        points, slots = self._engine.points(), report["slots"]
        rows = [points[i] for i in slots] if isinstance(points, list) else np.ascontiguousarray(points[slots])
        scores, _ = self._engine.score(rows)
        return self._sign() * np.ravel(scores), self._sign() * report["labels"]
