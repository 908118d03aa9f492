"""Maclaurin series of dot-product kernels: f(t) = sum_n a_n t^n with every a_n >= 0, K(x, y) = f(<x, y>)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common.ranges import Range
from .._common.types import Labels
from ..kernels import (
    Exponential,
    Kernel,
    Linear,
    Multiple,
    Node,
    Polynomial,
    Product,
    Sigmoid,
    Sum,
    Vovk,
    _python_matrix,
)

Reals = npt.NDArray[np.float64]

#: a user's series is looked at this far for negative coefficients before anything is drawn from it
CHECKED_TERMS = 64
#: no series is followed beyond this degree
LONGEST = 100_000


@dataclass(frozen=True)
class Series:
    """Logarithms of the coefficients, the highest degree (None: endless), the radius of convergence."""

    logs: Callable[[int], Reals]  # log a_0 .. log a_(count-1); -inf where a term is missing
    degree: int | None
    radius: float

    def log_coefficients(self, count: int) -> Reals:
        return self.logs(count if self.degree is None else min(count, self.degree + 1))

    def coefficient(self, n: int) -> float:
        logs = self.log_coefficients(n + 1)
        return float(np.exp(logs[n])) if n < len(logs) else 0.0

    def log_terms(self, t: float) -> Reals:
        """log(a_n t^n) as far as it matters for the sum at t >= 0."""
        count = 64
        while True:
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = self.log_coefficients(count) + np.where(
                    np.arange(_length(self, count)) == 0, 0.0, np.arange(_length(self, count)) * np.log(t)
                )
            done = self.degree is not None and len(terms) > self.degree
            if done or terms[-8:].max() < terms.max() - 45 or count >= LONGEST:
                return terms
            count *= 2

    def value(self, t: float) -> float:
        """f(t) for 0 <= t < radius."""
        return float(np.exp(np.logaddexp.reduce(self.log_terms(t))))

    def derivative(self) -> Series:
        def logs(count: int) -> Reals:
            full = self.log_coefficients(count + 1)[1:]
            with np.errstate(divide="ignore"):
                return full + np.log(np.arange(1, len(full) + 1))

        return Series(logs, None if self.degree is None else max(self.degree - 1, 0), self.radius)

    def tail(self, degree: int, t: float) -> float:
        """sum_{n > degree} a_n t^n for t >= 0: what is lost when the series is cut."""
        terms = self.log_terms(t)[degree + 1 :]
        return float(np.exp(np.logaddexp.reduce(terms))) if len(terms) else 0.0


def _length(series: Series, count: int) -> int:
    return count if series.degree is None else min(count, series.degree + 1)


def _logs(values: object) -> Reals:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


@dataclass(frozen=True)
class DotProduct(Kernel):
    """sum_n a_n <x, y>^n, from a user's own non-negative coefficients.

    Parameters
    ----------
    coefficients : sequence of numbers >= 0, or callable
        a_0, a_1, ... of a polynomial, or a function n -> a_n of an infinite series. A negative a_n is
        refused: the kernel would not be positive definite in every dimension (Schoenberg).
    radius : float > 0, optional
        Radius of convergence: every squared norm must stay below it. It must be given with a callable
        (`math.inf` where the series converges everywhere) and is infinite for a polynomial.

    References
    ----------
    P. Kar, H. Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012.

    Examples
    --------
    >>> from gristmill.features import DotProduct
    >>> DotProduct([1.0, 0.0, 2.0])([1.0, 2.0], [3.0, 0.5])
    33.0
    >>> round(DotProduct(lambda n: 0.5**n, radius=2.0)([1.0], [0.5]), 6)
    1.333333
    """

    coefficients: tuple[float, ...] | Callable[[int], float]
    radius: float | None = None

    _ranges: ClassVar[dict[str, Range]] = {}

    def __post_init__(self) -> None:
        if callable(self.coefficients):
            if self.radius is None:
                raise ValueError(
                    "DotProduct: with a callable, radius must be given: the radius of "
                    "convergence of the series, "
                    "math.inf where it converges everywhere"
                )
            self._from_callable(CHECKED_TERMS)
        else:
            _check_coefficients(self.coefficients)
            object.__setattr__(self, "coefficients", tuple(float(a) for a in self.coefficients))
        if self.radius is not None and not (
            isinstance(self.radius, numbers.Real) and not isinstance(self.radius, bool) and self.radius > 0
        ):
            raise ValueError(f"DotProduct: radius must be a number > 0 (inf allowed) or None, got {self.radius!r}")

    def _from_callable(self, count: int) -> Reals:
        assert callable(self.coefficients)
        values = np.array([float(self.coefficients(n)) for n in range(count)])
        _check_coefficients(values)
        return _logs(values)

    def _series(self) -> Series:
        if callable(self.coefficients):
            assert self.radius is not None
            return Series(self._from_callable, None, float(self.radius))
        logs = _logs(self.coefficients)
        return Series(lambda count: logs[:count], len(logs) - 1, math.inf if self.radius is None else self.radius)

    @property
    def is_native(self) -> bool:
        return not callable(self.coefficients)

    def emit_program(self, program: list[Node]) -> int:
        assert not callable(self.coefficients)
        last = -1
        for n, a in enumerate(self.coefficients):
            if a == 0 and not (last < 0 and n == len(self.coefficients) - 1):
                continue
            program.append(("polynomial", -1, -1, n, 1.0, 0.0))
            program.append(("multiple", len(program) - 1, -1, 0, a, 0.0))
            if last >= 0:
                program.append(("sum", last, len(program) - 1, 0, 0.0, 0.0))
            last = len(program) - 1
        return last

    def value_of_pair(self, x: object, y: Labels) -> float:
        t = float(np.dot(np.asarray(x, dtype=float), np.asarray(y, dtype=float)))
        series = self._series()
        if not abs(t) < series.radius:
            raise ValueError(f"DotProduct: <x, y> = {t:g} is outside the radius of convergence {series.radius:g}")
        logs = series.log_terms(abs(t))
        signs = np.where(np.arange(len(logs)) % 2 == 1, np.sign(t), 1.0)
        return float(np.sum(signs * np.exp(logs)))

    def __call__(self, X: Any, Y: Any = None) -> Any:
        if self.is_native:
            return super().__call__(X, Y)
        if np.ndim(X) == 1:
            return self.value_of_pair(X, X if Y is None else Y)
        return _python_matrix(self, X, Y)  # type: ignore[arg-type]  # anything with _pair

    def diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        return super().diagonal(X) if self.is_native else np.array([self.value_of_pair(x, x) for x in X], dtype=float)


def _check_coefficients(values: Any) -> None:
    if len(values) == 0:
        raise ValueError("DotProduct: coefficients must hold at least one number, got none")
    for n, a in enumerate(values):
        if not isinstance(a, numbers.Real) or isinstance(a, bool) or not math.isfinite(a):
            raise ValueError(f"DotProduct: coefficients must be finite numbers, got a_{n} = {a!r}")
        if a < 0:
            raise ValueError(
                f"DotProduct: a_{n} = {a:g} is negative; a dot-product kernel needs every coefficient >= 0"
            )
    if not any(a > 0 for a in values):
        raise ValueError("DotProduct: every coefficient is 0; at least one must be positive")


# ---- the series of the kernels -----------------------------------------------------------------------------


def _polynomial(kernel: Polynomial) -> Series:
    p, gamma, shift = kernel.degree, kernel.gamma, kernel.coef0

    def logs(count: int) -> Reals:
        n = np.arange(min(count, p + 1))
        choose = np.array([math.lgamma(p + 1) - math.lgamma(k + 1) - math.lgamma(p - k + 1) for k in n])
        if shift == 0:
            return np.where(n == p, p * math.log(gamma), -np.inf)
        return np.asarray(choose + n * math.log(gamma) + (p - n) * math.log(shift))

    return Series(logs, p, math.inf)


def _exponential(kernel: Exponential) -> Series:
    def logs(count: int) -> Reals:
        return np.array([-2 * n * math.log(kernel.sigma) - math.lgamma(n + 1) for n in range(count)])

    return Series(logs, None, math.inf)


def _sum(left: Series, right: Series) -> Series:
    degree = None if left.degree is None or right.degree is None else max(left.degree, right.degree)

    def logs(count: int) -> Reals:
        out = np.full(count if degree is None else min(count, degree + 1), -np.inf)
        for part in (left, right):
            values = part.log_coefficients(count)
            out[: len(values)] = np.logaddexp(out[: len(values)], values)
        return out

    return Series(logs, degree, min(left.radius, right.radius))


def _product(left: Series, right: Series) -> Series:
    degree = None if left.degree is None or right.degree is None else left.degree + right.degree

    def logs(count: int) -> Reals:
        a, b = left.log_coefficients(count), right.log_coefficients(count)
        size = count if degree is None else min(count, degree + 1)
        out = np.full(size, -np.inf)
        for n in range(size):  # Cauchy's product
            low, high = max(0, n - len(b) + 1), min(n, len(a) - 1)
            if low <= high:
                out[n] = np.logaddexp.reduce(a[low : high + 1] + b[n - high : n - low + 1][::-1])
        return out

    return Series(logs, degree, min(left.radius, right.radius))


def series_of(kernel: object) -> Series:
    """The Maclaurin series of a kernel; one that has none, or negative terms, is refused by name."""
    if isinstance(kernel, DotProduct):
        return kernel._series()
    if isinstance(kernel, Linear):
        return Series(lambda count: np.array([-np.inf, 0.0])[:count], 1, math.inf)
    if isinstance(kernel, Polynomial):
        return _polynomial(kernel)
    if isinstance(kernel, Exponential):
        return _exponential(kernel)
    if isinstance(kernel, Vovk):
        terms = kernel.degree
        return Series(np.zeros, None if terms is None else terms - 1, 1.0 if terms is None else math.inf)
    if isinstance(kernel, Sum):
        return _sum(series_of(kernel.left), series_of(kernel.right))
    if isinstance(kernel, Product):
        return _product(series_of(kernel.left), series_of(kernel.right))
    if isinstance(kernel, Multiple):
        base, shift = series_of(kernel.base), math.log(kernel.factor)
        return Series(lambda count: base.log_coefficients(count) + shift, base.degree, base.radius)
    if isinstance(kernel, Sigmoid):
        raise ValueError(
            f"{kernel!r} has negative Maclaurin coefficients (tanh: t - t^3/3 + ...); no random map exists"
        )
    raise TypeError(
        "RandomMaclaurin needs a dot-product kernel: Polynomial, Exponential, Vovk, "
        "Linear, DotProduct, sums and "
        f"products of them, or Compose(outer, inner); got {kernel!r}"
    )
