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
    if name in ("Sum", "Product"):
        left, right = naive_kernel(kernel.left), naive_kernel(kernel.right)
        join = np.add if name == "Sum" else np.multiply
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
