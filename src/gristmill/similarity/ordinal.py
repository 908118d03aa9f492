"""Ordered labels by similarities to landmarks: one number, cut by thresholds (ORLand)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import column_or_1d

from .. import persist
from .._common.inputs import refuse_masked
from .._common.ranges import Range, positive
from .._common.types import Fields, Fitted, Labels, Numbers, RandomState, Table
from .labels import LabelMixin
from .model import OTHERS, SHARED, LinearLandmarkModel, all_or_nothing, check_same_length
from .solvers.newton import minimise

Values = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


class LandmarkOrdinal(LabelMixin, ClassifierMixin, LinearLandmarkModel):
    __doc__ = f"""Ordinal regression over similarities to landmarks, with explicit margins (EXC).

    A score f(x) is cut by thresholds b_2 < ... < b_r: the label is the largest i with b_i <= f(x). The loss
    asks f(x) to be `margin` away from the two thresholds of its label.

    Parameters
    ----------
    {SHARED}
    n_landmarks : int >= 1, default=100
        d in the thesis; where there are fewer objects, each of them becomes a landmark.
    thresholds : {{"equal", "learned"}} or ascending numbers, default="equal"
        "equal": 3/2, 5/2, ..., so that f(x) = i is the middle of label i; "learned": found together with the
        weights, at least `spacing` apart; or one number between each two neighbouring labels.
    margin : float > 0, default=0.5
        gamma in the thesis. With equal thresholds and 0.5 the loss is |f(x) - i|, one-sided for the end
        labels.
    C : float > 0, default=1.0
        Weight of the loss.
    spacing : float > 0, default=1.0
        Delta in the thesis ("learned" only).
    labels : sequence, optional
        All labels in their order. Without it labels must be whole numbers with none missing between.
    selection : {{"random", "diverse"}} or positions, default="random"
    {OTHERS}

    Attributes
    ----------
    classes_ : the labels in their order
    thresholds_ : b_2 ... b_r
    landmarks_, landmark_indices_, coef_, intercept_, scale_, n_evaluations_ : as `LandmarkRegressor`

    References
    ----------
    W. Chu, S. S. Keerthi, Support Vector Ordinal Regression, Neural Computation 19(3), 2007.
    P. Kar, P. Jain, Supervised Learning with Similarity Functions, NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import LandmarkOrdinal, Manhattan
    >>> X = np.random.default_rng(0).uniform(0, 4, size=(400, 2))
    >>> y = np.floor(X[:, 0]).astype(int)
    >>> model = LandmarkOrdinal(Manhattan(), n_landmarks=30, C=10.0, random_state=0).fit(X[:300], y[:300])
    >>> print(f"mean absolute error {{np.abs(model.predict(X[300:]) - y[300:]).mean():.2f}}")
    mean absolute error 0.02
    """

    _ranges: ClassVar[dict[str, Range]] = {"margin": positive, "C": positive, "spacing": positive}
    _numbers: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "thresholds_")

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        thresholds: object = "equal",
        margin: float = 0.5,
        C: float = 1.0,
        spacing: float = 1.0,
        labels: Labels = None,
        selection: object = "random",
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.thresholds = thresholds
        self.margin = margin
        self.C = C
        self.spacing = spacing
        self.labels = labels
        self.selection = selection
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Table, y: Labels) -> Self:
        """Choose the landmarks, learn weights (and thresholds); what was learned before is forgotten."""
        rng, X = self._reset(X)
        self.classes_, ranks = ordered_labels(type(self).__name__, X, y, self.labels)
        fixed = given_thresholds(self.thresholds, len(self.classes_))
        positions, values, scale = self._compared(X, rng)
        if fixed is None:
            weights, self.thresholds_ = fit_thresholds(
                values, ranks, len(self.classes_), self.margin, self.C, self.spacing
            )
            offset = 0.0  # the thresholds are free, so that they carry it
        else:
            weights, offset = fit_between(values, ranks, fixed, self.margin, self.C)
            self.thresholds_ = fixed
        self.coef_, self.intercept_ = weights[None, :], np.array([offset])
        self._keep(X, positions, scale)
        return self

    def latent(self, X: Table) -> Values:
        """The score f(x) that the thresholds cut."""
        return self._linear(X)

    def decision_function(self, X: Table) -> Values:
        """How far f(x) is inside each label's interval; for two labels, how far it is above the threshold."""
        scores = self.latent(X)
        if len(self.thresholds_) == 1:
            return np.asarray(scores - self.thresholds_[0])
        edges = np.concatenate([[-np.inf], self.thresholds_, [np.inf]])
        return np.asarray(np.minimum(scores[:, None] - edges[:-1], edges[1:] - scores[:, None]))

    def predict(self, X: Table) -> npt.NDArray[np.generic]:
        """The label of each object: the largest whose threshold is at most f(x)."""
        scores = self.latent(X)
        return self.classes_[np.searchsorted(self.thresholds_, scores, side="right")]

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        super().restore_fields(arrays, fitted)
        self.classes_ = np.asarray(fitted["labels"], dtype=self.classes_.dtype)  # in the user's order
        given_thresholds(self.thresholds, len(self.classes_))
        if self.thresholds_.shape != (len(self.classes_) - 1,) or np.any(np.diff(self.thresholds_) < 0):
            raise persist.ModelFileError("its thresholds do not fit its labels")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def ordered_labels(name: str, X: Table, y: Any, labels: object) -> tuple[Numbers, Codes]:
    """The labels in order and each object's rank, from 0."""
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None")
    refuse_masked(y, "y")
    y = column_or_1d(y, warn=True)
    check_same_length(X, y)
    known = _whole_numbers(name, y) if labels is None else np.asarray(labels)
    if len(np.unique(known)) != len(known):
        raise ValueError(f"labels={labels!r} holds a label twice")
    if len(known) < 2:
        raise ValueError(f"{name} needs objects of two labels at least, and y has 1 class: {known.tolist()}")
    rank = {label: i for i, label in enumerate(known.tolist())}
    for row, label in enumerate(y.tolist()):
        if label not in rank:
            raise ValueError(f"y[{row}] is {label!r}, which is not among labels={known.tolist()}")
    return known, np.array([rank[label] for label in y.tolist()], dtype=np.int64)


