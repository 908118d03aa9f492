"""Pictures of runs, in scikit-learn's manner: the constructor takes data, `plot` draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..._common.types import Table
from ..result import Comparison, Result

#: colours for every kind of colour vision (Okabe and Ito)
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c8c00")


def pyplot() -> Any:
    """matplotlib's pyplot, or an error that explains how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'gristmill[plot]'") from None
    return plt


def _axes(ax: object, width: float = 7.0, height: float = 4.4) -> Any:
    if ax is not None:
        return ax
    _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    return ax


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)


def lone(points: list[Any]) -> str:
    """The marker of a line: a short stream has one point, of which no line can be drawn."""
    return "o" if len(points) == 1 else ""


def _legend_above(ax: Any, columns: int | None = None, **kwargs: Any) -> None:
    """Put the legend above the axes; long names get one line each."""
    longest = max((len(text) for text in ax.get_legend_handles_labels()[1]), default=0)
    columns = columns or (1 if longest > 40 else 2 if longest > 18 else 3)
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "alignment": "left", "borderaxespad": 0.3}
    ax.legend(frameon=False, ncols=columns, fontsize="small", title_fontsize="small", **place, **kwargs)


class PrequentialDisplay:
    """A metric over the stream, one line a model: thin the rolling one, thick all so far.

    Parameters
    ----------
    curves : dict of name to list of entries
        As `Result.curve` holds them.
    metric : str
    bayes_error : float, optional
        Drawn as a dotted line.
    drifts : dict of name to list of marks, optional
        As `Result.drifts` holds them: drawn as dashed vertical lines in the colour of the model.

    Examples
    --------
    >>> from gristmill import Gaussian, perceptron
    >>> from gristmill.evaluate import PrequentialDisplay, prequential
    >>> from gristmill.streams import drifting_digits
    >>> result = prequential(perceptron(Gaussian(0.001)), drifting_digits(n_events=3000))
    >>> len(PrequentialDisplay.from_results(result).plot().lines_)
    2
    """

    def __init__(
        self,
        curves: Mapping[str, list[dict[str, float]]],
        metric: str,
        bayes_error: float | None = None,
        drifts: Mapping[str, list[dict[str, float]]] | None = None,
    ) -> None:
        self.curves = curves
        self.drifts = drifts
        self.metric = metric
        self.bayes_error = bayes_error

    @classmethod
    def from_results(
        cls, results: Result | Comparison, metric: str | None = None, bayes_error: float | None = None
    ) -> Self:
        """From the outcome of `prequential` or `compare`."""
        several = [results] if isinstance(results, Result) else list(results)
        chosen = metric or next(iter(several[0].metrics))
        drifts = {result.name: result.drifts for result in several}
        return cls({result.name: result.curve for result in several}, chosen, bayes_error, drifts)

    @classmethod
    def from_estimator(cls, model: Any, stream: object, metric: str | None = None, window: int = 1000) -> Self:
        """Run the model along the stream, then show how it did."""
        from ..run import prequential

        return cls.from_results(prequential(model, stream, metric, window), metric)

    def plot(self, ax: object = None) -> Self:
        """Draw; the artists are kept as `ax_`, `figure_`, `lines_` and `marks_`."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_: list[Any] = []
        self.marks_: list[object] = []
        for colour, (name, curve) in zip(_cycle(len(self.curves)), self.curves.items(), strict=True):
            events = [entry["event"] for entry in curve]
            recent = [entry[f"rolling_{self.metric}"] for entry in curve]
            so_far = [entry[self.metric] for entry in curve]
            self.lines_ += self.ax_.plot(events, recent, color=colour, linewidth=0.9, alpha=0.55)
            dot = lone(events)
            self.lines_ += self.ax_.plot(events, so_far, color=colour, linewidth=2.0, label=name, marker=dot)
            for mark in (self.drifts or {}).get(name, []):
                line = self.ax_.axvline(
                    mark["event"], color=colour, linewidth=0.8, linestyle=(0, (4, 3)), alpha=0.7, zorder=0
                )
                self.marks_.append(line)
        if self.bayes_error is not None:
            self.ax_.axhline(self.bayes_error, color="black", linestyle=":", label="best possible")
        self.ax_.set(xlabel="event", ylabel=self.metric.replace("_", " "))
        self.ax_.set_ylim(bottom=0)
        says = "thick: all events so far; thin: last window" + ("; dashed: the error changed" if self.marks_ else "")
        _legend_above(self.ax_, title=says)
        _tidy(self.ax_)
        return self


class BudgetDisplay:
    """What memory buys: a metric against stored points, one line a family of models.

    Parameters
    ----------
    points : dict of name to list of (stored points, value)
    metric : str

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive
    >>> from gristmill.evaluate import BudgetDisplay
    >>> from gristmill.streams import drifting_digits
    >>> build = lambda size: passive_aggressive(Gaussian(0.0015), C=0.3, size=size)
    >>> display = BudgetDisplay.from_builders({"PA-I": build}, [50, 100], drifting_digits(n_events=1000))
    >>> [stored for stored, error in display.points["PA-I"]]
    [50, 100]
    """

    def __init__(self, points: Mapping[str, list[tuple[int, float]]], metric: str) -> None:
        self.points = points
        self.metric = metric

    @classmethod
    def from_results(cls, results: Comparison, metric: str | None = None) -> Self:
        """One point a model."""
        chosen = metric or next(iter(results[0].metrics))
        return cls({result.name: [(result.stored, result.metrics[chosen])] for result in results}, chosen)

    @classmethod
    def from_builders(
        cls,
        builders: Mapping[str, Callable[[int], Any]],
        sizes: list[int],
        stream: object,
        metric: str | None = None,
    ) -> Self:
        """Build every family at every size, and run all of them along the stream in one pass."""
        from ..run import compare

        models = {f"{name}\0{size}": build(size) for name, build in builders.items() for size in sizes}
        results = compare(models, stream, metric)
        chosen = metric or next(iter(results[0].metrics))
        points: dict[str, list[tuple[int, float]]] = {name: [] for name in builders}
        for result in results:
            points[result.name.split("\0")[0]].append((result.stored, result.metrics[chosen]))
        return cls(points, chosen)

    def plot(self, ax: object = None) -> Self:
        """Draw; the artists are kept as `ax_`, `figure_` and `lines_`."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_ = []
        for colour, (name, pairs) in zip(_cycle(len(self.points)), self.points.items(), strict=True):
            stored, values = zip(*sorted(pairs), strict=True)
            self.lines_ += self.ax_.plot(stored, values, "o-", color=colour, label=name)
        self.ax_.set(xlabel="stored points", ylabel=self.metric.replace("_", " "), xscale="log")
        sizes = sorted({stored for pairs in self.points.values() for stored, _ in pairs if stored > 0})
        apart: list[int] = []  # labels nearer than this would run into each other
        for size in sizes:
            if not apart or size >= 1.3 * apart[-1]:
                apart.append(size)
        if len(apart) <= 10:
            self.ax_.set_xticks(apart, [f"{size:,}" for size in apart])
            self.ax_.set_xticks([], minor=True)
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend(frameon=False)
        _tidy(self.ax_)
        return self


