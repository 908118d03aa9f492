"""Boosted weights for stumps: the combination of Wang, Yang and Feng (DBOOST)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

#: a stump whose edge is this close to 1 is never wrong, and one this close to 0 says nothing: both end the boosting
_PERFECT, _USELESS = 1.0 - 1e-10, 1e-12


def adaboost(stumps: Values, signs: Values, rounds: int) -> Values:
    """Weights of given stumps by AdaBoost.

    Parameters
    ----------
    stumps : (objects, stumps) in [-1, 1]
        0 is an abstention.
    signs : (objects,) of -1 and +1
    rounds : int
        One stump, the one of the largest edge, is taken a round; it may be taken again, and its weight may
        be negative.

    References
    ----------
    R. E. Schapire, Y. Singer, Improved Boosting Algorithms Using Confidence-rated Predictions, Machine
    Learning 37, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.similarity.solvers.boost import adaboost
    >>> stumps = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> weights = adaboost(stumps, np.array([1.0, -1.0, -1.0]), rounds=1)
    >>> int(weights.argmax())
    0
    """
    agreement = stumps * signs[:, None]
    mass = np.full(len(signs), 1.0 / len(signs))
    weights = np.zeros(stumps.shape[1])
    for _ in range(rounds):
        best, edge = _largest(mass @ agreement)
        if abs(edge) < _USELESS:
            break
        step = _weight(edge)
        weights[best] += step
        mass = _reweighted(mass, step, agreement[:, best])
        if abs(edge) > _PERFECT:
            break
    return weights


def boosted_pairs(
    columns: Callable[[Positions], Values],
    signs: Values,
    sides: Sequence[Positions],
    rounds: int,
    candidates: int,
    rng: np.random.Generator,
) -> tuple[Positions, Values, float]:
    """Pairs and their weights by AdaBoost over fresh pairs: each round takes the best of so many.

    The stump of a pair is the sign of K(x, x+) - K(x, x-). Both objects are drawn by the boosting weights, so
    that candidates come from where the stumps so far err.

    Parameters
    ----------
    columns : function
        The similarities of all objects, one row each, to those at given positions.
    signs : (objects,) of -1 and +1
    sides : positions of the objects that may be positive and negative landmarks
    rounds, candidates : int
        The candidates include a constant stump, for classes of unequal size: its weight is the offset.

    Returns
    -------
    pairs : (rounds, 2) positions; those beyond the last that was taken repeat the first, with weight 0
    weights : (rounds,)
    offset : float
    """
    mass = np.full(len(signs), 1.0 / len(signs))
    pairs: list[Positions] = []
    weights: list[float] = []
    offset = 0.0
    for _ in range(rounds):
        drawn = np.stack([rng.choice(side, candidates, p=_share(mass, side)) for side in sides], axis=1)
        positions, places = np.unique(drawn, return_inverse=True)
        values = np.ascontiguousarray(columns(positions).T)  # a stump a row: rows are taken faster than columns
        first, second = places.reshape(drawn.shape).T
        stumps = np.vstack([np.sign(values[first] - values[second]), np.ones(len(signs))])
        best, edge = _largest(stumps @ (mass * signs))
        if not pairs:  # a first pair in any case: without one there is no landmark
            pairs.append(drawn[min(best, candidates - 1)])
            weights.append(0.0)
        if abs(edge) < _USELESS:
            break
        step = _weight(edge)
        if best == candidates:
            offset += step
        elif np.array_equal(pairs[-1], drawn[best]):
            weights[-1] += step
        else:
            pairs.append(drawn[best])
            weights.append(step)
        mass = _reweighted(mass, step, stumps[best] * signs)
        if abs(edge) > _PERFECT:
            break
    padding = rounds - len(pairs)
    return np.array(pairs + pairs[:1] * padding), np.array(weights + [0.0] * padding), offset


def _largest(edges: Values) -> tuple[int, float]:
    best = int(np.argmax(np.abs(edges)))
    return best, float(edges[best])


def _weight(edge: float) -> float:
    """AdaBoost's step; a perfect stump has edge 1 and would get an infinite one: it gets a very large one."""
    edge = float(np.clip(edge, -_PERFECT, _PERFECT))
    return 0.5 * float(np.log((1.0 + edge) / (1.0 - edge)))


def _reweighted(mass: Values, step: float, agreement: Values) -> Values:
    mass = mass * np.exp(-step * agreement)
    return mass / mass.sum()


def _share(mass: Values, side: Positions) -> Values:
    """The boosting weights of one side, as chances; equal ones where nothing is left of them."""
    weights = mass[side]
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(side), 1.0 / len(side))
