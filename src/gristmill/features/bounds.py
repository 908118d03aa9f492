"""How many features, and how many terms, an accuracy takes: the reference's bounds, corrected."""

from __future__ import annotations

import math

from .._common.ranges import count, non_negative, positive, real
from .series import LONGEST, series_of


def n_components_for(
    kernel: object, epsilon: float, delta: float, n_features: int, radius: float, p: float = 2.0
) -> int:
    """Features that make |<Z(x), Z(y)> - K(x, y)| <= epsilon for all x, y at once, with probability 1 -
    delta.

    The smallest D with 2 (32 R L / epsilon)^(2d) exp(-D epsilon^2 / (8 C^2)) <= delta, where C = p f(p R^2) /
    (p - 1) and L = R f'(R^2) + p^2 R sqrt(d) f'(p R^2) / (p - 1). It is for the plain geometric law, and a
    worst case: in practice a small fraction of it does.

    Parameters
    ----------
    kernel : dot-product kernel
    epsilon : float > 0
    delta : float in (0, 1)
    n_features : int >= 1
        d, the number of inputs.
    radius : float > 0
        R: every input has sum_j |x_j| <= R.
    p : float > 1, default=2.0
        The ratio of the geometric law.

    References
    ----------
    P. Kar, H. Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012 (Theorem 3.10 of Kar's
    thesis).

    Examples
    --------
    >>> from gristmill import Exponential
    >>> from gristmill.features import n_components_for
    >>> n_components_for(Exponential(1.0), epsilon=0.5, delta=0.05, n_features=10, radius=0.5)
    42132
    """
    for name, value, range_ in (
        ("epsilon", epsilon, positive),
        ("n_features", n_features, count),
        ("radius", radius, positive),
        ("p", p, real),
    ):
        range_.check("n_components_for", name, value)
    if not (0 < delta < 1):
        raise ValueError(f"n_components_for: delta must be a number in (0, 1), got {delta!r}")
    if not p > 1:
        raise ValueError(f"n_components_for: p must be a number > 1, got {p!r}")
    f = series_of(kernel)
    if not p * radius**2 < f.radius:
        raise ValueError(
            f"n_components_for: p * radius^2 = {p * radius**2:g} is not below the radius of "
            f"convergence {f.radius:g} of "
            f"{kernel!r}; a radius below {math.sqrt(f.radius / p):g} would work"
        )
    slope = f.derivative()
    largest = p * f.value(p * radius**2) / (p - 1)  # C
    lipschitz = radius * slope.value(radius**2) + p**2 * radius * math.sqrt(n_features) * slope.value(p * radius**2) / (
        p - 1
    )
    covering = 2 * n_features * math.log(max(32 * radius * lipschitz / epsilon, 1.0))
    return math.ceil(8 * largest**2 / epsilon**2 * (covering + math.log(2 / delta)))


