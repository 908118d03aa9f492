"""Regression by similarities to landmarks (RegLand)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from .._common.inputs import refuse_masked
from .._common.ranges import Range, non_negative, one_of, positive
from .._common.types import Labels, RandomState, Table
from .model import OTHERS, SHARED, LinearLandmarkModel, all_or_nothing, check_same_length
from .solvers.newton import minimise

Values = npt.NDArray[np.float64]


def real_targets(name: str, X: Table, y: Labels) -> Values:
    """Targets as finite numbers, one an object."""
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None")
    refuse_masked(y, "y")
    targets = np.ascontiguousarray(column_or_1d(y, warn=True), dtype=np.float64)
    check_same_length(X, targets)
    bad = np.flatnonzero(~np.isfinite(targets))
    if bad.size:
        raise ValueError(f"Input y contains NaN or infinity: row {bad[0]} is {targets[bad[0]]}")
    return targets


def spread_of(targets: Values, centre: float) -> float:
    """The largest distance from the centre: over this, centred targets are in [-1, 1], as the theory asks."""
    return float(np.abs(targets - centre).max()) or 1.0


class LandmarkRegressor(RegressorMixin, LinearLandmarkModel):
    __doc__ = f"""A linear epsilon-insensitive regressor over similarities to landmarks.

    Inside, similarities are divided by sup |K| and targets are centred and divided by their largest
    deviation, so that C means the same whatever the units; `epsilon` is in those of the targets.

    Parameters
    ----------
    {SHARED}
    n_landmarks : int >= 1, default=100
        d in the thesis; where there are fewer objects, each of them becomes a landmark.
    C : float > 0, default=1.0
        Weight of the loss.
    epsilon : float >= 0, default=0.0
        Errors up to this cost nothing.
    selection : {{"random", "diverse"}} or positions, default="random"
    solver : {{"newton", "liblinear"}}, default="newton"
        LIBLINEAR's dual descent often stops far from the least objective where landmarks are nearly
        dependent, as here they are; "newton" finds it, mostly in less time.
    {OTHERS}

    Attributes
    ----------
    landmarks_, landmark_indices_ : the landmarks and their positions in the training set, ascending
    coef_, intercept_ : over similarities divided by `scale_`, in units of the targets
    n_evaluations_ : how often the similarity was evaluated in `fit`

    References
    ----------
    P. Kar, P. Jain, Supervised Learning with Similarity Functions, NIPS 2012, Algorithm 1 (5 in the thesis).

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import LandmarkRegressor, Manhattan
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(400, 2))
    >>> y = np.abs(X[:, 0]) - X[:, 1]
    >>> model = LandmarkRegressor(Manhattan(), n_landmarks=40, C=10.0, random_state=0).fit(X[:300], y[:300])
    >>> print(f"mean absolute error {{np.abs(model.predict(X[300:]) - y[300:]).mean():.3f}}")
    mean absolute error 0.005
    """

    _ranges: ClassVar[dict[str, Range]] = {
        "C": positive,
        "epsilon": non_negative,
        "solver": one_of("newton", "liblinear"),
    }

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        C: float = 1.0,
        epsilon: float = 0.0,
        selection: object = "random",
        solver: str = "newton",
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.C = C
        self.epsilon = epsilon
        self.selection = selection
        self.solver = solver
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Table, y: Labels) -> Self:
        """Choose the landmarks and learn the weights; whatever was learned before is forgotten."""
        rng, X = self._reset(X)
        targets = real_targets(type(self).__name__, X, y)
        positions, values, scale = self._compared(X, rng)
        centre = float(np.median(targets))
        spread = spread_of(targets, centre)
        train = fit_tube if self.solver == "newton" else _liblinear
        seed = int(rng.integers(2**31))
        weights, offset = train(values, (targets - centre) / spread, self.C, self.epsilon / spread, seed)
        self.coef_, self.intercept_ = spread * weights[None, :], np.array([centre + spread * offset])
        self._keep(X, positions, scale)
        return self

    def predict(self, X: Table) -> Values:
        """A number for each object."""
        return self._linear(X)


def fit_tube(values: Values, targets: Values, C: float, epsilon: float, seed: int = 0) -> tuple[Values, float]:
    """Weights and offset that minimise |w|^2 / 2 + C sum of epsilon-insensitive losses."""
    design = np.column_stack([values, np.ones(len(values))])
    margins = np.concatenate([targets - epsilon, -targets - epsilon])
    ridge = np.append(np.ones(values.shape[1]), 1e-8)  # the constant is free, but for ties
    solution = minimise(np.vstack([design, -design]), margins, np.full(len(margins), float(C)), ridge)
    return solution[:-1], float(solution[-1])


def _liblinear(values: Values, targets: Values, C: float, epsilon: float, seed: int) -> tuple[Values, float]:
    from sklearn.svm import LinearSVR

    machine = LinearSVR(C=C, epsilon=epsilon, random_state=seed).fit(values, targets)
    return machine.coef_, float(machine.intercept_[0])
