"""Which columns matter, as a picture: bars now, lines over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .runs import COLOURS, _axes, _legend_above, _tidy


class RelevanceDisplay:
    """How much each column moves the answer of a `Prepared(scale="relevance")`: bars now, or lines over time.

    Parameters
    ----------
    shares : array (renewals, columns)
        Of each time the columns were looked at, oldest first.
    positions : list of int
        Where in the stream that was.
    names : list of str
        Of the columns of the table; a category is one of them.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, Merge, KernelRegressor, Prepared
    >>> from gristmill.evaluate import RelevanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(2000, 6))
    >>> model = Prepared(KernelRegressor(Gaussian(0.1), budget=Merge(100)), "relevance").fit(X, np.sin(X[:, 2]))
    >>> display = RelevanceDisplay.from_estimator(model, names=list("abcdef"))
    >>> display.plot().ax_.get_yticklabels()[0].get_text()
    'c'
    >>> len(display.plot(over_time=True).lines_)
    6
    """

    def __init__(self, shares: npt.NDArray[np.float64], positions: Sequence[int], names: Sequence[str]) -> None:
        self.shares = shares
        self.positions = positions
        self.names = names

    @classmethod
    def from_estimator(cls, model: Any, names: Sequence[str] | None = None) -> Self:
        """Of a fitted `Prepared(scale="relevance")`; names, where none are given, are those it was fitted with."""
        history = model.relevance_history_
        shares = np.array([found.shares for found in history]) if history else model.relevance_[None]
        positions = [found.position for found in history] or [int(model.n_seen_)]
        if names is None:
            names = model.table_.names
        if len(names) != shares.shape[1]:
            raise ValueError(f"names: the model has {shares.shape[1]} columns, got {len(names)} names")
        return cls(shares, positions, names)

    def plot(self, ax: object = None, over_time: bool = False, most: int = 20) -> Self:
        """Draw; the artists are kept as `ax_`, `figure_` and `bars_` or `lines_`.

        Parameters
        ----------
        ax : matplotlib axes, optional
        over_time : bool, default=False
            Lines over the stream in place of bars.
        most : int, default=20
            So many columns, those with the largest share now.
        """
        chosen = np.argsort(-self.shares[-1], kind="stable")[:most]
        self.ax_ = _axes(ax, height=4.4 if over_time else 1.2 + 0.26 * len(chosen))
        self.figure_ = self.ax_.figure
        if over_time:
            self._over_time(chosen)
        else:
            self.bars_ = self.ax_.barh(np.arange(len(chosen)), self.shares[-1][chosen], color=COLOURS[0])
            self.ax_.set_yticks(np.arange(len(chosen)), [self.names[column] for column in chosen])
            self.ax_.invert_yaxis()
            self.ax_.set_xlabel("share of the mean square of the gradient")
        _tidy(self.ax_)
        return self

    def _over_time(self, chosen: npt.NDArray[np.intp]) -> None:
        self.lines_ = []
        for place, column in enumerate(chosen):
            named = place < len(COLOURS)  # more names than colours would be ambiguous
            style = {"color": COLOURS[place], "label": self.names[column]} if named else {"color": "0.8", "zorder": 0}
            self.lines_ += self.ax_.plot(self.positions, self.shares[:, column], "o-", markersize=3, **style)
        self.ax_.set(xlabel="events", ylabel="share of the gradient", xscale="log", ylim=(0, None))
        self.ax_.set_xticks(self.positions, [f"{position:,}" for position in self.positions])
        self.ax_.set_xticks([], minor=True)
        _legend_above(self.ax_)
