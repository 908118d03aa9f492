"""Kernels: values that compare two points.

A kernel is callable: `Gaussian(0.5)(X, Y)` is the matrix of all pairs, `Gaussian(0.5)(x, y)` of two vectors one number.
Kernels add, multiply, and take positive factors: `0.5 * Gaussian(1.0) + Linear() * Laplacian(0.1)`. Any Python function
`k(x, y)` on any objects can stand where a kernel stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ._common.ranges import Checked, Range, is_real, is_whole, non_negative, optional, positive, real
from ._common.types import Labels, Table

#: one node of a kernel's program in postfix order: (operation, left, right, n, a, b)
Node = tuple[str, int, int, int, float, float]


# The sums of a geometric kernel are as long as its degree, so an absurd one would never end.
_degree = Range("a whole number from 1 to 10000", lambda v: is_whole(v) and 1 <= v <= 10_000)


class Kernel(Checked):
    """Base class of the kernels; defines `+`, `*` and the matrix of all pairs."""

    #: False where the kernel can have negative eigenvalues: guarantees of the papers are void there
    positive_definite: ClassVar[bool] = True

    def emit_program(self, program: list[Node]) -> int:
        """Append this kernel's nodes to a program; returns the position of its last node."""
        raise NotImplementedError

    def kernel_program(self) -> list[Node]:
        program: list[Node] = []
        self.emit_program(program)
        return program

    @property
    def is_native(self) -> bool:
        """Whether the kernel runs in the core; a Python function does not."""
        return True

    def __add__(self, other: object) -> Kernel:
        return Sum(self, as_kernel(other))

    def __radd__(self, other: object) -> Kernel:
        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        if is_real(other):
            return Multiple(float(other), self)
        return Product(self, as_kernel(other))

    def __rmul__(self, other: Any) -> Kernel:
        if is_real(other):
            return Multiple(float(other), self)
        return Product(as_kernel(other), self)

    def __call__(self, X: Table, Y: object = None) -> Any:
        from . import _core
        from ._common.inputs import kernel_rows

        single = _is_vector(X) and (Y is None or _is_vector(Y))
        left = kernel_rows([X] if single else X)
        right = left if Y is None else kernel_rows([Y] if single else Y)
        matrix = _core.kernel_matrix(self.kernel_program(), left, right)
        return float(matrix[0, 0]) if single else matrix

    def diagonal(self, X: Table) -> npt.NDArray[np.float64]:
        """k(x, x) for each row of X."""
        from . import _core
        from ._common.inputs import kernel_rows

        return _core.kernel_diagonal(self.kernel_program(), kernel_rows(X))


def _is_vector(x: Any) -> bool:
    return not hasattr(x, "columns") and not hasattr(x, "tocsr") and np.ndim(x) == 1


def _leaf(program: list[Node], op: str, n: int = 0, a: float = 0.0, b: float = 0.0) -> int:
    program.append((op, -1, -1, n, float(a), float(b)))
    return len(program) - 1


@dataclass(frozen=True)
class Linear(Kernel):
    """<x, y>.

    Examples
    --------
    >>> from gristmill import Linear
    >>> Linear()([1.0, 2.0], [3.0, 4.0])
    11.0
    """

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "linear")


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma <x, y> + coef0)^degree.

    Parameters
    ----------
    degree : int from 1 to 10000, default=3
    gamma : float > 0, default=1.0
    coef0 : float >= 0, default=1.0
        0 gives the homogeneous kernel.

    Examples
    --------
    >>> from gristmill import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=1.0)([1.0, 2.0], [3.0, 4.0])
    144.0
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"degree": _degree, "gamma": positive, "coef0": non_negative}

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "polynomial", self.degree, self.gamma, self.coef0)


