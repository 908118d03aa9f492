"""Naive kernels: each one formula, for a list of points P and one point x."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def linear(P, x):
    return np.asarray(P) @ x


def polynomial(P, x, degree=3, gamma=1.0, coef0=1.0):
    return (gamma * linear(P, x) + coef0) ** degree


def gaussian(P, x, gamma=1.0):
    return np.exp(-gamma * ((np.asarray(P) - x) ** 2).sum(axis=-1))


def laplacian(P, x, gamma=1.0):
    return np.exp(-gamma * np.abs(np.asarray(P) - x).sum(axis=-1))


def exponential(P, x, sigma=1.0):
    return np.exp(linear(P, x) / sigma**2)


def vovk(P, x, degree=None):
    t = linear(P, x)
    return 1 / (1 - t) if degree is None else sum(t**power for power in range(degree))


def sigmoid(P, x, gamma=1.0, coef0=0.0):
    return np.tanh(gamma * linear(P, x) + coef0)


def manhattan(P, x):
    return -np.abs(np.asarray(P) - x).sum(axis=-1)


def squared_euclidean(P, x):
    return -((np.asarray(P) - x) ** 2).sum(axis=-1)


def normalized(P, x, base):
    diagonal, own = np.array([base([p], p)[0] for p in P]), base([x], x)[0]
    if own < 0 or (diagonal < 0).any():
        raise ValueError("a kernel with k(x, x) < 0 cannot be normalised")
    scale = diagonal * own
    return np.where(scale > 0, base(P, x) / np.sqrt(np.where(scale > 0, scale, 1.0)), 0.0)


GAUSS = np.polynomial.legendre.leggauss(5)  # exact for polynomials to degree 9


def spline(p, q, order=1):
    """The definition, its integral by quadrature: numbers or arrays that broadcast."""
    p, q = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
    half = np.minimum(p, q) / 2
    total = sum((p * q) ** r for r in range(order + 1))
    for node, weight in zip(*GAUSS, strict=True):
        u = half * (node + 1)
        total = total + half * weight * (p - u) ** order * (q - u) ** order
    return total


def additive(P, x, kernel):
    """A sum over coordinates, each a column or a product of two; NaN contributes nothing."""
    P, x = np.atleast_2d(np.asarray(P, dtype=float)), np.asarray(x, dtype=float)
    if len(P) == 0 or P.shape[1] == 0:
        return np.zeros(0)
    columns = range(len(x)) if kernel.columns is None else kernel.columns
    pairs = [(P[:, c], x[c]) for c in columns] + [(P[:, a] * P[:, b], x[a] * x[b]) for a, b in kernel.products]
    if type(kernel.base).__name__ == "Spline":
        parts = [spline(p, q, kernel.base.order) for p, q in pairs]
    else:
        parts = [np.exp(-kernel.base.gamma * np.abs(p - q)) for p, q in pairs]
    return kernel.weight * np.nansum(parts, axis=0)


LEAVES: dict[str, Callable] = {
    "Linear": linear,
    "Polynomial": polynomial,
    "Gaussian": gaussian,
    "Laplacian": laplacian,
    "Exponential": exponential,
    "Vovk": vovk,
    "Sigmoid": sigmoid,
    "Manhattan": manhattan,
    "SquaredEuclidean": squared_euclidean,
}


def naive_kernel(kernel: Any) -> Callable:
    """The function (points, x) -> values of a kernel object, or of any function k(x, y) of two points."""
    name = type(kernel).__name__
    if name in LEAVES:
        return lambda P, x: LEAVES[name](P, x, **vars(kernel))
    if name == "Additive":
        return lambda P, x: additive(P, x, kernel)
    if name in ("Sum", "AdditiveSum", "Product"):
        left, right = naive_kernel(kernel.left), naive_kernel(kernel.right)
        join = np.multiply if name == "Product" else np.add
        return lambda P, x: join(left(P, x), right(P, x))
    if name in ("Multiple", "Normalized"):
        base = naive_kernel(kernel.base)
        return lambda P, x: kernel.factor * base(P, x) if name == "Multiple" else normalized(P, x, base)
    pair = kernel.function if name == "PythonKernel" else kernel
    return lambda P, x: np.array([float(pair(p, x)) for p in P])


def naive_matrix(kernel: Any, X: Sequence, Y: Sequence | None = None) -> np.ndarray:
    """The matrix of all pairs, rows for X."""
    k = naive_kernel(kernel)
    return np.array([k(X, y) for y in (X if Y is None else Y)]).T