def _whole_numbers(name: str, y: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"Input y contains NaN or infinity: row {int(np.flatnonzero(~np.isfinite(y))[0])}")
    if y.dtype.kind not in "iuf" or (y.dtype.kind == "f" and np.any(y != np.floor(y))):
        raise ValueError(
            f"Unknown label type: {name} needs whole numbers as ordered labels, got for instance {y[0]!r}; "
            "give other labels in their order, as labels=['low', 'middle', 'high']"
        )
    found = np.unique(y)
    missing = sorted(set(range(int(found[0]), int(found[-1]) + 1)) - set(found.astype(int).tolist()))
    if missing:
        raise ValueError(
            f"y has no object with the label {missing[0]}, between {found[0]} and {found[-1]}; "
            "give all labels in their order as labels=[...], with it or without it"
        )
    return found


def given_thresholds(thresholds: object, labels: int) -> Values | None:
    """b_2 ... b_r, or None where they are to be learned."""
    if isinstance(thresholds, str):
        if thresholds == "learned":
            return None
        if thresholds == "equal":
            return np.arange(1.5, labels, dtype=np.float64)
        raise ValueError(f"thresholds must be 'equal', 'learned' or ascending numbers, got {thresholds!r}")
    fixed = np.asarray(thresholds, dtype=np.float64)
    if fixed.shape != (labels - 1,) or not np.isfinite(fixed).all() or np.any(np.diff(fixed) <= 0):
        raise ValueError(
            f"thresholds must be {labels - 1} ascending numbers, one between each two of {labels} labels, "
            f"got {thresholds!r}"
        )
    return fixed


def exc_rows(values: Values, ranks: Codes, thresholds: int) -> tuple[Values, Values, Codes, Codes]:
    """Both hinges of every object as rows over the score, with the threshold that each is about.

    Returns the rows for lower hinges (label i above b_i), those for upper ones, and the threshold of each.
    """
    lower, upper = ranks > 0, ranks < thresholds
    return values[lower], -values[upper], ranks[lower] - 1, ranks[upper]


def fit_between(values: Values, ranks: Codes, fixed: Values, margin: float, C: float) -> tuple[Values, float]:
    """Weights and offset that minimise |w|^2 / 2 + C sum of EXC losses between fixed thresholds."""
    design = np.column_stack([values, np.ones(len(values))])
    above, below, low, high = exc_rows(design, ranks, len(fixed))
    rows = np.vstack([above, below])
    margins = np.concatenate([margin + fixed[low], margin - fixed[high]])
    ridge = np.append(np.ones(values.shape[1]), 1e-8)  # the constant is free, but for ties
    start = np.append(np.zeros(values.shape[1]), np.median(np.concatenate([fixed[low] + margin, fixed[high] - margin])))
    solution = minimise(rows, margins, np.full(len(rows), float(C)), ridge, start)
    return solution[:-1], float(solution[-1])


def fit_thresholds(
    values: Values, ranks: Codes, labels: int, margin: float, C: float, spacing: float
) -> tuple[Values, Values]:
    """Weights and thresholds that minimise the EXC objective with b_{i+1} - b_i >= spacing.

    The spacing enters as hinges so costly that they are never paid: no multiplier of it can exceed C times
    the number of objects, as moving all thresholds above a gap by t changes no object's loss by more than t.
    """
    width, count = values.shape[1], labels - 1
    above, below, low, high = exc_rows(values, ranks, count)
    pick = np.eye(count)
    order = np.hstack([np.zeros((count - 1, width)), pick[1:] - pick[:-1]])
    rows = np.vstack([np.hstack([above, -pick[low]]), np.hstack([below, pick[high]]), order])
    margins = np.concatenate([np.full(len(low) + len(high), margin), np.full(count - 1, spacing)])
    costs = np.concatenate([np.full(len(low) + len(high), float(C)), np.full(count - 1, 2.0 * C * len(ranks))])
    ridge = np.append(np.ones(width), np.full(count, 1e-8))
    start = np.append(np.zeros(width), spacing * (np.arange(count) - (count - 1) / 2.0))
    solution = minimise(rows, margins, costs, ridge, start)
    thresholds = solution[width:]
    steps = np.arange(count) * spacing
    return solution[:width], np.maximum.accumulate(thresholds - steps) + steps
