"""Regression with few landmarks out of many (RegLand-Sp): prediction compares with those few only."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from .._common.ranges import Range, count, non_negative, one_of, positive
from .._common.types import Labels, RandomState, Table
from .model import OTHERS, SHARED, LinearLandmarkModel, all_or_nothing
from .regression import real_targets, spread_of
from .solvers.greedy import (
    Loss,
    RoundedTube,
    SquaredLoss,
    corrective_squared,
    corrective_tube,
    forward_greedy,
    steadied,
)

Values = npt.NDArray[np.float64]


class SparseLandmarkRegressor(RegressorMixin, LinearLandmarkModel):
    __doc__ = f"""A regressor over the few landmarks that forward greedy selection takes from a pool.

    After the fit only the chosen landmarks are kept, and `predict` evaluates the similarity to those only. A
    constant is in from the start and is not counted.

    Parameters
    ----------
    {SHARED}
    n_nonzero : int >= 1, default=50
        How many landmarks to keep, at most (k in the thesis).
    n_landmarks : int >= 1, default=500
        How many objects to choose from (d).
    method : {{"corrective", "plain"}}, default="corrective"
        "corrective" refits all chosen weights at each step and has no other bound; "plain" (Algorithm 6)
        moves inside the L1 ball of `radius` until its gap, a bound on what could still be gained there, is
        at most `tol`.
    loss : {{"squared", "epsilon_insensitive"}}, default="squared"
        The second is rounded over the width `smoothing`, as the method needs a smooth loss.
    epsilon : float >= 0, default=0.0
        Errors up to this cost nothing ("epsilon_insensitive" only), in units of the targets.
    smoothing : float > 0, default=0.01
        1 / beta in the thesis, relative to the largest deviation of the targets from their centre.
    radius : float > 0, default=10.0
        C_W, for similarities in [-1, 1] and targets scaled to [-1, 1] ("plain" only).
    tol : float > 0, default=1e-4
    reg : float >= 0, default=0.0
        Weight of |w|^2 in a last refit of the chosen landmarks ("corrective" only). The method itself has no
        bound on the weights, and beyond some 50 landmarks that are nearly dependent they can explode: 1e-5
        then steadies them.
    max_iter : int >= 1, default=1000
        Steps of "plain".
    selection : {{"random", "diverse"}} or positions, default="random"
        How the pool is chosen.
    {OTHERS}

    Attributes
    ----------
    landmarks_, landmark_indices_ : the landmarks kept and their positions in the training set, ascending
    coef_, intercept_ : over similarities divided by `scale_`, in units of the targets
    gap_ : the last gap ("plain" only)
    n_iter_ : steps taken
    n_evaluations_ : how often the similarity was evaluated in `fit`

    References
    ----------
    P. Kar, P. Jain, Supervised Learning with Similarity Functions, NIPS 2012.
    S. Shalev-Shwartz, N. Srebro, T. Zhang, Trading Accuracy for Sparsity in Optimization Problems with
    Sparsity Constraints, SIAM J. Optimization 20(6), 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, SparseLandmarkRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(600, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> model = SparseLandmarkRegressor(Gaussian(1.0), n_nonzero=8, n_landmarks=200, random_state=0).fit(X, y)
    >>> error = np.mean((model.predict(X) - y) ** 2)
    >>> print(f"{{model.n_landmarks_}} landmarks, mean squared error {{error:.1e}}")
    8 landmarks, mean squared error 3.0e-04
    """

    _ranges: ClassVar[dict[str, Range]] = {
        "n_nonzero": count,
        "method": one_of("corrective", "plain"),
        "loss": one_of("squared", "epsilon_insensitive"),
        "epsilon": non_negative,
        "smoothing": positive,
        "radius": positive,
        "tol": positive,
        "reg": non_negative,
        "max_iter": count,
    }

    def __init__(
        self,
        similarity: object = None,
        n_nonzero: int = 50,
        n_landmarks: int = 500,
        method: str = "corrective",
        loss: str = "squared",
        epsilon: float = 0.0,
        smoothing: float = 0.01,
        radius: float = 10.0,
        tol: float = 1e-4,
        reg: float = 0.0,
        max_iter: int = 1000,
        selection: object = "random",
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_nonzero = n_nonzero
        self.n_landmarks = n_landmarks
        self.method = method
        self.loss = loss
        self.epsilon = epsilon
        self.smoothing = smoothing
        self.radius = radius
        self.tol = tol
        self.reg = reg
        self.max_iter = max_iter
        self.selection = selection
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Table, y: Labels) -> Self:
        """Choose the pool, select from it and learn the weights; whatever was learned before is forgotten."""
        rng, X = self._reset(X)
        targets = real_targets(type(self).__name__, X, y)
        pool, values, scale = self._compared(X, rng)
        squared = self.loss == "squared"
        centre = float(np.mean(targets) if squared else np.median(targets))
        spread = spread_of(targets, centre)
        loss: Loss = SquaredLoss() if squared else RoundedTube(self.epsilon / spread, 1.0 / self.smoothing)
        chosen, weights, offset = self._select(values, (targets - centre) / spread, loss)
        order = np.argsort(chosen)
        self.coef_ = spread * weights[order][None, :]
        self.intercept_ = np.array([centre + spread * offset])
        self._keep(X, pool[chosen[order]], scale)
        return self

    def _select(self, values: Values, targets: Values, loss: Loss) -> tuple[Any, Values, float]:
        most = min(self.n_nonzero, values.shape[1])
        if self.method == "plain":
            # Columns less their means, so that the constant is in without standing in the ball.
            middles = values.mean(axis=0)
            weights, self.gap_, self.n_iter_ = forward_greedy(
                values - middles, targets, loss, self.radius, self.tol, most, self.max_iter
            )
            chosen = np.flatnonzero(weights)
            weights, offset = weights[chosen], -float(middles @ weights)
        elif isinstance(loss, SquaredLoss):
            chosen, weights, offset = corrective_squared(values, targets, most)
        else:
            chosen, weights, offset = corrective_tube(values, targets, loss, most)
        if self.method == "corrective":
            self.n_iter_ = max(1, len(chosen))
            if self.reg > 0 and len(chosen):
                weights, offset = steadied(values[:, chosen], targets, loss, self.reg)
        if len(chosen):
            return chosen, weights, offset
        # Nothing helps, as for constant targets: one landmark of weight 0 stands for none.
        return np.array([0]), np.zeros(1), offset

    def predict(self, X: Table) -> Values:
        """A number for each object, from its similarities to the landmarks kept."""
        return self._linear(X)
