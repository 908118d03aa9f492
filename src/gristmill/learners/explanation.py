"""Explain a score: the largest contributions of support vectors, and for an anomaly those of columns."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._base.predictors import score_of_one
from .._common import inputs
from .._common.tables import html_table
from .rule_learner import RuleLearner

Values = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What the score of one event is the sum of; see `explain`.

    Attributes
    ----------
    score : float or array
        As `decision_function` says it (`predict` in regression): one number, or one a class.
    ids, labels : arrays
        Place in the stream of each point shown, the loudest first, and its label, target or array of targets; None where a
        file of an earlier version does not know it, and for novelty.
    kernel_values : array
        k(x, point).
    coefficients, contributions : arrays, a row a point (and a column a class)
        A contribution is coefficient times kernel value.
    intercept : float or array
        What is not of points: the offset, less the margin for novelty.
    rest : float or array
        The points not shown.
    rounding : float or array
        What the rounding of these sums is off. `math.fsum` of contributions, intercept, rest and rounding is the score,
        exactly.
    columns : array or None
        Novelty only: how much higher the score would be if a column had its value at the stored point that is most like the
        event in all other columns.
    relevance : dict or None
        Behind `Prepared(scale="relevance")` only: how much each column of the table moves the answers, by name.
    """

    score: Any
    ids: npt.NDArray[np.int64]
    labels: list[Any]
    kernel_values: Values
    coefficients: Values
    contributions: Values
    intercept: Any
    rest: Any
    rounding: Any
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
        lines = [
            f"score {_short(self.score)} = intercept {_short(self.intercept)} + rest {_short(self.rest)} + points:"
        ]
        for id_, label, value, coef, part in zip(
            self.ids, self.labels, self.kernel_values, self.coefficients, self.contributions, strict=True
        ):
            lines.append(f"  event {id_} ({label}): {_short(coef)} x k {value:.4g} = {_short(part)}")
        if self.columns is not None:
            loudest = np.argsort(-self.columns, kind="stable")[:5]
            lines.append("unusual columns: " + ", ".join(f"{j} ({self.columns[j]:+.4g})" for j in loudest))
        if self.relevance is not None:
            most = sorted(self.relevance, key=self.relevance.__getitem__, reverse=True)[:5]
            lines.append("columns that matter: " + ", ".join(f"{name} ({self.relevance[name]:.2f})" for name in most))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = ["event", "label", "kernel value", "coefficient", "contribution"]
        shown = zip(self.ids, self.labels, self.kernel_values, self.coefficients, self.contributions, strict=True)
        rows = [
            [str(id_), "" if label is None else str(label), f"{value:.4g}", _short(coef), _short(part)]
            for id_, label, value, coef, part in shown
        ]
        rows += [["all other points", "", "", "", _short(self.rest)], ["intercept", "", "", "", _short(self.intercept)]]
        return html_table(
            heads, rows, f"The score {_short(self.score)} is the sum of the contributions of stored points."
        )


def _short(value: Any) -> str:
    return f"{value:.4g}" if np.ndim(value) == 0 else "[" + ", ".join(f"{v:.4g}" for v in value) + "]"


class Stored(NamedTuple):
    """The stored points of a model, oldest first: as an array, a CSR array or a list; coefficients; places in the stream."""

    points: Any
    coefficients: Values
    ids: npt.NDArray[np.int64]


def explained(model: RuleLearner, stored: Stored, x: object, top: int | None) -> Explanation:
    """The stored points with the largest contributions to the score of one event; see `KernelLearner.explain`."""
    if getattr(model._started().parts.rule, "neighbours", 0.0) > 0:
        raise TypeError("explain: a score that is measured by neighbours is no sum over stored points")
    if top is not None and (not isinstance(top, int | np.integer) or isinstance(top, bool) or top < 1):
        raise ValueError(f"explain: top must be a whole number >= 1 or None, got {top!r}")
    run = model._started()
    score: Any = score_of_one(model, x)
    points, coef, ids = stored
    values = _against(model, x, points)
    parts = coef * values[:, None]
    every = np.argsort(-np.abs(parts).max(axis=1, initial=0.0), kind="stable")
    order, others = every[:top], every[len(every[:top]) :]
    offset = model.intercept_ - (run.core.margin if model._task.name == "novelty" else 0.0)
    scores = np.atleast_1d(score)
    rest = np.array([math.fsum(parts[others, o]) for o in range(len(scores))])
    rounding = np.array([math.fsum([s, *-parts[order, o], -offset[o], -rest[o]]) for o, s in enumerate(scores)])
    flat = len(scores) == 1
    columns = _strange(model, x, points, values, float(scores[0])) if model._task.name == "novelty" else None
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
    kernel = model._started().parts.kernel
    if isinstance(points, list):
        return np.array([float(kernel._pair(x, point)) for point in points])
    dense = points.toarray() if inputs.is_sparse(points) else points
    row = x.toarray() if inputs.is_sparse(x) else np.asarray(x, dtype=np.float64)
    if not len(dense):
        return np.empty(0)
    return np.asarray(kernel(np.reshape(row, (1, -1)), np.asarray(dense, dtype=np.float64)))[0]


def _labels_of_points(model: RuleLearner) -> list[Any]:
    """Label or target of each stored point, oldest first; None where it is not known."""
    run = model._started()
    if model._task.name == "novelty" or not hasattr(run.core, "labels"):  # trees do not keep them
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


def _strange(model: RuleLearner, x: Any, points: Any, values: Values, score: float) -> Values | None:
    """How much higher the score is with each column replaced by that of the point nearest in the other columns.

    The point that is nearest in all of them would not do: where columns go together it is a compromise, and blames
    a column that is right.
    """
    if isinstance(points, list) or not len(values):
        return None
    stored = np.asarray(points.toarray() if inputs.is_sparse(points) else points, dtype=np.float64)
    row = np.asarray(x.toarray() if inputs.is_sparse(x) else x, dtype=np.float64).ravel()
    squares = (stored - row) ** 2
    nearest = np.argmin(squares.sum(axis=1, keepdims=True) - squares, axis=0)  # a point a column
    changed = np.tile(row, (len(row), 1))
    np.fill_diagonal(changed, stored[nearest, np.arange(len(row))])
    return np.asarray(model._scores(changed)[0] - score)
