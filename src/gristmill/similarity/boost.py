"""Boosted weights for stumps: the combination of Wang, Yang and Feng (DBOOST)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


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
    >>> from gristmill.similarity.boost import adaboost
    >>> stumps = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> weights = adaboost(stumps, np.array([1.0, -1.0, -1.0]), rounds=1)
    >>> int(weights.argmax())
    0
    """
    agreement = stumps * signs[:, None]
    mass = np.full(len(signs), 1.0 / len(signs))
    weights = np.zeros(stumps.shape[1])
    for _ in range(rounds):
        edges = mass @ agreement
        best = int(np.argmax(np.abs(edges)))
        if abs(edges[best]) < 1e-12:
            break
        # A perfect stump has edge 1 and would get an infinite weight: it gets a very large one.
        edge = np.clip(edges[best], -1.0 + 1e-10, 1.0 - 1e-10)
        step = 0.5 * np.log((1.0 + edge) / (1.0 - edge))
        weights[best] += step
        mass *= np.exp(-step * agreement[:, best])
        mass /= mass.sum()
        if abs(edges[best]) > 1.0 - 1e-10:
            break
    return weights