@dataclass(frozen=True)
class Gaussian(Kernel):
    """exp(-gamma ||x - y||^2).

    Parameters
    ----------
    gamma : float > 0, default=1.0
        1/(2 sigma^2) where a paper gives a width sigma.

    Examples
    --------
    >>> from gristmill import Gaussian
    >>> round(Gaussian(gamma=0.5)([0.0, 0.0], [1.0, 1.0]), 6)
    0.367879
    """

    gamma: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"gamma": positive}

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "gaussian", 0, self.gamma)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma sum_j |x_j - y_j|).

    Parameters
    ----------
    gamma : float > 0, default=1.0

    Examples
    --------
    >>> from gristmill import Laplacian
    >>> round(Laplacian(gamma=0.5)([0.0, 0.0], [1.0, 1.0]), 6)
    0.367879
    """

    gamma: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"gamma": positive}

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "laplacian", 0, self.gamma)


@dataclass(frozen=True)
class Exponential(Kernel):
    """exp(<x, y> / sigma^2).

    Parameters
    ----------
    sigma : float > 0, default=1.0

    Examples
    --------
    >>> from gristmill import Exponential
    >>> round(Exponential(sigma=2.0)([1.0, 1.0], [1.0, 1.0]), 6)
    1.648721
    """

    sigma: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"sigma": positive}

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "exponential", 0, 1.0 / (self.sigma * self.sigma))


@dataclass(frozen=True)
class Vovk(Kernel):
    """The sum of <x, y>^i over i < degree: 1 + t + t^2 and so on with t = <x, y>; without a degree the whole series 1/(1-t).

    Parameters
    ----------
    degree : int from 1 to 10000, optional
        Number of terms. Without it every point must have norm below 1.

    Examples
    --------
    >>> from gristmill import Vovk
    >>> Vovk(degree=3)([0.5], [1.0]), Vovk()([0.5], [0.5])
    (1.75, 1.3333333333333333)
    """

    degree: int | None = None

    _ranges: ClassVar[dict[str, Range]] = {"degree": optional(_degree)}

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "vovk", self.degree or 0)


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """tanh(gamma <x, y> + coef0); not positive definite.

    Parameters
    ----------
    gamma : float > 0, default=1.0
    coef0 : float, default=0.0

    Examples
    --------
    >>> from gristmill import Sigmoid
    >>> round(Sigmoid(gamma=0.5, coef0=0.0)([1.0, 1.0], [1.0, 1.0]), 6)
    0.761594
    """

    gamma: float = 1.0
    coef0: float = 0.0

    positive_definite: ClassVar[bool] = False
    _ranges: ClassVar[dict[str, Range]] = {"gamma": positive, "coef0": real}

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "sigmoid", 0, self.gamma, self.coef0)


@dataclass(frozen=True)
class Manhattan(Kernel):
    """-sum_j |x_j - y_j|: a negative distance, not positive definite.

    Examples
    --------
    >>> from gristmill import Manhattan
    >>> Manhattan()([0.0, 0.0], [1.0, 2.0])
    -3.0
    """

    positive_definite: ClassVar[bool] = False

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "manhattan")


@dataclass(frozen=True)
class SquaredEuclidean(Kernel):
    """-||x - y||^2: a negative squared distance, not positive definite.

    Examples
    --------
    >>> from gristmill import SquaredEuclidean
    >>> SquaredEuclidean()([0.0, 0.0], [1.0, 2.0])
    -5.0
    """

    positive_definite: ClassVar[bool] = False

    def emit_program(self, program: list[Node]) -> int:
        return _leaf(program, "squared_euclidean")


class _Composite(Kernel):
    """A kernel made of kernels; runs in the core when all its parts do."""

    @property
    def parts(self) -> tuple[Kernel, ...]:
        raise NotImplementedError

    @property
    def is_native(self) -> bool:
        return all(part.is_native for part in self.parts)

    @property
    def positive_definite(self) -> bool:  # type: ignore[override]  # depends on the parts
        return all(part.positive_definite for part in self.parts)

    def value_of_pair(self, x: object, y: Labels) -> float:
        """The value for two objects, where a part is a Python function."""
        raise NotImplementedError

    def __call__(self, X: Any, Y: Any = None) -> Any:
        return super().__call__(X, Y) if self.is_native else _python_matrix(self, X, Y)

    def diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        return super().diagonal(X) if self.is_native else np.array([self.value_of_pair(x, x) for x in X], dtype=float)


@dataclass(frozen=True)
class Normalized(_Composite):
    """k(x, y) / sqrt(k(x, x) k(y, y)); 0 where a point has k(x, x) = 0.

    Parameters
    ----------
    base : kernel
        A negative k(x, x) is refused when it is met.

    Examples
    --------
    >>> from gristmill import Linear, Normalized
    >>> round(Normalized(Linear())([3.0, 4.0], [4.0, 3.0]), 6)
    0.96
    """

    base: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", as_kernel(self.base))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.base,)

    def emit_program(self, program: list[Node]) -> int:
        base = self.base.emit_program(program)
        program.append(("normalized", base, -1, 0, 0.0, 0.0))
        return len(program) - 1

    def value_of_pair(self, x: object, y: Labels) -> float:
        scale = self._own(x) * self._own(y)
        return pair_value(self.base, x, y) / float(np.sqrt(scale)) if scale > 0 else 0.0

    def _own(self, x: Any) -> float:
        value = pair_value(self.base, x, x)
        if value < 0:
            raise ValueError(
                f"k(x, x) = {value!r} < 0 under the kernel to be normalised, for x = {x!r}; "
                "Normalized needs a positive definite kernel"
            )
        return value


@dataclass(frozen=True)
class Sum(_Composite):
    """The sum of two kernels; written `a + b`.

    Examples
    --------
    >>> from gristmill import Linear, Polynomial
    >>> (Linear() + Polynomial(2))([1.0], [1.0])
    5.0
    """

    left: Kernel
    right: Kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.left, self.right

    def emit_program(self, program: list[Node]) -> int:
        left, right = self.left.emit_program(program), self.right.emit_program(program)
        program.append(("sum", left, right, 0, 0.0, 0.0))
        return len(program) - 1

    def value_of_pair(self, x: object, y: Labels) -> float:
        return pair_value(self.left, x, y) + pair_value(self.right, x, y)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


@dataclass(frozen=True)
class Product(_Composite):
    """The product of two kernels; written `a * b`.

    Examples
    --------
    >>> from gristmill import Linear, Polynomial
    >>> (Linear() * Polynomial(2))([2.0], [1.0])
    18.0
    """

    left: Kernel
    right: Kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.left, self.right

    def emit_program(self, program: list[Node]) -> int:
        left, right = self.left.emit_program(program), self.right.emit_program(program)
        program.append(("product", left, right, 0, 0.0, 0.0))
        return len(program) - 1

    def value_of_pair(self, x: object, y: Labels) -> float:
        return pair_value(self.left, x, y) * pair_value(self.right, x, y)

    def __repr__(self) -> str:
        shown = [f"({part!r})" if isinstance(part, Sum) else repr(part) for part in self.parts]
        return " * ".join(shown)


@dataclass(frozen=True)
class Multiple(_Composite):
    """A positive multiple of a kernel; written `2.0 * k`.

    Examples
    --------
    >>> from gristmill import Linear
    >>> (0.5 * Linear())([2.0], [3.0])
    3.0
    """

    factor: float
    base: Kernel

    _ranges: ClassVar[dict[str, Range]] = {"factor": positive}

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.base,)

    def emit_program(self, program: list[Node]) -> int:
        base = self.base.emit_program(program)
        program.append(("multiple", base, -1, 0, float(self.factor), 0.0))
        return len(program) - 1

    def value_of_pair(self, x: object, y: Labels) -> float:
        return self.factor * pair_value(self.base, x, y)

    def __repr__(self) -> str:
        shown = f"({self.base!r})" if isinstance(self.base, Sum) else repr(self.base)
        return f"{self.factor!r} * {shown}"


@dataclass(frozen=True)
class PythonKernel(Kernel):
    """Any Python function k(x, y) on any objects, as a kernel.

    Parameters
    ----------
    function : callable
        Must be symmetric and return a finite number.

    Examples
    --------
    >>> from gristmill import KernelClassifier, Perceptron, Unbounded
    >>> def shared_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> model = KernelClassifier(shared_letters, Perceptron(), Unbounded())
    >>> model.fit(["gristmill", "river", "grist"], ["mill", "water", "mill"]).n_support_
    2
    """

    function: Callable[[Any, Any], float]

    _ranges: ClassVar[dict[str, Range]] = {"function": Range("callable", callable)}

    @property
    def is_native(self) -> bool:
        return False

    def value_of_pair(self, x: object, y: Labels) -> float:
        return float(self.function(x, y))

    def __call__(self, X: Any, Y: Any = None) -> Any:
        return _python_matrix(self, X, Y)

    def diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        return np.array([self.value_of_pair(x, x) for x in X], dtype=float)

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


#: what is taken as a kernel: one of these, or any function of two objects
KernelLike = Kernel | Callable[..., float]


def pair_value(kernel: Kernel, x: object, y: Labels) -> float:
    """k(x, y) for two single objects."""
    if isinstance(kernel, PythonKernel | _Composite) and not kernel.is_native:
        return kernel.value_of_pair(x, y)
    return float(kernel(np.asarray(x, dtype=float), np.asarray(y, dtype=float)))


def _python_matrix(kernel: PythonKernel | _Composite, X: Sequence[Any], Y: Sequence[Any] | None) -> Any:
    others = X if Y is None else Y
    return np.array([[kernel.value_of_pair(x, y) for y in others] for x in X], dtype=float).reshape(len(X), len(others))


def as_kernel(kernel: object) -> Kernel:
    """A kernel object as it is; a Python function wrapped as one."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return PythonKernel(kernel)
    raise TypeError(f"kernel must be a kernel such as Gaussian(gamma=0.5) or a function k(x, y), got {kernel!r}")
