"""How good a similarity is for a task, before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.ranges import count, fraction, is_real, non_negative, one_of, positive
from .._common.seeds import generator
from .._common.types import Labels, RandomState, Table
from .compare import take
from .labels import class_codes
from .landmarks import Landmarks
from .model import largest
from .ordinal import given_thresholds, ordered_labels
from .regression import real_targets, spread_of
from .transfer import SLOPES, Identity, Ramp, Sign

Values = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Goodness:
    """How good a similarity is under one definition.

    Attributes
    ----------
    definition : str
    epsilon : float
        The share of objects without the margin (classification), or the mean loss (regression, ordinal).
    low, high : float
        Confidence interval of epsilon.
    gamma : float
        The margin asked for.
    B : float
        The bound on the weights.
    margin : float
        The mean margin over the objects (classification); NaN otherwise.
    """

    definition: str
    epsilon: float
    low: float
    high: float
    gamma: float
    B: float
    margin: float = float("nan")


@dataclass(frozen=True)
class GoodnessReport:
    """The goodness of a similarity under each definition; `best` is the one of the least epsilon.

    Attributes
    ----------
    task : str
    rows : list of Goodness
    margins : dict from definition to the margin of each object (classification only)
    """

    task: str
    rows: list[Goodness]
    margins: dict[str, Values] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> Goodness:
        return min(self.rows, key=lambda row: (row.epsilon, -row.margin if row.margin == row.margin else 0.0))

    @property
    def epsilon(self) -> float:
        return self.best.epsilon

    @property
    def gamma(self) -> float:
        return self.best.gamma

    @property
    def B(self) -> float:
        return self.best.B

    @property
    def interval(self) -> tuple[float, float]:
        return self.best.low, self.best.high

    def __getitem__(self, definition: str) -> Goodness:
        for row in self.rows:
            if row.definition == definition:
                return row
        raise KeyError(f"{definition!r} is not among {[row.definition for row in self.rows]}")

    def __str__(self) -> str:
        lines = [f"{'definition':<22}{'epsilon':>9}{'interval':>19}{'gamma':>8}{'B':>7}"]
        for row in self.rows:
            interval = f"[{row.low:.4f}, {row.high:.4f}]"
            lines.append(f"{row.definition:<22}{row.epsilon:>9.4f}{interval:>19}{row.gamma:>8.3g}{row.B:>7g}")
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw epsilon against the margin (classification) or against B; returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(layout="constrained")[1]
        if self.margins:
            for name, margins in self.margins.items():
                ordered = np.sort(margins)
                ax.step(
                    ordered,
                    np.arange(1, len(ordered) + 1) / len(ordered),
                    where="post",
                    label=name,
                    linewidth=1.2,
                )
            ax.axvline(0.0, color="0.6", linewidth=0.8)
            ax.set(xlabel="margin γ", ylabel="share of objects below it, ε(γ)", ylim=(0, 1))
        else:
            bounds = [row.B for row in self.rows]
            middle = np.array([row.epsilon for row in self.rows])
            reach = np.array([[row.epsilon - row.low, row.high - row.epsilon] for row in self.rows]).T
            ax.errorbar(bounds, middle, yerr=np.maximum(reach, 0), marker="o", capsize=3, label=self.task)
            ax.set(xlabel="bound on the weights B", ylabel="mean loss ε₀", xscale="log")
        ax.legend(frameon=False, fontsize="small")
        return ax


def goodness(
    similarity: object,
    X: Table,
    y: Labels,
    task: str = "classification",
    *,
    gamma: float | None = None,
    B: Any = (1.0, 10.0, 100.0),
    epsilon: float = 0.0,
    n_reference: int = 200,
    n_points: int = 500,
    confidence: float = 0.95,
    distance: bool = False,
    random_state: RandomState = None,
) -> GoodnessReport:
    """The empirical (epsilon, gamma, B) goodness of a similarity for a task, with confidence intervals.

    Some objects are the reference over which the definitions take their means; others, disjoint from them,
    are judged. So two similarities can be compared with n_reference x n_points evaluations each and no
    training.

    Classification, with weights 1 (so that B = 1 and epsilon bounds that of the best weights from above):
    the share of objects without the margin gamma under "balcan-blum" (mean similarity to the own class less
    that to others) and under "identity", "ramp 5" ... "sign" (mean of the transfer function over landmark
    pairs, over its range). Regression and ordinal: the mean loss of the best weights in [-B, B], found by a
    linear program on a third set of objects.

    Parameters
    ----------
    similarity : kernel, callable or "precomputed" (then X is the square matrix)
    X, y : objects and their labels or targets
    task : {"classification", "regression", "ordinal"}
    gamma : float >= 0, optional
        The margin asked for; without it 0 (any positive margin) for classification and 1/2 for ordinal.
    B : float or sequence of floats > 0
        Bounds on the weights, for values divided by sup |K| (regression and ordinal).
    epsilon : float >= 0, default=0.0
        Width of the tube of the epsilon-insensitive loss (regression).
    n_reference, n_points : int
        At most so many objects on either side; with few objects they share.
    confidence : float, default=0.95
        Of the exact binomial interval of a share, or of the bootstrap interval of a mean loss.
    distance : bool, default=False
    random_state : int, Generator, RandomState or None

    Returns
    -------
    GoodnessReport
        with `epsilon`, `gamma`, `B`, `interval` of the best definition, all `rows`, and `plot()`.

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Definitions 4.1, 5.2, 5.14, A.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gristmill import Manhattan, Sigmoid, goodness
    >>> X, y = load_iris(return_X_y=True)
    >>> near = goodness(Manhattan(), X, y, random_state=0)
    >>> far = goodness(Sigmoid(gamma=0.01, coef0=-1.0), X, y, random_state=0)
    >>> near.epsilon < far.epsilon, near.B
    (True, 1.0)
    """
    _check(task, gamma, epsilon, n_reference, n_points, confidence)
    rng = generator(random_state)
    reader = Landmarks(similarity, distance=distance)
    X = reader._read(X, first=True)
    if task == "classification":
        labels: Any = class_codes("goodness", X, y)[1]
    elif task == "regression":
        labels = real_targets("goodness", X, y)
    else:
        labels = ordered_labels("goodness", X, y, None)[1]
    parts = _split(labels, task, n_reference, n_points, rng)
    reference, judged = parts[0], np.concatenate(parts[1:])
    values = _compare(reader, X, judged, reference)
    values = values / largest(values)
    if task == "classification":
        return _classification(values, labels[judged], labels[reference], gamma or 0.0, confidence)
    training = np.arange(len(judged)) < len(parts[1])
    bounds = [B] if is_real(B) else list(B)
    for bound in bounds:
        positive.check("goodness", "B", bound)
    if task == "regression":
        return _regression(values, labels[judged], training, bounds, epsilon, confidence, rng)
    margin = 0.5 if gamma is None else gamma
    ranks = int(labels.max()) + 1
    return _ordinal(values, labels[judged], training, bounds, ranks, margin, confidence, rng)


def _check(
    task: object, gamma: object, epsilon: object, n_reference: object, n_points: object, confidence: object
) -> None:
    one_of("classification", "regression", "ordinal").check("goodness", "task", task)
    if gamma is not None:
        non_negative.check("goodness", "gamma", gamma)
    non_negative.check("goodness", "epsilon", epsilon)
    count.check("goodness", "n_reference", n_reference)
    count.check("goodness", "n_points", n_points)
    fraction.check("goodness", "confidence", confidence)


def _compare(reader: Landmarks, X: Any, rows: Positions, columns: Positions) -> Values:
    if reader.input_kind() == "precomputed":
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"a precomputed matrix must be square, got {X.shape[0]} x {X.shape[1]}")
        return reader.comparison_of().signed(X[np.ix_(rows, columns)], columns, rows)
    width = X.shape[1] if reader.input_kind() == "vectors" else 0
    return reader.comparison_of(width).block(take(X, rows), take(X, columns), columns, rows)


def _split(labels: Any, task: str, n_reference: int, n_points: int, rng: np.random.Generator) -> list[Positions]:
    """Reference objects, training ones (none for classification), and those that are judged; all disjoint."""
    size = len(labels)
    shares = 2 if task == "classification" else 3
    if size < 2 * shares:
        raise ValueError(f"goodness needs {2 * shares} objects at least, got n_samples = {size}")
    order = rng.permutation(size)
    if task == "classification":
        # One object of each class comes first, so that every class is among the reference.
        firsts = np.array([order[labels[order] == code][0] for code in np.unique(labels)])
        order = np.concatenate([firsts, order[~np.isin(order, firsts)]])
    first = min(n_reference, max(size // shares, 1))
    if task == "classification":
        first = min(max(first, len(firsts) + 1), size - 1)
        return [order[:first], order[first : first + n_points]]
    second = min(n_points, (size - first) // 2)
    return [order[:first], order[first : first + second], order[first + second : first + second + n_points]]


# ---- classification ----------------------------------------------------------------------------------------


def _classification(values: Values, own: Any, others: object, gamma: float, confidence: float) -> GoodnessReport:
    reach = float(values.max() - values.min()) or 1.0
    functions = {"identity": Identity(), **{f"ramp {s:g}": Ramp(s) for s in SLOPES[1:]}, "sign": Sign()}
    margins = {name: np.empty(len(own)) for name in ("balcan-blum", *functions)}
    ranges = {name: 2.0 * float(f(reach)) for name, f in functions.items()}  # C_f, over differences
    for i, code in enumerate(own):
        same, other = values[i, others == code], values[i, others != code]
        differences = same[:, None] - other[None, :]
        margins["balcan-blum"][i] = same.mean() - other.mean()
        for name, f in functions.items():
            margins[name][i] = float(np.mean(f(differences))) / ranges[name]
    rows = []
    for name, margin in margins.items():
        short = int(np.sum((margin < gamma) | (margin <= 0)))
        low, high = _share_interval(short, len(margin), confidence)
        rows.append(Goodness(name, short / len(margin), low, high, float(gamma), 1.0, float(margin.mean())))
    return GoodnessReport("classification", rows, margins)


def _share_interval(hits: int, size: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's exact interval of a share."""
    from scipy.stats import beta

    tail = (1.0 - confidence) / 2.0
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, size - hits + 1))
    high = 1.0 if hits == size else float(beta.ppf(1.0 - tail, hits + 1, size - hits))
    return low, high


