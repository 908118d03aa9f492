"""Many learners of one kind, stepped together: one a pixel, a sensor, a machine."""

from __future__ import annotations

import operator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import _core, persist
from .._common.frozen_params import FrozenParams
from .._common.inputs import refuse_masked
from .._common.labels import NO_LABELS
from .._common.threads import jobs, resolved
from .._common.types import Fields, FileFields, Fitted, Labels
from .base import FleetBase, shaped


class Fleet(FleetBase):
    """n learners of the same kernel, rule and budget, each with its own stream.

    Each member equals the prototype trained on the events of that member alone, bit for bit. Together they are many
    times faster and need a fraction of the memory, because vector instructions process several learners at once.

    Parameters
    ----------
    prototype : KernelClassifier, KernelRegressor, KernelNovelty, or one of them in Prepared
        What each member is; in `Prepared` each has a scaling of its own. Its budget must have a fixed size
        (`Window(steps)`, `DropOldest`, `DropSmallest`, `DropRandom`, `Merge`) and its rule must not ask for the norm of f.
    n : int
        How many members there are.
    n_jobs : int or None, default=1
        Threads, as scikit-learn counts them: -1 for all cores. The result is the same for any number.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels, NIPS 2006: one
    novelty detector a pixel.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Fleet, Gaussian, ilk_novelty
    >>> frames = np.random.default_rng(0).normal(size=(200, 100, 3))
    >>> fleet = Fleet(ilk_novelty(Gaussian(0.5), C=0.1, reg=0.005, size=20), n=100)
    >>> scores = fleet.prequential(frames)
    >>> scores.shape, int(fleet.n_support_.max())
    ((200, 100), 20)
    >>> member = fleet[7]
    >>> member.n_seen_
    200
    """

    _cores = (_core.FleetDouble, _core.FleetSingle)
    _runs_with: FrozenParams | None = None

    def __init__(self, prototype: Any, n: int, n_jobs: int | None = 1) -> None:
        self.prototype = prototype
        self.n = n
        self.n_jobs = n_jobs

    def checked_parts(self) -> Any:
        if not isinstance(self.n, int | np.integer) or isinstance(self.n, bool) or self.n < 1:
            raise ValueError(f"n must be a whole number above 0, got {self.n!r}")
        jobs.check("Fleet", "n_jobs", self.n_jobs)
        return super().checked_parts()

    def _started(self) -> Any:
        core = super()._started()
        if self._runs_with is None:  # it has just begun
            self._runs_with = FrozenParams(self, ("prototype", "n"))
        self._runs_with.refuse_changed(self)
        return core

    # ---- learning ---------------------------------------------------------------------------------------------------

    def step(
        self, X: Any, y: Any = None, present: object = None, sample_weight: Labels = None, classes: object = None
    ) -> Any:
        """Learn one sample per member and return the predictions made before, as `prequential` does for many frames.

        Parameters
        ----------
        X : array of shape (n, features)
        y : n labels or targets; nothing for novelty
        present : n booleans, optional
            False where no event came: that member does not change, and its score is NaN.
        sample_weight : n numbers >= 0, optional
        classes : labels known in advance, optional
        """
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"step takes one event a member, shape ({self.n}, features), got {X.ndim} dimensions")
        return self._learn(X[None], y, present, sample_weight, classes, True)[0]

    def partial_fit(
        self, X: Any, y: Any = None, present: object = None, sample_weight: Labels = None, classes: object = None
    ) -> Self:
        """Learn frames in order; X has the shape (frames, n, features), y, present and sample_weight (frames, n)."""
        self._learn(X, y, present, sample_weight, classes, False)
        return self

    def prequential(
        self, X: Any, y: Any = None, present: Any = None, sample_weight: Any = None, classes: Any = None
    ) -> Any:
        """Learn as `partial_fit` does, and return what was predicted for each event before."""
        return self._learn(X, y, present, sample_weight, classes, True)

    def _learn(self, X: Any, y: Any, present: Any, weights: Any, classes: Any, want: bool) -> Any:
        parts = self.checked_parts() if self._core_ is None else None
        if parts is None:
            self._started()
        X = self._frames(X)
        shape = X.shape[:2]
        mask = self._mask(present, shape)
        there = None if mask is None else mask.reshape(-1).astype(bool)
        if y is not None:
            self._refuse_unknown(y, shape, there)
        table, numbers, known = self._codes(y, there, classes)
        weights = self._weighed(table, numbers, self._weights(weights, shape))
        weights = None if weights is None else weights.reshape(shape)
        core = self._core_
        seed = None
        if core is None:
            seeds = self._seeds()
            seed = int(seeds[0])
            core = self.begin_core(parts, X.shape[2], X.dtype, seeds)
        labels = None if numbers is None else numbers.reshape(shape)
        before, changes = self._table, core.changes
        try:
            self._table = table  # first: a concurrent reader uses only as many names as it has scores
            scores = core.learn(X, labels, weights, mask, want, known, self._threads(core, len(X)))
            if seed is not None:
                self._first_seed, self.n_features_in_ = seed, X.shape[2]
                self._core_ = core
        except BaseException:  # an interrupt may come after the core has learned the chunk
            if self._core_ is None or core.changes == changes:
                self._table = before
            raise
        if seed is not None:
            self._started()  # from now on with these parameters
        return self.shown_scores(scores, core.classes) if want else None

    def _threads(self, core: Any, frames: int) -> int:
        """How many threads so many frames may use; one, where asking how many costs more than they gain."""
        little = self.n_jobs == 1 or frames * int(core.memory_bytes) < 1 << 22
        return 1 if little else resolved(self.n_jobs)

    def _seeds(self) -> npt.NDArray[np.uint64]:
        return np.array([self.drawn_seed() for _ in range(1 if self._one_seed else self.n)], dtype=np.uint64)

    def begin_core(self, parts: Any, width: int, dtype: Any, seeds: npt.NDArray[np.uint64]) -> Any:
        return self._made(self._cores[dtype == np.float32], parts, width, count=self.n, seeds=seeds)

    def _frames(self, X: Any) -> npt.NDArray[Any]:
        X = self._numbers(X)
        width = self.n_features_in_ if self._core_ is not None else X.shape[-1] if X.ndim == 3 else 0
        if X.ndim != 3 or X.shape[1] != self.n or X.shape[2] != width or width == 0:
            features = width or "features"
            raise ValueError(f"X must have the shape (frames, {self.n}, {features}), got {X.shape}")
        if len(X) == 0:
            raise ValueError("X holds 0 frames")
        return X

    def _mask(self, present: object, shape: tuple[int, ...]) -> Any:
        if present is None:
            return None
        mask = np.asarray(present)
        if mask.dtype != bool:
            raise ValueError(f"present must hold booleans, got {mask.dtype}")
        return np.ascontiguousarray(shaped("present", mask, shape), dtype=np.uint8)

    def _refuse_unknown(self, y: Any, shape: tuple[int, ...], there: object) -> None:
        """Labels and targets of another shape, and those of events that came which are not finite."""
        refuse_masked(y, "y")
        values = shaped("y", y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y), shape).reshape(-1)
        if values.dtype.kind != "f":
            return
        bad = ~np.isfinite(values) if there is None else ~np.isfinite(values) & there
        if bad.any():
            at = int(bad.argmax())
            kind = "NaN" if np.isnan(values[at]) else "infinity"
            raise ValueError(f"Input y contains {kind}: {self._where(at)} is {values[at]}")

    def _where(self, event: int) -> str:
        return f"learner {event % self.n}, frame {event // self.n}"

    # ---- answers ----------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any, present: object = None) -> Any:
        """Scores of one event a member, shape (n, features), or of frames of them; nothing is learned."""
        return self._scores(X, present)[0]

    def predict(self, X: Any, present: object = None) -> Any:
        """Predict the sample of each member: a class, a number, or -1 for an outlier and 1 for an inlier.

        What stands in the place of a member without an event (`present`) means nothing.
        """
        return self.predictions_of(*self._scores(X, present))

    def predict_proba(self, X: Any, present: object = None) -> Any:
        """The probability of each class, in the last axis, by what each member has learned of its scores."""
        return self._scores(X, present, shares=True)[0]

    def _scores(self, X: Any, present: object, shares: bool = False) -> tuple[Any, int]:
        core = self._started()
        X = np.asarray(X) if not hasattr(X, "tocsr") else X
        single = X.ndim == 2
        frames = self._frames(X[None] if single else X)
        asked = frames, self._mask(present, frames.shape[:2]), self._threads(core, len(frames))
        scores, classes = core.score(*asked, False)
        shown = self.shown_scores(scores, classes)
        if shares:
            self._refuse_shares()
            shown = self._shares(core.score(*asked, True)[0], shown, classes)
        return (shown[0] if single else shown), classes

    # ---- members ----------------------------------------------------------------------------------------------------

    def predict_one(self, i: Any, x: object) -> Any:
        """Predict one sample by member i: a class, a number, or -1 for an outlier and 1 for an inlier."""
        return self[i].predict_one(x)

    def score_one(self, i: Any, x: object) -> Any:
        """The score of one event by member i."""
        return self[i].score_one(x)

    def __len__(self) -> int:
        return int(self.n)

    def _place(self, i: Any) -> npt.NDArray[np.int64]:
        at = operator.index(i)
        if not -self.n <= at < self.n:
            raise IndexError(f"the fleet has {self.n} members, got number {at}")
        return np.array([at % self.n], dtype=np.int64)

    def __getitem__(self, i: Any) -> Any:
        """Member i as a plain estimator with its state; learning with it does not change the fleet."""
        return self._learner(self._started().members(self._place(i)), self._first_seed)

    def __setitem__(self, i: Any, model: Any) -> None:
        """Put a learner of the same parts in the place of member i; if it is the first, the others know its classes."""
        place, fresh = self._place(i), self._core_ is None
        if fresh:
            self._begin_with(model)
        try:
            self._started().set_members(place, self._packed(model))
        except Exception:
            if fresh:
                self._core_, self._table, self._runs_with = None, NO_LABELS, None
            raise

    def _begin_with(self, model: Any) -> None:
        run, _ = self._run_of(model)
        seeds = self._seeds()
        dtype = np.dtype(np.float32 if run.core.is_single else np.float64)
        core = self.begin_core(self.checked_parts(), run.core.width, dtype, seeds)
        core.add_classes(run.core.classes)
        self._core_, self._table, self._first_seed = core, run.labels, int(seeds[0])
        self.n_features_in_ = core.width
        self._started()

    @property
    def n_support_(self) -> npt.NDArray[np.int64]:
        """How many points each member has stored."""
        return np.array(self._started().sizes())

    @property
    def n_seen_(self) -> npt.NDArray[np.int64]:
        """How many events came to each member."""
        return np.array(self._started().seen())

    # ---- files ------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in super().__getstate__().items() if key != "_runs_with"}

    def saved_fields(self) -> FileFields:
        core = self._started()
        arrays = core.members(np.arange(self.n, dtype=np.int64))
        fitted = {"classes": core.classes, "seed": self._first_seed, **persist.encode_features(self)}
        return arrays, {**fitted, **self._labels_to_file()}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        table = self._labels_from_file(fitted)
        if int(fitted["classes"]) != len(table):
            raise persist.ModelFileError("its classes do not fit its labels")
        if len(arrays["sizes"]) != self.n:
            raise persist.ModelFileError(f"it states {self.n} members and holds {len(arrays['sizes'])}")
        persist.decode_features(self, fitted)
        self._first_seed = int(fitted["seed"])
        seeds = np.array([self._first_seed], dtype=np.uint64)
        persist.justify(self.n * 8.0 * self.n_features_in_, arrays, "members")
        persist.justify(self.n * self._least_bytes(), arrays, "members", 2**28)
        core = self.begin_core(self.checked_parts(), self.n_features_in_, arrays["points"].dtype, seeds)
        core.add_classes(len(table))
        core.set_members(np.arange(self.n, dtype=np.int64), arrays)
        self._core_, self._table = core, table
        self._started()