def n_components_for_composition(
    kernel: object,
    epsilon: float,
    delta: float,
    n_features: int,
    radius: float,
    map_bound: float,
    map_lipschitz: float,
    kernel_lipschitz: float,
    kernel_bound: float | None = None,
    p: float = 2.0,
) -> int:
    """Features that make |<Z(x), Z(y)> - f(K(x, y))| <= epsilon for all x, y at once, with probability 1 - delta.

    For `Compose(kernel, inner)`. The smallest D with 2 (8 R/r)^(2d) exp(-D epsilon^2/(8 C^2)) + 4 r L/epsilon <= delta at
    the best r, where C = p f(p C_W)/(p - 1) and L = L_K f'(C_K) + L_W sqrt(C_W) f'(C_W). It is for the plain geometric law,
    and a worst case.

    Parameters
    ----------
    kernel : dot-product kernel
        f, the outer one.
    epsilon : float > 0
    delta : float in (0, 1)
    n_features : int >= 1
        d, the number of inputs.
    radius : float > 0
        R: every input has sum_j |x_j| <= R.
    map_bound : float > 0
        C_W: a feature W of the inner map has W(x)^2 <= C_W; 2 for `FourierFeatures`.
    map_lipschitz : float > 0
        L_W: the mean over draws of the largest |gradient of W|; at most 2 sqrt(gamma d) for `FourierFeatures` of the
        Gaussian kernel.
    kernel_lipschitz : float > 0
        L_K: the largest |gradient of K(., y)|; sqrt(2 gamma/e) for the Gaussian kernel.
    kernel_bound : float > 0, optional
        C_K: |K(x, y)| <= C_K; `map_bound` if not given.
    p : float > 1, default=2.0
        The ratio of the geometric law.

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 3.14. Changed: the probabilities of degrees sum to
    1, the centres are counted in pairs, a move of both arguments counts twice, the supremum stands inside of the
    expectation in L_W (a mean gradient at each point bounds no Lipschitz constant), and L takes the mean over degrees.

    Examples
    --------
    >>> import math
    >>> from gristmill import Exponential
    >>> from gristmill.features import n_components_for_composition
    >>> gamma, d = 0.5, 2
    >>> slopes = {"map_lipschitz": 2 * math.sqrt(gamma * d), "kernel_lipschitz": math.sqrt(2 * gamma / math.e)}
    >>> n_components_for_composition(Exponential(2.0), 0.5, 0.05, d, 1.0, map_bound=2.0, kernel_bound=1.0, **slopes)
    34088
    """
    owner = "n_components_for_composition"
    kernel_bound = map_bound if kernel_bound is None else kernel_bound
    for name, value in {
        "epsilon": epsilon, "radius": radius, "map_bound": map_bound, "map_lipschitz": map_lipschitz,
        "kernel_lipschitz": kernel_lipschitz, "kernel_bound": kernel_bound,
    }.items():  # fmt: skip
        positive.check(owner, name, value)
    count.check(owner, "n_features", n_features)
    if not (0 < delta < 1):
        raise ValueError(f"{owner}: delta must be a number in (0, 1), got {delta!r}")
    if not p > 1:
        raise ValueError(f"{owner}: p must be a number > 1, got {p!r}")
    f = series_of(kernel)
    if not max(p * map_bound, kernel_bound) < f.radius:
        raise ValueError(
            f"{owner}: p * map_bound = {p * map_bound:g} is not below the radius of convergence {f.radius:g} of {kernel!r}; "
            "a kernel that is scaled down would work"
        )
    slope = f.derivative()
    largest = p * f.value(p * map_bound) / (p - 1)  # C
    lipschitz = kernel_lipschitz * slope.value(kernel_bound) + map_lipschitz * math.sqrt(map_bound) * slope.value(
        map_bound
    )
    exponent = 2 * n_features
    share = exponent / (exponent + 1)  # of delta for the Lipschitz constant: the best
    covering = exponent * math.log(max(32 * radius * lipschitz / (share * delta * epsilon), 1.0))
    return math.ceil(8 * largest**2 / epsilon**2 * (covering + math.log(2 / ((1 - share) * delta))))


def truncation_error(kernel: object, degree: int, radius: float) -> float:
    """sup over |x|, |y| <= radius of what a series loses when it is cut after `degree`: sum_{n > degree} a_n
    R^(2n).

    Parameters
    ----------
    kernel : dot-product kernel
    degree : int >= 0
    radius : float >= 0
        R, with R^2 inside the radius of convergence.

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, section 3.4.2.

    Examples
    --------
    >>> from gristmill import Exponential
    >>> from gristmill.features import truncation_error
    >>> round(truncation_error(Exponential(1.0), degree=3, radius=1.0), 6)
    0.051615
    """
    f = series_of(kernel)
    if degree != 0:
        count.check("truncation_error", "degree", degree)
    non_negative.check("truncation_error", "radius", radius)
    if not radius**2 < f.radius:
        raise ValueError(
            f"truncation_error: radius^2 = {radius**2:g} is not below the radius of "
            f"convergence {f.radius:g} of {kernel!r}"
        )
    return f.tail(degree, radius**2)


def truncation_degree(kernel: object, epsilon: float, radius: float) -> int:
    """The smallest degree after which a series may be cut at a loss of at most epsilon on the ball of that
    radius.

    Parameters
    ----------
    kernel : dot-product kernel
    epsilon : float > 0
    radius : float >= 0

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, section 3.4.2.

    Examples
    --------
    >>> from gristmill import Exponential
    >>> from gristmill.features import truncation_degree
    >>> truncation_degree(Exponential(1.0), epsilon=0.001, radius=1.0)
    6
    """
    positive.check("truncation_degree", "epsilon", epsilon)
    high = 0
    while truncation_error(kernel, high, radius) > epsilon:
        if high > LONGEST:
            raise ValueError(
                f"truncation_degree: more than {LONGEST} terms are needed; lower the radius or raise epsilon"
            )
        high += 1
    return high
