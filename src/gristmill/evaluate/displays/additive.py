"""The picture of an additive model: one learned function a coordinate, over the density of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass
class AdditiveDisplay:
    """What an additive model has learned of each coordinate, with the density of the data under it.

    Make one with `from_estimator`. The curves, and the intercept, sum to the prediction.

    Parameters
    ----------
    names : list of str
        The coordinates.
    grids, curves : lists of arrays
        Where each function was evaluated, and its values there.
    samples : list of arrays
        The data of each coordinate.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gristmill import Additive, KernelRegressor, Spline
    >>> from gristmill.evaluate import AdditiveDisplay
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> model = KernelRegressor(Additive(Spline())).fit(X, X[:, 0] ** 2)
    >>> display = AdditiveDisplay.from_estimator(model, ["width", "height"])
    >>> len(display.figure_.axes) >= 2
    True
    """

    names: list[str]
    grids: list[Numbers]
    curves: list[Numbers]
    samples: list[Numbers]
    figure_: object = field(default=None, repr=False)
    axes_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        feature_names: Any = None,
        *,
        X: Any = None,
        output: int = 0,
        resolution: int = 200,
        axes: object = None,
    ) -> Self:
        """Evaluate the model's functions and draw them.

        Parameters
        ----------
        model : a fitted learner with an additive kernel
        feature_names : sequence of str, optional
            Names of the columns; by default those the model was fitted with.
        X : array, optional
            Data whose density is shown; by default the stored points.
        output : int, default=0
            Which class, where there are more than two.
        resolution : int, default=200
            Points of each curve.
        axes : sequence of matplotlib axes, optional
            One a coordinate; by default a new figure is made.
        """
        names = model.component_names(feature_names)
        data = np.asarray(model.support_vectors_ if X is None else X, dtype=np.float64)
        if len(data) == 0:
            raise ValueError("there is no data to show: the model stores no points, and X was not given")
        coordinates = model.kernel_.coordinate_parts(data.shape[1])
        grids, curves, samples = [], [], []
        for position, (_, _, column, other, _) in enumerate(coordinates):
            values = data[:, column] if other is None else data[:, column] * data[:, other]
            values = values[np.isfinite(values)]
            if values.size == 0:
                values = np.zeros(1)
            grid = np.linspace(values.min(), values.max(), resolution)
            rows = np.zeros((resolution, data.shape[1]))
            rows[:, column] = grid
            if other is not None and other != column:
                rows[:, other] = 1.0
            elif other is not None:
                rows[:, column] = np.sqrt(grid)  # the column times itself
            parts = model.components(rows)[:, position]
            curves.append(parts if parts.ndim == 1 else parts[:, output])
            grids.append(grid)
            samples.append(values)
        return cls(names, grids, curves, samples).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw; returns the display, with `figure_` and `axes_`."""
        import matplotlib.pyplot as plt

        if axes is None:
            across = min(len(self.names), 4)
            down = -(-len(self.names) // across)
            figure, table = plt.subplots(
                down,
                across,
                figsize=(3.2 * across, 2.6 * down),
                squeeze=False,
                sharey=True,
                layout="constrained",
            )
            for unused in table.ravel()[len(self.names) :]:
                unused.set_visible(False)
            axes = table.ravel()[: len(self.names)]
        else:
            axes = np.atleast_1d(axes).ravel()
            if len(axes) != len(self.names):
                raise ValueError(f"axes must be one a coordinate: {len(self.names)}, got {len(axes)}")
            figure = axes[0].figure
        for axis, name, grid, curve, sample in zip(
            axes, self.names, self.grids, self.curves, self.samples, strict=True
        ):
            below = axis.twinx()
            counts, _, _ = below.hist(sample, bins=40, color="0.85", zorder=0)
            below.set_ylim(0, 4 * max(float(np.max(counts)), 1.0))  # the lower quarter is the density's
            below.set_yticks([])
            axis.set_zorder(below.get_zorder() + 1)
            axis.patch.set_visible(False)
            axis.axhline(0.0, color="0.6", linewidth=0.8)
            axis.plot(grid, curve, color="C0", linewidth=1.8)
            axis.set_xlabel(name)
        axes[0].set_ylabel("part of the score")
        self.figure_, self.axes_ = figure, axes
        return self