# ---- regression and ordinal --------------------------------------------------------------------------------


def _regression(
    values: Values,
    targets: Values,
    training: Any,
    bounds: list[float],
    epsilon: float,
    confidence: float,
    rng: Any,
) -> GoodnessReport:
    centre = float(np.median(targets))
    spread = spread_of(targets, centre)
    scaled = (targets - centre) / spread
    tube = epsilon / spread
    rows = []
    for bound in bounds:
        design, goal = values[training], scaled[training]
        sides = np.vstack([design, -design]), np.concatenate([goal - tube, -goal - tube])
        signs = np.repeat([1.0, -1.0], len(goal))
        w, c = _best_weights(sides[0], sides[1], signs, bound)
        error = np.abs(values[~training] @ w / len(w) + c - scaled[~training])
        rows.append(_loss_row("regression", spread * np.maximum(error - tube, 0.0), 0.0, bound, confidence, rng))
    return GoodnessReport("regression", rows)


def _ordinal(
    values: Values,
    ranks: Any,
    training: Any,
    bounds: list[float],
    labels: int,
    margin: float,
    confidence: float,
    rng: Any,
) -> GoodnessReport:
    thresholds = np.asarray(given_thresholds("equal", labels))
    floor = np.append(-np.inf, thresholds)[ranks] + margin
    ceiling = np.append(thresholds, np.inf)[ranks] - margin
    low, high = np.isfinite(floor), np.isfinite(ceiling)
    rows = []
    for bound in bounds:
        design = np.vstack([values[training & low], -values[training & high]])
        margins = np.concatenate([floor[training & low], -ceiling[training & high]])
        signs = np.repeat([1.0, -1.0], [int((training & low).sum()), int((training & high).sum())])
        w, c = _best_weights(design, margins, signs, bound)
        score = values[~training] @ w / len(w) + c
        loss = np.maximum(floor[~training] - score, 0.0) + np.maximum(score - ceiling[~training], 0.0)
        rows.append(_loss_row("ordinal", loss, margin, bound, confidence, rng))
    return GoodnessReport("ordinal", rows)


def _best_weights(design: Values, margins: Values, signs: Values, bound: float) -> tuple[Values, float]:
    """Weights in [-B, B] and a constant with the least mean of [margin - sign c - <design, w> / n]_+."""
    from scipy.optimize import linprog

    hinges, width = design.shape
    cost = np.concatenate([np.zeros(width + 1), np.full(hinges, 1.0 / hinges)])
    constraint = np.hstack([-design / width, -signs[:, None], -np.eye(hinges)])
    limits = [(-bound, bound)] * width + [(None, None)] + [(0, None)] * hinges
    found = linprog(cost, A_ub=constraint, b_ub=-margins, bounds=limits, method="highs")
    return found.x[:width], float(found.x[width])


def _loss_row(
    task: str, losses: Values, gamma: float, bound: float, confidence: float, rng: np.random.Generator
) -> Goodness:
    draws = rng.integers(len(losses), size=(1000, len(losses)))
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(losses[draws].mean(axis=1), [tail, 1.0 - tail])
    return Goodness(f"{task}, B = {bound:g}", float(losses.mean()), float(low), float(high), gamma, float(bound))
