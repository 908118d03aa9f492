"""What a comparator suffers on a stream."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._common.ranges import non_negative
from ._require import require


def cumulative_hinge(scores: npt.ArrayLike, labels: npt.ArrayLike, margin: float = 1.0) -> float:
    """The sum of max(0, margin - y g(x)) over a stream.

    Parameters
    ----------
    scores : array of shape (n,)
        g(x_t), of one function or of one that changes with t.
    labels : array of shape (n,)
        y_t, each -1 or +1.
    margin : float >= 0, default=1.0
        mu, gamma or rho in the papers.

    Returns
    -------
    float
        K or D in the papers, L_cum in NORMA's.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing
    52(8), 2004, section IV.

    Examples
    --------
    >>> from gristmill.theory import cumulative_hinge
    >>> cumulative_hinge([2.0, -0.5, 0.25], [1, -1, -1])
    1.75
    """
    require("cumulative_hinge", non_negative, margin=margin)
    f, y = np.asarray(scores, dtype=float), np.asarray(labels, dtype=float)
    if f.ndim != 1 or f.shape != y.shape:
        raise ValueError(
            f"cumulative_hinge: scores and labels must be two arrays of one length, got shapes {f.shape} and {y.shape}"
        )
    if not np.isfinite(f).all():
        raise ValueError(f"cumulative_hinge: scores must be finite, got {f[~np.isfinite(f)][0]!r}")
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError(f"cumulative_hinge: labels must be -1 or +1, got {y[~np.isin(y, (-1.0, 1.0))][0]!r}")
    return float(np.maximum(0.0, margin - y * f).sum())
