"""Explain a score: the largest contributions of support vectors, and for an anomaly those of columns."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._base.estimator import run_of, task_of
from .._base.predictors import score_of_one
from .._common import inputs
from .._common.tables import html_table, text_table
from .rule_learner import RuleLearner

Values = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The terms whose sum is the score of one event, as a table; see `explain`.

    Attributes
    ----------
    score : float or array
        The value of `decision_function` (of `predict` in regression): one number, or one per class.
    ids, labels : arrays
        Position in the stream of each point shown, the largest contribution first, and its label, target or array of
        targets; the label is None for novelty, and for additive models, which do not store labels.
    kernel_values : array
        k(x, point).
    coefficients, contributions : arrays, one row per point (and one column per class)
        A contribution is coefficient times kernel value.
    intercept : float or array
        The offset, minus the margin for novelty.
    rest : float or array
        The sum of the contributions of the points not shown.
    rounding : float or array
        The rounding error of these sums: `math.fsum` of contributions, intercept, rest and rounding is exactly the score.
    columns : array or None
        Novelty only: how much the score would rise if a column had its value at the stored point that is most similar to
        the event in all other columns.
    relevance : dict or None
        With `Prepared(scale="relevance")` only: how much each column of the table changes the predictions, by name.
    """

    score: Any
    ids: npt.NDArray[np.int64]
    labels: list[Any]
    kernel_values: Values
    coefficients: Values
    contributions: Values
    intercept: Any
    rest: Any
    rounding: object
    columns: Values | None = None
    relevance: dict[str, float] | None = None

    def retold(self, targets: Any) -> Explanation:
        """The explanation in original target units, for a learner with scaled targets."""
        spread, single = targets.spread, np.ndim(self.score) == 0
        score, rest = targets.outside(self.score), spread * self.rest
        offset, parts = targets.outside(self.intercept), self.contributions * spread
        labels = [None if label is None else targets.outside(label) for label in self.labels]
        pieces = zip(*(np.atleast_1d(piece) for piece in (score, offset, rest)), strict=True)
        lines = parts[:, None] if single else parts
        rounding = [math.fsum([s, *-lines[:, o], -b, -r]) for o, (s, b, r) in enumerate(pieces)]
        return dataclasses.replace(
            self,
            score=score,
            labels=labels,
            coefficients=self.coefficients * spread,
            contributions=parts,
            intercept=offset,
            rest=rest,
            rounding=rounding[0] if single else np.array(rounding),
        )

    def __str__(self) -> str:
        return "\n".join([text_table(*self._cells()), *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, rows = self._cells()
        return html_table(heads, rows, " ".join(["The rows add up to the score.", *self._notes()]))

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings, a row of texts for each point shown, and the rest of the sum."""
        outputs = np.size(self.score)
        heads = ["event", "label", "kernel value"]
        heads += (
            ["coefficient", "contribution"] if outputs == 1 else [f"to score {output}" for output in range(outputs)]
        )
        points = zip(self.ids, self.labels, self.kernel_values, self.coefficients, self.contributions, strict=True)
        rows = []
        for id_, label, value, coefficient, part in points:
            shown = [coefficient, part] if outputs == 1 else part
            known = "" if label is None else str(label)
            rows.append([str(id_), known, *(f"{number:.4g}" for number in (value, *shown))])
        blank = [""] * (len(heads) - 1 - outputs)
        for name, sums in (("all other points", self.rest), ("intercept", self.intercept), ("score", self.score)):
            rows.append([name, *blank, *(f"{number:.4g}" for number in np.ravel(sums))])
        return heads, rows

    def _notes(self) -> list[str]:
        """The columns that make an anomaly, and those that matter for all predictions."""
        notes = []
        if self.columns is not None:
            largest = np.argsort(-self.columns, kind="stable")[:5]
            notes.append("unusual columns: " + ", ".join(f"{j} ({self.columns[j]:+.4g})" for j in largest))
        if self.relevance is not None:
            most = sorted(self.relevance, key=self.relevance.__getitem__, reverse=True)[:5]
            notes.append("columns that matter: " + ", ".join(f"{name} ({self.relevance[name]:.2f})" for name in most))
        return notes


class Stored(NamedTuple):
    """The stored points of a model, oldest first: as an array, a CSR array or a list; coefficients; places in the stream."""

    points: Any
    coefficients: Values
    ids: npt.NDArray[np.int64]


def explained(model: RuleLearner, stored: Stored, x: object, top: int | None) -> Explanation:
    """The stored points with the largest contributions to the score of one event; see `KernelLearner.explain`."""
    if getattr(run_of(model).parts.rule, "neighbours", 0.0) > 0:
        raise TypeError("explain: a score that is measured by neighbours is not a sum over stored points")
    if top is not None and (not isinstance(top, int | np.integer) or isinstance(top, bool) or top < 1):
        raise ValueError(f"explain: top must be a whole number >= 1 or None, got {top!r}")
    run = run_of(model)
    score: Any = score_of_one(model, x)
    points, coef, ids = stored
    values = _against(model, x, points)
    parts = coef * values[:, None]
    every = np.argsort(-np.abs(parts).max(axis=1, initial=0.0), kind="stable")
    order, others = every[:top], every[len(every[:top]) :]
    offset = model.intercept_ - (run.core.margin if task_of(model) == "novelty" else 0.0)
    scores = np.atleast_1d(score)
    rest = np.array([math.fsum(parts[others, o]) for o in range(len(scores))])
    rounding = np.array([math.fsum([s, *-parts[order, o], -offset[o], -rest[o]]) for o, s in enumerate(scores)])
    flat = len(scores) == 1
    columns = _unusual(model, x, points, values, float(scores[0])) if task_of(model) == "novelty" else None
    return Explanation(
        score=float(scores[0]) if flat else scores,
        ids=ids[order],
        labels=[_labels_of_points(model)[i] for i in order],
        kernel_values=values[order],
        coefficients=coef[order, 0] if flat else coef[order],
        contributions=parts[order, 0] if flat else parts[order],
        intercept=float(offset[0]) if flat else offset,
        rest=float(rest[0]) if flat else rest,
        rounding=float(rounding[0]) if flat else rounding,
        columns=columns,
    )


def _against(model: RuleLearner, x: Any, points: Any) -> Values:
    """k(x, point) of every stored point."""
    kernel = run_of(model).parts.kernel
    if isinstance(points, list):
        return np.array([float(kernel.value_of_pair(x, point)) for point in points])
    dense = points.toarray() if inputs.is_sparse(points) else points
    row = x.toarray() if inputs.is_sparse(x) else np.asarray(x, dtype=np.float64)
    if not len(dense):
        return np.empty(0)
    return np.asarray(kernel(np.reshape(row, (1, -1)), np.asarray(dense, dtype=np.float64)))[0]


def _labels_of_points(model: RuleLearner) -> list[object]:
    """Label or target of each stored point, oldest first; None if it is unknown."""
    run = run_of(model)
    if task_of(model) == "novelty" or not hasattr(run.core, "labels"):  # trees do not store them
        return [None] * int(run.core.size)
    labels, order = run.core.labels()
    kept = labels[order]
    if run.targets > 1:
        return [None if np.isnan(row).any() else row for row in kept]
    names, found = run.labels.names, []
    for number in kept[:, 0]:
        named = names[int(number)] if names and number == number else float(number)
        found.append(None if number != number else named)
    return found


def _unusual(model: RuleLearner, x: Any, points: Any, values: Values, score: float) -> Values | None:
    """How much higher the score is with each column replaced by that of the point nearest in the other columns.

    The point that is nearest in all columns does not serve: if columns are correlated, it is a compromise, and names a
    column whose value is usual.
    """
    if isinstance(points, list) or not len(values):
        return None
    stored = np.asarray(points.toarray() if inputs.is_sparse(points) else points, dtype=np.float64)
    row = np.asarray(x.toarray() if inputs.is_sparse(x) else x, dtype=np.float64).ravel()
    squares = (stored - row) ** 2
    nearest = np.argmin(squares.sum(axis=1, keepdims=True) - squares, axis=0)  # one point per column
    changed = np.tile(row, (len(row), 1))
    np.fill_diagonal(changed, stored[nearest, np.arange(len(row))])
    return np.asarray(model._scores(changed)[0] - score)
