"""Pictures of explanations, calibration of probabilities, and intervals over a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..._common.types import Labels, Table
from .runs import COLOURS, _axes, _legend_above, _tidy


class ExplanationDisplay:
    """Contributions of support vectors as bars; for an anomaly, contributions of columns.

    Parameters
    ----------
    explanation : Explanation
        As `explain` of a kernel learner gives it.
    names : list of str, optional
        Of the columns.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, Perceptron
    >>> from gristmill.evaluate import ExplanationDisplay
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron()).fit([[0.0], [3.0], [1.4]], ["low", "high", "high"])
    >>> display = ExplanationDisplay.from_estimator(model, [2.8]).plot()
    >>> display.ax_.get_yticklabels()[0].get_text()
    'event 1 (high), k = 0.961'
    """

    def __init__(self, explanation: Any, names: Sequence[str] | None = None) -> None:
        self.explanation = explanation
        self.names = names

    @classmethod
    def from_estimator(cls, model: Any, x: object, top: int = 10, names: Sequence[str] | None = None) -> Self:
        """Of the score of one event."""
        return cls(model.explain(x, top), names)

    def plot(self, ax: Any = None, output: int | None = None, columns: bool = False) -> Self:
        """Draw; the artists are kept as `ax_`, `figure_` and `bars_`.

        Parameters
        ----------
        ax : matplotlib axes, optional
        output : int, optional
            Which class or target, where there are several: its column of the scores; the highest score otherwise.
        columns : bool, default=False
            The columns that contribute most to an anomaly, in place of the points.
        """
        if columns:
            return self._columns(ax)
        why, flat = self.explanation, np.ndim(self.explanation.score) == 0
        chosen = 0 if flat else int(np.argmax(why.score)) if output is None else output
        of = (lambda values: values) if flat else (lambda values: np.asarray(values)[..., chosen])
        parts = [*np.asarray(of(why.contributions)).tolist(), float(of(why.rest)), float(of(why.intercept))]
        labels = [
            f"event {place}{'' if label is None else f' ({_short(label)})'}, k = {value:.3g}"
            for place, label, value in zip(why.ids, why.labels, why.kernel_values, strict=True)
        ]
        self._bars(
            ax, parts, [*labels, "all other points", "intercept"], f"score {float(of(why.score)):.4g} is the sum of"
        )
        return self

    def _columns(self, ax: object) -> Self:
        strange = self.explanation.columns
        if strange is None:
            raise ValueError("columns=True: only the alarms of a novelty detector over columns have unusual columns")
        names = list(self.names) if self.names is not None else [f"column {j}" for j in range(len(strange))]
        loudest = np.argsort(-strange, kind="stable")[:20]
        self._bars(ax, strange[loudest].tolist(), [names[j] for j in loudest], "how much higher the score would be")
        return self

    def _bars(self, ax: object, parts: list[float], labels: list[str], says: str) -> None:
        self.ax_ = _axes(ax, height=1.4 + 0.28 * len(parts))
        self.figure_ = self.ax_.figure
        colours = [COLOURS[0] if part >= 0 else COLOURS[1] for part in parts]
        self.bars_ = self.ax_.barh(np.arange(len(parts)), parts, color=colours)
        self.ax_.set_yticks(np.arange(len(parts)), labels)
        self.ax_.invert_yaxis()
        self.ax_.axvline(0.0, color="black", linewidth=0.8)
        self.ax_.set_xlabel(says)
        _tidy(self.ax_)


def _short(label: Any) -> str:
    if np.ndim(label):
        return ", ".join(f"{value:.3g}" for value in label)
    return f"{label:.4g}" if isinstance(label, float) else str(label)


class ReliabilityDisplay:
    """Whether probabilities hold: how sure the answers were, against how many of them were right.

    Parameters
    ----------
    sure : array
        The probability of each answer.
    right : array of bool
        Whether the answer was right.
    n_bins : int, default=15

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KernelClassifier
    >>> from gristmill.evaluate import ReliabilityDisplay
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> y = X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=4000) > 0
    >>> model = KernelClassifier(Gaussian(0.5)).fit(X[:3000], y[:3000])
    >>> display = ReliabilityDisplay.from_estimator(model, X[3000:], y[3000:])
    >>> print(f"{display.calibration_error_:.1f}")
    0.0
    """

    def __init__(self, sure: npt.NDArray[np.float64], right: npt.NDArray[np.bool_], n_bins: int = 15) -> None:
        self.sure, self.right, self.n_bins = np.asarray(sure, dtype=float), np.asarray(right, dtype=bool), n_bins

    @classmethod
    def from_predictions(cls, y: Labels, shares: object, classes: Labels, n_bins: int = 15) -> Self:
        """Of true labels and probabilities, a column a class."""
        shares, classes = np.asarray(shares), np.asarray(classes)
        return cls(shares.max(axis=1), classes[shares.argmax(axis=1)] == np.asarray(y), n_bins)

    @classmethod
    def from_estimator(cls, model: Any, X: Table, y: Labels, n_bins: int = 15) -> Self:
        """Of events that the model has not learned."""
        return cls.from_predictions(y, model.predict_proba(X), model.classes_, n_bins)

    @property
    def _bins(self) -> npt.NDArray[np.int64]:
        return np.minimum((self.sure * self.n_bins).astype(np.int64), self.n_bins - 1)

    @property
    def calibration_error_(self) -> float:
        """The mean difference between probability and share of right predictions, over the bins, weighted by events."""
        gaps = np.bincount(self._bins, self.sure - self.right, self.n_bins)
        return float(np.abs(gaps).sum() / max(len(self.sure), 1))

    def plot(self, ax: object = None, name: str = "predictions") -> Self:
        """Draw; the artists are kept as `ax_`, `figure_` and `line_`."""
        from sklearn.calibration import calibration_curve

        self.ax_ = _axes(ax, 5.0, 4.6)
        self.figure_ = self.ax_.figure
        right, sure = calibration_curve(self.right, self.sure, n_bins=self.n_bins)
        self.ax_.plot([0, 1], [0, 1], color="0.6", linewidth=1.0, linestyle=":", label="perfectly calibrated")
        says = f"{name}, calibration error {self.calibration_error_:.3f}"
        (self.line_,) = self.ax_.plot(sure, right, "o-", color=COLOURS[0], markersize=4, label=says)
        self.ax_.set(
            xlabel="probability of the prediction", ylabel="share of predictions that were right", ylim=(0, 1.02)
        )
        _legend_above(self.ax_, columns=1)  # square axes are narrow
        _tidy(self.ax_)
        return self


class IntervalDisplay:
    """Intervals over a stream: the band, the targets in it, and those that were missed.

    Parameters
    ----------
    y : array
    intervals : array (n, 2)
        As `prequential_interval` returns them.
    coverage : float

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KernelRegressor
    >>> from gristmill.evaluate import IntervalDisplay
    >>> X = np.linspace(0, 20, 2000)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=2000)
    >>> display = IntervalDisplay.from_estimator(KernelRegressor(Gaussian(2.0)), X, y, coverage=0.8)
    >>> print(f"{display.covered_.mean():.2f}")
    0.80
    """

    def __init__(self, y: Labels, intervals: Any, coverage: float) -> None:
        self.y, self.intervals, self.coverage = np.asarray(y, dtype=float), np.asarray(intervals), coverage

    @classmethod
    def from_estimator(cls, model: Any, X: Table, y: Labels, coverage: float = 0.9) -> Self:
        """Let the model learn X, y in order, and show its prediction of each event before."""
        return cls(y, model.prequential_interval(X, y, coverage), coverage)

    @property
    def covered_(self) -> npt.NDArray[np.bool_]:
        """Which targets lay inside."""
        return np.asarray((self.intervals[:, 0] <= self.y) & (self.y <= self.intervals[:, 1]))

    def plot(self, ax: object = None, last: int = 500) -> Self:
        """Draw the last events; the artists are kept as `ax_`, `figure_`, `band_` and `missed_`."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        part = slice(max(len(self.y) - last, 1), None)  # the first interval of a stream is infinite
        events, inside = np.arange(len(self.y))[part], self.covered_[part]
        says = f"interval for {self.coverage:.0%}"
        self.band_ = self.ax_.fill_between(events, *self.intervals[part].T, color=COLOURS[5], alpha=0.35, label=says)
        self.ax_.plot(events[inside], self.y[part][inside], ".", color=COLOURS[0], markersize=3, label="target")
        (self.missed_,) = self.ax_.plot(
            events[~inside], self.y[part][~inside], "x", color=COLOURS[1], markersize=5, label="missed"
        )
        self.ax_.set(xlabel="event", ylabel="target")
        _legend_above(self.ax_, title=f"{self.covered_.mean():.1%} of all {len(self.y):,} targets lay inside")
        _tidy(self.ax_)
        return self
