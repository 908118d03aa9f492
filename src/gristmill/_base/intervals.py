"""Intervals that cover a given share of the targets, for learners whose core follows its own errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common import inputs, labels
from .._common.ranges import is_real
from .estimator import Scores
from .predictors import RegressionMixin

#: the coverages that are tracked; what lies between them is interpolated
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


def checked_coverage(coverage: Any) -> float:
    """A coverage that there are intervals for."""
    if not is_real(coverage) or not LEVELS[0] <= coverage <= LEVELS[-1]:
        kind = ValueError if is_real(coverage) else TypeError
        raise kind(f"coverage must be a number from {LEVELS[0]} to {LEVELS[-1]}, got {coverage!r}")
    return float(coverage)


def around(scores: Scores, halves: Scores) -> Scores:
    """Lower and upper ends, in the last axis."""
    return np.stack([scores - halves, scores + halves], axis=-1)


class IntervalMixin(RegressionMixin):
    """Regressor with prediction intervals."""

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Scores:
        """An interval for each event, (n, 2), that holds a share `coverage` of the targets; (n, targets, 2) for several.

        Adaptive conformal inference: the half width follows the errors of the predictions made before each sample was
        learned, so that the share of misses stays at 1 - coverage however the stream drifts. The errors are measured in
        units of their running mean; for each of the levels 0.5, 0.8, 0.9, 0.95 and 0.99 thresholds with five step sizes
        are tracked, each weighted by its pinball loss, and coverages between two levels are interpolated. The model
        keeps 57 numbers a target for it. Weights of events do not touch them, but for weight 0.

        Parameters
        ----------
        X : rows as in `predict`
        coverage : float from 0.5 to 0.99, default=0.9

        References
        ----------
        I. Gibbs, E. J. Candès, Adaptive Conformal Inference Under Distribution Shift, NeurIPS 2021.
        I. Gibbs, E. J. Candès, Conformal Inference for Online Prediction with Arbitrary Distribution Shifts, JMLR 25, 2024.
        A. N. Angelopoulos, E. J. Candès, R. J. Tibshirani, Conformal PID Control for Time Series Prediction, NeurIPS 2023.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Gaussian, KernelRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-2, 2, size=(4000, 1))
        >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=4000)
        >>> model = KernelRegressor(Gaussian(2.0)).fit(X[:3000], y[:3000])
        >>> low, high = model.predict_interval(X[3000:], coverage=0.9).T
        >>> print(f"{((low <= y[3000:]) & (y[3000:] <= high)).mean():.1f} of the targets lie inside")
        0.9 of the targets lie inside
        """
        level = checked_coverage(coverage)
        scores = self._scores(X)[0]
        return around(scores, self._halves(level))

    def predict_interval_one(self, x: Any, coverage: float = 0.9) -> tuple[Any, Any]:
        """The interval of one event, lower and upper end; everything is possible before anything was learned."""
        level = checked_coverage(coverage)
        if self._run is None:
            return -np.inf, np.inf
        score, half = self.score_one(x), self._halves(level)
        return score - half, score + half

    def prequential_interval(
        self, X: Any, y: Any, coverage: float = 0.9, sample_weight: Any = None
    ) -> npt.NDArray[np.float64]:
        """Learn as `partial_fit` does, and return the interval of each event before it was learned.

        The first event of a stream gets everything from -inf to inf.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Gaussian, KernelRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-2, 2, size=(4000, 1))
        >>> noise = np.where(np.arange(4000) < 2000, 0.1, 1.0)  # the sensor breaks
        >>> y = np.sin(2 * X[:, 0]) + noise * rng.normal(size=4000)
        >>> low, high = KernelRegressor(Gaussian(2.0)).prequential_interval(X, y, coverage=0.8).T
        >>> print(f"{((low <= y) & (y <= high))[2000:].mean():.2f} of the targets lie inside after the break")
        0.80 of the targets lie inside after the break
        """
        level = checked_coverage(coverage)
        known = None if self._run is None else self._run.core.intervals()
        scores = self._learn(X, y, sample_weight, want_scores=True)
        said = np.ascontiguousarray(scores.reshape(len(scores), -1))
        targets = labels.targets(type(self).__name__, y, len(said), said.shape[1] > 1).reshape(said.shape)
        weights = None if sample_weight is None else inputs.weights(sample_weight, len(said))
        follower = _core.Intervals(said.shape[1]) if known is None else known
        return around(scores, follower.follow(said, targets, weights, level).reshape(scores.shape))

    def _halves(self, level: float) -> Any:
        halves = self._started().core.intervals().halves(level)
        return float(halves[0]) if len(halves) == 1 else halves
