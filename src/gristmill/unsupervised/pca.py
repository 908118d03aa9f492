"""Kernel principal components of a stream."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..budgets import Budget
from ..kernels import Kernel
from .base import ATTRIBUTES, PARAMETERS, UnsupervisedLearner
from .core import Learned, Moments, Settings
from .span import Floats


class _Components(NamedTuple):
    coefficients: Floats  #: of each component (column) over the stored points
    offset: Floats  #: the mean along each component
    variances: Floats
    total: float  #: variance of all samples, that outside of the span included


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedLearner):
    __doc__ = f"""Kernel principal component analysis of a stream, in bounded memory.

    Each sample is projected onto the span of the stored points, and mean and covariance of the projections are kept there,
    of all samples so far. The components are the eigenvectors of this covariance: they are computed when they are asked
    for, and are those of batch kernel PCA where no sample lies outside of the span. A sample costs m^2 operations with m
    stored points, the components m^3. Memory is 3 m^2 numbers.

    Parameters
    ----------
    n_components : int from 1 to 10,000, default=2
        Components beyond the number of stored points are 0.
    {PARAMETERS}

    Attributes
    ----------
    explained_variance_, explained_variance_ratio_ : variance along each component; its share of the variance in the RKHS
    dual_coef_ : coefficients of the components, a row a stored point
    {ATTRIBUTES}

    References
    ----------
    B. Schölkopf, A. J. Smola, K.-R. Müller, Nonlinear Component Analysis as a Kernel Eigenvalue Problem, Neural
    Computation 10, 1998.
    Y. Engel, S. Mannor, R. Meir, The Kernel Recursive Least-Squares Algorithm, IEEE Trans. Signal Processing 52, 2004
    (projection onto stored points).

    Examples
    --------
    >>> from gristmill import Gaussian
    >>> from gristmill.budgets import Merge
    >>> from gristmill.streams import drifting_digits
    >>> from gristmill.unsupervised import KernelPCA
    >>> X, _ = drifting_digits(n_events=600).arrays()
    >>> model = KernelPCA(2, Gaussian(0.001), Merge(50)).fit(X)
    >>> model.transform(X).shape, model.explained_variance_ratio_.round(2).tolist()
    ((600, 2), [0.04, 0.03])
    """

    _statistics = Moments
    _count = "n_components"

    def __init__(
        self,
        n_components: int = 2,
        kernel: Kernel | None = None,
        budget: Budget | None = None,
        decay: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.budget = budget
        self.decay = decay

    def _solve(self, parts: Settings, learned: Learned) -> _Components:
        span, moments = learned.span, learned.statistics.arrays
        count, m = parts.number, len(span)
        weight, selves = moments["weight"]
        coefficients, offset, variances = np.zeros((m, count)), np.zeros(count), np.zeros(count)
        if not m:
            return _Components(coefficients, offset, variances, 0.0)
        root = span.root()
        mean = root.T @ (moments["sum"] / weight)
        covariance = root.T @ (moments["products"] / weight) @ root - np.outer(mean, mean)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        kept = min(count, m)
        top = np.ascontiguousarray(vectors[:, ::-1][:, :kept])
        strongest = np.abs(top).argmax(axis=0)
        top *= np.where(top[strongest, np.arange(kept)] < 0, -1.0, 1.0)  # an eigenvector has no sign of its own
        coefficients[:, :kept] = solve_triangular(root.T, top)
        offset[:kept] = mean @ top
        variances[:kept] = np.maximum(values[::-1][:kept], 0.0)
        return _Components(coefficients, offset, variances, float(selves / weight - mean @ mean))

    def transform(self, X: Any) -> Floats:
        """Coordinates of each row along the components, from the mean of all samples."""
        learned, found = self._derived()
        values, _ = self._values(learned, X)
        # Row by row, so that one row and many give the same bits.
        return np.array([row @ found.coefficients for row in values]).reshape(len(values), -1) - found.offset

    @property
    def explained_variance_(self) -> Floats:
        """Variance along each component."""
        variances: Floats = self._derived()[1].variances
        return variances

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Share of each component in the variance of all samples in the RKHS."""
        found = self._derived()[1]
        return np.asarray(found.variances / found.total if found.total > 0 else np.zeros_like(found.variances))

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the components: a row a stored point, a column a component."""
        coefficients: Floats = self._derived()[1].coefficients
        return coefficients

    @property
    def _n_features_out(self) -> int:
        return int(self._started().parts.number)
