"""Minimise a quadratic plus hinges: the problem beneath ordinal regression and the smoothed losses.

    1/2 sum_k ridge_k v_k^2  +  sum_j cost_j [margin_j - <row_j, v>]_+

The hinge is rounded over a width 1/beta and solved by Newton's method, and the width is narrowed, from one
solution to the next, until the rounding can no longer matter: it changes the objective by at most sum cost /
(2 beta).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

Values = npt.NDArray[np.float64]


def rounded_slope(gap: Values, beta: float) -> Values:
    """Derivative of the rounded hinge: 0, a ramp of slope beta, 1."""
    return np.clip(beta * gap, 0.0, 1.0)


def rounded_hinge(gap: Values, beta: float) -> Values:
    """0 below 0, beta gap^2 / 2 up to 1 / beta, then gap - 1 / (2 beta)."""
    slope = rounded_slope(gap, beta)
    return slope * (gap - slope / (2.0 * beta))


def newton(
    rows: Values, margins: Values, costs: Values, ridge: Values, start: Values, beta: float, steps: int = 200
) -> Values:
    """The minimiser with hinges rounded at beta: a piecewise quadratic, for which few steps are enough."""
    v = start.copy()
    gap = margins - rows @ v
    value = _value(gap, v, costs, ridge, beta)
    reach = 0.0
    for _ in range(steps):
        gradient = ridge * v - rows.T @ (costs * rounded_slope(gap, beta))
        # Hinges near the rounded part count as curved too, once a step without them has failed: the second
        # derivative knows nothing of kinks just outside, and its step may be without any bound.
        curved = (beta * gap > -reach) & (beta * gap < 1.0 + reach)
        step = _newton_step(rows[curved], beta * costs[curved], ridge, gradient)
        if -(gradient @ step) <= 1e-13 * (1.0 + abs(value)) and reach == 0.0:
            break
        shift = rows @ step
        length = _least_along(gap, shift, v, step, costs, ridge, beta)
        trial = _value(gap - length * shift, v + length * step, costs, ridge, beta)
        if trial < value - 1e-15 * abs(value):
            v, gap, value = v + length * step, gap - length * shift, trial
            reach = 0.0 if length > 0.1 else reach
        elif reach > 1e3:
            break  # only rounding errors are left to gain
        else:
            reach = 4.0 * reach + 1.0
    return v


def _newton_step(active: Values, weights: Values, ridge: Values, gradient: Values) -> Values:
    hessian = (active * weights[:, None]).T @ active
    hessian[np.diag_indices_from(hessian)] += ridge + 1e-12 * (1.0 + np.trace(hessian))
    return -np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)


def _least_along(
    gap: Values, shift: Values, v: Values, step: Values, costs: Values, ridge: Values, beta: float
) -> float:
    """The best length of a step: the active hinges change on the way, so that halving a full step is slow."""
    linear, quadratic = float(ridge @ (v * step)), float(ridge @ (step * step))

    def slope(length: float) -> float:
        pull = float((costs * rounded_slope(gap - length * shift, beta)) @ shift)
        return linear + length * quadratic - pull

    low, high = 0.0, 1.0
    while slope(high) < 0 and high < 1e6:
        low, high = high, 2.0 * high
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        if high < 1e-15:
            break
    return high


def _value(gap: Values, v: Values, costs: Values, ridge: Values, beta: float) -> float:
    return float(costs @ rounded_hinge(gap, beta) + 0.5 * (ridge @ (v * v)))


def minimise(
    rows: Values,
    margins: Values,
    costs: Values,
    ridge: Values,
    start: Values | None = None,
    tol: float = 1e-6,
) -> Values:
    """The minimiser of the quadratic plus hinges, within a fraction tol of its objective.

    Parameters
    ----------
    rows, margins, costs : one row, margin and cost >= 0 a hinge
    ridge : one number >= 0 a variable
    start : where to begin; zeros without it

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.similarity.solvers.newton import minimise
    >>> rows, margins, costs = np.array([[1.0], [-1.0]]), np.array([1.0, -3.0]), np.array([10.0, 10.0])
    >>> v = minimise(rows, margins, costs, ridge=np.array([1.0]))
    >>> round(float(v[0]), 4)
    1.0
    """
    v = np.zeros(rows.shape[1]) if start is None else start.astype(np.float64)
    gap = margins - rows @ v
    spread = float(np.abs(gap).max()) or 1.0
    beta = 1.0 / spread
    # Many small systems: handing each to several threads costs more than solving it.
    with threadpool_limits(limits=1, user_api="blas"):
        while True:
            v = newton(rows, margins, costs, ridge, v, beta)
            gap = margins - rows @ v
            objective = float(costs @ np.maximum(gap, 0.0) + 0.5 * (ridge @ (v * v)))
            if costs.sum() <= 2.0 * beta * tol * objective or beta > 1e12 / spread:
                return v
            beta *= 4.0
