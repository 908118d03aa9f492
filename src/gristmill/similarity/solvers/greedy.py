"""Forward greedy selection: few landmarks out of a pool, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .newton import newton, rounded_hinge, rounded_slope

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SquaredLoss:
    """(f - y)^2, the loss that the thesis' experiments minimise."""

    smoothness: float = 2.0  # beta in Algorithm 6

    def value(self, residual: Values) -> Values:
        return residual * residual

    def slope(self, residual: Values) -> Values:
        return 2.0 * residual


@dataclass(frozen=True)
class RoundedTube:
    """The epsilon-insensitive loss: a hinge on either side of the tube, both rounded at beta."""

    epsilon: float
    smoothness: float

    def value(self, residual: Values) -> Values:
        return rounded_hinge(np.abs(residual) - self.epsilon, self.smoothness)

    def slope(self, residual: Values) -> Values:
        return np.sign(residual) * rounded_slope(np.abs(residual) - self.epsilon, self.smoothness)


Loss = SquaredLoss | RoundedTube


def forward_greedy(
    features: Values,
    targets: Values,
    loss: Loss,
    radius: float,
    tolerance: float,
    n_nonzero: int,
    steps: int = 1000,
) -> tuple[Values, float, int]:
    """Weights in the L1 ball of the given radius, by steps towards one coordinate each.

    It stops when the gap, which bounds how far the risk is above the least one in the ball, is at most
    `tolerance`, or when a step would use more than n_nonzero coordinates.

    Parameters
    ----------
    radius : C_W in the thesis
    tolerance : epsilon there

    Returns
    -------
    weights, gap, number of steps

    References
    ----------
    S. Shalev-Shwartz, N. Srebro, T. Zhang, Trading Accuracy for Sparsity in Optimization Problems with
    Sparsity Constraints, SIAM J. Optimization 20(6), 2010; Algorithm 6 of the thesis, in its corrected form.
    """
    count, width = features.shape
    weights, fitted = np.zeros(width), np.zeros(count)
    bound = float(np.abs(features).max())  # C_X
    curvature = 4.0 * radius**2 * loss.smoothness * bound**2
    gap, taken = np.inf, 0
    while taken < steps:
        taken += 1
        gradient = features.T @ loss.slope(fitted - targets) / count
        best = int(np.argmax(np.abs(gradient)))
        gap = float(gradient @ weights + radius * abs(gradient[best]))
        if gap <= tolerance or curvature == 0.0:
            break
        if weights[best] == 0.0 and np.count_nonzero(weights) >= n_nonzero:
            break
        eta = min(1.0, gap / curvature)
        weights *= 1.0 - eta
        weights[best] -= eta * radius * np.sign(gradient[best])
        fitted = (1.0 - eta) * fitted - eta * radius * np.sign(gradient[best]) * features[:, best]
    return weights, gap, taken


def corrective_squared(features: Values, targets: Values, n_nonzero: int) -> tuple[Any, Values, float]:
    """Fully corrective selection for the squared loss; a constant is in from the start and not counted.

    Each step takes the column of the steepest descent and refits all of them (orthogonal matching pursuit on
    columns as they are). An orthonormal basis of the chosen columns grows, so that the residual stays
    orthogonal to them all.

    Returns
    -------
    chosen columns in order, their weights, intercept
    """
    count = len(targets)
    basis = np.empty((count, n_nonzero + 1))
    basis[:, 0] = 1.0 / np.sqrt(count)
    residual = targets - targets.mean()
    chosen: list[int] = []
    rank = 1
    open_ = np.ones(features.shape[1], dtype=bool)
    floor = 1e-10 * max(float(np.linalg.norm(residual)), np.finfo(float).tiny)
    sizes = np.linalg.norm(features, axis=0)
    while len(chosen) < n_nonzero and open_.any():
        steepness = np.where(open_, np.abs(features.T @ residual), -1.0)
        best = int(np.argmax(steepness))
        if steepness[best] <= floor * sizes[best]:
            break  # the gradient vanishes: nothing in the pool helps any more
        open_[best] = False
        column = features[:, best].copy()
        for _ in range(2):  # twice, as once is not enough for nearly dependent columns
            column -= basis[:, :rank] @ (basis[:, :rank].T @ column)
        size = float(np.linalg.norm(column))
        if size <= 1e-9 * sizes[best]:
            continue  # it is a combination of those already chosen
        basis[:, rank] = column / size
        residual = residual - basis[:, rank] * (basis[:, rank] @ residual)
        rank += 1
        chosen.append(best)
    design = np.column_stack([np.ones(count), features[:, chosen]])
    triangle = basis[:, :rank].T @ design
    weights: Values = np.linalg.solve(triangle, basis[:, :rank].T @ targets).astype(np.float64)
    return np.array(chosen, dtype=np.int64), weights[1:], float(weights[0])


