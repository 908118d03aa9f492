"""A race as a picture: the weights of the experts over the stream, and their errors beside the baselines."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from ...notation import written
from ...race.report import RaceReport
from .runs import COLOURS, _legend_above, _tidy, pyplot


class RaceDisplay:
    """Weights and errors of the experts over time: of a `Race` or an `Auto*` learner.

    Parameters
    ----------
    report : RaceReport
        What `report()` of the learner returns.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import AutoClassifier
    >>> from gristmill.evaluate import RaceDisplay
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> model = AutoClassifier("200 kB").fit(X, X[:, 0] * X[:, 1] > 0)
    >>> display = RaceDisplay.from_estimator(model).plot()
    >>> len(display.areas_)
    7
    """

    def __init__(self, report: RaceReport) -> None:
        self.report = report

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Of a fitted model that has a `report()`."""
        return cls(model.report())

    def plot(self, axes: Any = None, most: int = 6) -> Self:
        """Draw; the artists are kept as `axes_`, `figure_`, `areas_` (weights) and `lines_` (errors).

        Parameters
        ----------
        axes : two matplotlib axes, optional
            For the weights and for the errors.
        most : int, default=6
            So many experts have a colour, those with the most weight over time; the others share one.
        """
        history, count = self.report.history, len(self.report.experts)
        if len(history) == 0:
            raise ValueError("there is nothing to draw: the race has no history yet, or no expert with a loss")
        if axes is None:
            _, axes = pyplot().subplots(2, 1, figsize=(7.0, 6.4), sharex=True, layout="constrained")
        self.axes_, self.figure_ = axes, axes[0].figure
        weights, errors = history[:, 2 : 2 + count], history[:, 2 + count :]
        chosen = np.argsort(-weights.mean(axis=0), kind="stable")[: min(most, len(COLOURS) - 1)]
        rest = [place for place in range(count) if place not in chosen]
        names = [name_of(self.report.experts[place].expert) for place in chosen]
        stacked = [*weights[:, chosen].T, weights[:, rest].sum(axis=1)]
        colours = [*COLOURS[: len(chosen)], "0.85"]
        self.areas_ = axes[0].stackplot(history[:, 0], stacked, colors=colours, labels=[*names, "the others"])
        axes[0].set(ylabel="weight", ylim=(0, 1), xlim=(history[0, 0], history[-1, 0]))
        self.lines_ = axes[1].plot(history[:, 0], history[:, 1], color="black", linewidth=2, label="the mixture")
        for place, colour in zip(chosen, COLOURS, strict=False):
            self.lines_ += axes[1].plot(history[:, 0], errors[:, place], color=colour, linewidth=1)
        self._baselines(errors, history[:, 0])
        axes[1].set(xlabel="events", ylabel="mean error so far", ylim=(0, None))
        for ax in axes:
            _tidy(ax)
        _legend_above(axes[0])
        axes[1].legend(frameon=False, fontsize="small")
        return self

    def _baselines(self, errors: Any, positions: Any) -> None:
        trivial = [(place, found) for place, found in enumerate(self.report.experts) if found.is_trivial]
        for (place, found), style in zip(trivial, itertools.cycle(("--", ":", "-.")), strict=False):
            self.lines_ += self.axes_[1].plot(
                positions, errors[:, place], style, color="0.5", linewidth=1.2, label=name_of(found.expert)
            )


def name_of(expert: Any) -> str:
    """An expert in few words: kernel, rule and scaling, without its memory."""
    scale = getattr(expert, "scale", None)
    inner = getattr(expert, "model", expert)
    if not hasattr(inner, "kernel"):
        return f"{inner!r}"
    words = [repr(inner.kernel), written(inner.checked_parts().rule)]
    return ", ".join([*words, *([] if scale in (None, "standard") else [str(scale)])])