class NoveltyDisplay:
    """Scores over time with the alarms marked, and the most novel events as images where they are images.

    Parameters
    ----------
    scores : array
        Scores of `prequential`: below 0 is an alarm.
    margins : array, optional
        The margin in the course of the stream.
    X : array, optional
        The events, to show the most novel of them.
    image_shape : (height, width), optional

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, norma_novelty
    >>> from gristmill.evaluate import NoveltyDisplay
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = norma_novelty(Gaussian(0.5), nu=0.1, rate=0.1, schedule="inv_sqrt", size=100)
    >>> display = NoveltyDisplay.from_estimator(model, X)
    >>> int(display.plot().alarms_.sum()) > 0
    True
    """

    def __init__(
        self, scores: Any, X: Any = None, image_shape: tuple[int, int] | None = None, truth: Any = None
    ) -> None:
        self.scores = scores
        self.X = X
        self.image_shape = image_shape
        self.truth = truth

    @classmethod
    def from_estimator(
        cls, model: Any, X: Table, image_shape: tuple[int, int] | None = None, truth: Any = None
    ) -> Self:
        """Let the model learn X in order, and show its prediction of each event before."""
        return cls(model.prequential(X), X, image_shape, truth)

    @property
    def alarms_(self) -> npt.NDArray[np.bool_]:
        """Which events were alarms."""
        return np.asarray(self.scores) < 0

    def most_novel(self, count: int = 50) -> npt.NDArray[np.int64]:
        """Positions of the events with the lowest scores, lowest first."""
        return np.argsort(self.scores, kind="stable")[:count]

    def plot(self, ax: object = None) -> Self:
        """Draw scores, threshold and alarms over time."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        scores, alarms = np.asarray(self.scores), self.alarms_
        events = np.arange(len(scores))
        (self.line_,) = self.ax_.plot(events, scores, color="0.6", linewidth=0.6, zorder=1)
        self.threshold_ = self.ax_.axhline(0.0, color="black", linewidth=1.0)
        where = events[alarms]
        colour = COLOURS[1]
        if self.truth is not None:
            novel = np.asarray(self.truth) == -1
            self.ax_.plot(events[novel], scores[novel], ".", color=COLOURS[0], label="truly novel", zorder=2)
        self.points_ = self.ax_.scatter(where, scores[alarms], s=9, color=colour, label="alarm", zorder=3)
        self.ax_.set(xlabel="event", ylabel="score before learning (below 0: alarm)")
        self.ax_.legend(frameon=False, title=f"{alarms.mean():.2%} alarms")
        _tidy(self.ax_)
        return self

    def plot_images(self, which: object = None, columns: int = 10, ax: object = None, title: str = "") -> Self:
        """Draw events as a sheet of images: those at the positions `which`, else the fifty most novel."""
        if self.X is None or self.image_shape is None:
            raise ValueError("plot_images needs X and image_shape=(height, width)")
        places = self.most_novel() if which is None else np.asarray(which)
        self.ax_ = _axes(ax, 5.0, 3.0)
        self.figure_ = self.ax_.figure
        self.image_ = self.ax_.imshow(sheet(np.asarray(self.X)[places], self.image_shape, columns), cmap="gray_r")
        self.ax_.set_axis_off()
        self.ax_.set_title(title, fontsize=10)
        return self


def sheet(images: Any, shape: tuple[int, int], columns: int) -> npt.NDArray[np.float64]:
    """Images side by side in one, with a white line between them."""
    height, width = shape
    rows = max(1, -(-len(images) // columns))
    blank = float(np.min(images)) if len(images) else 0.0
    page = np.full((rows * (height + 1), columns * (width + 1)), blank)
    for place, image in enumerate(images):
        top, left = (place // columns) * (height + 1), (place % columns) * (width + 1)
        page[top : top + height, left : left + width] = np.reshape(image, shape)
    return page


class SupportDisplay:
    """What a model has kept: in the plane where it lies, as images what it shows, else how old and how heavy.

    Parameters
    ----------
    points : array
        The stored points.
    weights : array
        The largest |coefficient| of each.
    ids : array
        Positions in the stream.
    score : callable, optional
        `decision_function`, to colour the plane by it.
    image_shape : (height, width), optional

    Examples
    --------
    >>> from gristmill import Gaussian, perceptron
    >>> from gristmill.evaluate import SupportDisplay
    >>> from gristmill.streams import two_gaussians
    >>> model = perceptron(Gaussian(1.0)).fit(*two_gaussians(500).arrays())
    >>> SupportDisplay.from_estimator(model).plot().ax_.get_xlabel()
    'x0'
    """

    def __init__(
        self,
        points: Any,
        weights: Any,
        ids: object,
        score: Any = None,
        image_shape: tuple[int, int] | None = None,
    ) -> None:
        self.points, self.weights, self.ids = points, weights, ids
        self.score = score
        self.image_shape = image_shape

    @classmethod
    def from_estimator(cls, model: Any, image_shape: tuple[int, int] | None = None) -> Self:
        """Of a fitted model."""
        weights = np.abs(model.dual_coef_).max(axis=1)
        single = np.ndim(model.intercept_) == 0 or len(model.intercept_) == 1
        score = model.decision_function if single else None
        return cls(model.support_vectors_, weights, model.support_ids_, score, image_shape)

    def plot(self, ax: object = None) -> Self:
        """Draw; the axes and the figure are kept as `ax_` and `figure_`."""
        self.ax_ = _axes(ax, 6.0, 5.0)
        self.figure_ = self.ax_.figure
        shape = getattr(self.points, "shape", (0, 0))
        if self.image_shape is not None:
            heaviest = np.argsort(-np.asarray(self.weights), kind="stable")[:100]
            self.ax_.imshow(sheet(np.asarray(self.points)[heaviest], self.image_shape, 10), cmap="gray_r")
            self.ax_.set_axis_off()
        elif len(shape) == 2 and shape[1] == 2:
            self._plane()
        else:
            self.ax_.scatter(self.ids, self.weights, s=9, color=COLOURS[0])
            self.ax_.set(xlabel="position in the stream", ylabel="|coefficient|")
            _tidy(self.ax_)
        return self

    def _plane(self) -> None:
        points, weights = np.asarray(self.points), np.asarray(self.weights)
        low, high = points.min(axis=0) - 1.0, points.max(axis=0) + 1.0
        if self.score is not None:
            across, up = np.meshgrid(np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 120))
            heights = self.score(np.column_stack([across.ravel(), up.ravel()])).reshape(across.shape)
            limit = max(float(np.abs(heights).max()), 1e-12)
            self.ax_.contourf(across, up, heights, levels=21, cmap="RdBu_r", vmin=-limit, vmax=limit, alpha=0.7)
            self.ax_.contour(across, up, heights, levels=[0.0], colors="black", linewidths=1.0)
        sizes = 60 * weights / max(float(weights.max()), 1e-12)
        self.ax_.scatter(points[:, 0], points[:, 1], s=sizes, facecolors="none", edgecolors="black", linewidths=0.8)
        self.ax_.set(xlabel="x0", ylabel="x1")


def _cycle(count: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(count)]