def corrective_tube(features: Values, targets: Values, loss: RoundedTube, n_nonzero: int) -> tuple[Any, Values, float]:
    """Fully corrective selection for the rounded tube; as `corrective_squared` otherwise."""
    count = len(targets)
    chosen: list[int] = []
    weights = np.array([float(np.median(targets))])
    while True:
        design = np.column_stack([np.ones(count), features[:, chosen]])
        weights = _refit(design, targets, loss, np.append(weights, np.zeros(design.shape[1] - len(weights))))
        if len(chosen) == min(n_nonzero, features.shape[1]):
            break
        gradient = features.T @ loss.slope(design @ weights - targets) / count
        gradient[chosen] = 0.0
        best = int(np.argmax(np.abs(gradient)))
        if abs(gradient[best]) <= 1e-9 * np.abs(features[:, best]).mean():
            break
        chosen.append(best)
    return np.array(chosen, dtype=np.int64), weights[1:], float(weights[0])


def _refit(design: Values, targets: Values, loss: RoundedTube, start: Values) -> Values:
    ridge = np.full(design.shape[1], 1e-10)  # only to decide among equally good answers
    return _least_tube(design, targets, loss, ridge, start)


def _least_tube(design: Values, targets: Values, loss: RoundedTube, ridge: Values, start: Values) -> Values:
    rows = np.vstack([design, -design])
    margins = np.concatenate([targets - loss.epsilon, -targets - loss.epsilon])
    costs = np.full(len(margins), 1.0 / len(targets))
    return newton(rows, margins, costs, ridge, start, loss.smoothness)


def steadied(features: Values, targets: Values, loss: Loss, reg: float) -> tuple[Values, float]:
    """Weights and constant of the least mean loss plus reg |w|^2, for columns that are chosen already."""
    design = np.column_stack([np.ones(len(targets)), features])
    ridge = np.append(0.0, np.full(features.shape[1], 2.0 * reg))
    if isinstance(loss, SquaredLoss):
        gram = 2.0 * design.T @ design / len(targets) + np.diag(ridge)
        weights = np.asarray(np.linalg.solve(gram, 2.0 * design.T @ targets / len(targets)), dtype=np.float64)
    else:
        weights = _least_tube(design, targets, loss, ridge, np.zeros(design.shape[1]))
    return weights[1:], float(weights[0])


def greedy_classes(
    features: Values,
    codes: Any,
    classes: int,
    n_nonzero: int,
    train: Callable[[Values, Any], tuple[Values, Values]],
) -> Any:
    """Forward greedy selection for a classifier: the columns chosen, ascending.

    All machines share their columns: the next is the one along which their squared hinge losses together
    descend most steeply, and `train` refits them all.
    """
    from .linear import problems, signs_of

    signs = np.stack([signs_of(codes, p, classes) for p in range(problems(classes))], axis=1)
    chosen: list[int] = []
    scores = np.tile(signs.mean(axis=0), (len(codes), 1))  # the best constants to begin with
    while len(chosen) < min(n_nonzero, features.shape[1]):
        violation = np.maximum(0.0, 1.0 - signs * scores) * signs
        steepness = np.linalg.norm(features.T @ violation, axis=1)
        steepness[chosen] = -1.0
        best = int(np.argmax(steepness))
        if steepness[best] <= 0.0:
            break
        chosen.append(best)
        weights, offsets = train(features[:, chosen], codes)
        scores = features[:, chosen] @ weights.T + offsets
    return np.array(sorted(chosen), dtype=np.int64)
