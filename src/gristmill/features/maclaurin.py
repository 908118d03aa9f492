"""RandomMaclaurin: a short random map whose inner products are, on average, a dot-product kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _core, persist
from .._common import inputs as _input
from .._common.ranges import count, flag, one_of, optional, real
from .._common.seeds import generator
from .._common.types import Fields, FileFields, Fitted, Labels, Numbers, RandomState, Table
from ..kernels import Exponential
from ..persist.stored import StoredEstimator
from . import _degree_law as laws
from . import _domain as domain
from ._inner_maps import DrawnInner, draw_inner
from .bounds import n_components_for, truncation_error
from .compositions import Compose
from .series import Series, series_of

_SAMPLE = 256  # rows from which measure="optimal" takes its moments

#: a degree that no law of the data reaches
_HIGHEST = 4096


class DrawnMap(NamedTuple):
    """What a fitted map has drawn; the core makes the signs from the seed."""

    seed: int
    width: int  # of the inputs
    degrees: npt.NDArray[np.int32]  # of each real feature
    pair_degrees: npt.NDArray[np.int32]  # of each pair of features
    lead: tuple[float, float]  # factors of the terms of degree 0 and 1 in front
    weights: npt.NDArray[np.float64]
    pair_weights: npt.NDArray[np.float64]


class RandomMaclaurin(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StoredEstimator):
    """Random Maclaurin features: Z with E<Z(x), Z(y)> = f(<x, y>) for a kernel whose series has no negative
    term.

    A feature of degree n is sqrt(a_n / (q_n D)) times a product of n random projections of x, its degree
    drawn with probability q_n. Only degrees that the series has are drawn.

    Parameters
    ----------
    kernel : dot-product kernel or Compose, default=Exponential()
        Polynomial, Exponential, Vovk, Linear, DotProduct; sums, products and multiples of them;
        `Compose(outer, inner)`.
    n_components : int >= 1, default=100
        D, the number of random columns.
    exact_low_order : bool, default=False
        The heuristic H0/1: the terms of degree 0 and 1 are put in front exactly, as a column sqrt(a_0) and
        the inputs times sqrt(a_1) (left out where a_0 or a_1 is 0), and only degrees from 2 on are random.
    measure : {"geometric", "optimal"}, default="geometric"
        The degree law: q_n ~ p^-n, or the one that is best on average for pairs of rows of the X given to
        `fit`. The first depends on nothing but the width of X; the second is far better for kernels such as
        (1 + t)^10.
    p : float >= 1.001, default=2.0
        The ratio of the geometric law; normalised, so that the map is unbiased for every p.
    random_state : int, Generator, RandomState or None
    stratified : bool, default=True
        Give each degree a fixed number of columns instead of drawing them one by one: never worse, up to
        rounding.
    signs : {"complex", "real"}, default="complex"
        Projections with the signs 1, i, -1, -i, where a feature's real and imaginary part are two columns
        (lower variance at the same cost), or +-1. Random inner maps have no signs and do not use this.
    structured : bool, default=False
        Signed Hadamard transforms instead of independent signs: O(d + D log D) for a factor of all features
        instead of O(D d), without bias, and often with a lower variance.
    max_degree : int >= 0, optional
        Cut the series there; see `truncation_error` and `truncation_degree`.

    Attributes
    ----------
    degrees_ : array of int
        Degree of each random column.
    n_features_in_ : int

    References
    ----------
    P. Kar, H. Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012.
    J. Wacker, M. Kanagawa, M. Filippone, Improved Random Features for Dot Product Kernels, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Polynomial, RandomMaclaurin
    >>> X = np.array([[0.6, 0.8], [0.8, 0.6]])
    >>> Z = RandomMaclaurin(Polynomial(3), n_components=20000, random_state=0).fit_transform(X)
    >>> print(f"{Z[0] @ Z[1]:.1f} for {Polynomial(3)(X[0], X[1]):.1f}")
    7.4 for 7.5
    """

    def __init__(
        self,
        kernel: object = None,
        n_components: int = 100,
        exact_low_order: bool = False,
        measure: str = "geometric",
        p: float = 2.0,
        random_state: RandomState = None,
        stratified: bool = True,
        signs: str = "complex",
        structured: bool = False,
        max_degree: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.exact_low_order = exact_low_order
        self.measure = measure
        self.p = p
        self.random_state = random_state
        self.stratified = stratified
        self.signs = signs
        self.structured = structured
        self.max_degree = max_degree

    # ---- parameters ----------------------------------------------------------------------------------------

    def check_parameters(self) -> Series:
        name = type(self).__name__
        count.check(name, "n_components", self.n_components)
        for key in ("exact_low_order", "stratified", "structured"):
            flag.check(name, key, getattr(self, key))
        one_of("geometric", "optimal").check(name, "measure", self.measure)
        one_of("complex", "real").check(name, "signs", self.signs)
        real.check(name, "p", self.p)
        if not self.p >= 1.001:
            raise ValueError(f"{name}: p must be at least 1.001 (degrees average 1/(p - 1)), got {self.p!r}")
        if self.max_degree is not None and (isinstance(self.max_degree, bool) or self.max_degree != 0):
            optional(count).check(name, "max_degree", self.max_degree)
        kernel = self._kernel()
        if self._random_inner() and (self.exact_low_order or self.measure == "optimal"):
            raise ValueError(
                f"{name}: exact_low_order and measure='optimal' need the inner product "
                "itself, which a random inner map "
                f"only estimates; use them with a dot-product kernel or a fixed inner transformer"
            )
        return series_of(kernel.outer if isinstance(kernel, Compose) else kernel)

    def _kernel(self) -> Any:
        return Exponential() if self.kernel is None else self.kernel

    def _random_inner(self) -> bool:
        kernel = self._kernel()
        return isinstance(kernel, Compose) and not kernel.is_transformer()

    @property
    def uses_transformer(self) -> bool:
        """Whether a fitted transformer of another library comes first."""
        return self._transformer is not None

    def runs_in_core(self) -> bool:
        """Whether the core computes the map, without an inner map."""
        return self._inner is None and self._transformer is None

    def drawn(self) -> DrawnMap:
        """What `fit` drew, from which the core computes the map."""
        return DrawnMap(
            self._seed, self._width, self._degrees, self._pair_degrees, self._lead, self._weights, self._pair_weights
        )

    def needs_only_width(self) -> bool:
        """Whether `fit` looks only at the number of columns, so that a stream may start with any chunk."""
        kernel = self._kernel()
        return self.measure == "geometric" and not (isinstance(kernel, Compose) and kernel.is_transformer())

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Labels = None) -> Self:
        """Draw the map. Only `measure="optimal"` and inner transformers look at the values of X.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix
        y : not used
        """
        series = self.check_parameters()
        X = self._validate(X, reset=True)
        rng = generator(self.random_state)
        seed = int(rng.integers(2**63))
        kernel = self._kernel()
        self._inner: DrawnInner | None = None
        self._transformer: Any = None
        if isinstance(kernel, Compose) and kernel.is_transformer():
            self._transformer = _fitted_inner(kernel.inner, X)
            X = _as_rows(self._transformer.transform(X))
        self.kernel_ = kernel
        self._series = series
        law = self._law(series, X, rng)
        self._lead = self._lead_columns(series, X.shape[1])
        if law is None:
            if self._lead == (0.0, 0.0):
                raise ValueError(
                    f"{kernel!r} has no term of degree <= max_degree={self.max_degree!r}; raise max_degree"
                )
            drawn = laws.Draw(*(np.empty(0, dtype=t) for t in (int, float, int, float)))
        else:
            self.check_reach(X, first=True)
            if not self._random_inner():
                domain.warn_of_infinite_variance(series, law, X, self.signs == "complex")
            paired = self.signs == "complex" and not self._random_inner()
            drawn = laws.draw(law, int(self.n_components), paired, self.stratified and self.n_components > 1, rng)
        self._set_features(drawn, seed, X.shape[1])
        if self._random_inner():
            self._inner = draw_inner(kernel.inner, X.shape[1], int(self._degrees.sum()), rng)
        return self

    def _law(self, series: Series, X: Any, rng: np.random.Generator) -> laws.Law | None:
        first = 2 if self.exact_low_order else 0
        if self.measure == "geometric":
            return laws.geometric(series, float(self.p), first, self.max_degree)
        rows = X.shape[0]
        picked = np.sort(rng.choice(rows, _SAMPLE, replace=False)) if rows > _SAMPLE else np.arange(rows)
        sample = X[picked]
        sample = sample.toarray() if _input.is_sparse(sample) else sample
        self.check_reach(sample, first=True)
        moments = laws.Moments(np.asarray(sample, dtype=np.float64), self.signs == "complex")
        return laws.optimal(series, moments, first, self.max_degree, self.stratified and self.n_components > 1)

    def _lead_columns(self, series: Series, width: int) -> tuple[float, float]:
        """sqrt(a_0) and sqrt(a_1) where they go in front, exactly; 0 for none."""
        if not self.exact_low_order:
            return 0.0, 0.0
        within = self.max_degree is None or self.max_degree >= 1
        return math.sqrt(series.coefficient(0)), math.sqrt(series.coefficient(1)) if within else 0.0

    def _set_features(self, drawn: laws.Draw, seed: int, width: int) -> None:
        self._degrees = drawn.degrees.astype(np.int32)
        self._weights = np.exp(0.5 * drawn.log_weights)
        self._pair_degrees = drawn.pair_degrees.astype(np.int32)
        self._pair_weights = np.exp(0.5 * drawn.pair_log_weights)
        if not (np.isfinite(self._weights).all() and np.isfinite(self._pair_weights).all()):
            raise ValueError(f"{self.kernel_!r}: a weight of the map overflows; scale the kernel down")
        self._seed, self._width = seed, width
        self._start()

    def _start(self) -> None:
        """What follows from the drawn numbers."""
        self._maps: dict[str, object] = {}
        self.degrees_ = np.concatenate([self._degrees, self._pair_degrees, self._pair_degrees]).astype(np.int64)
        lead = (self._lead[0] > 0) + (self._width if self._lead[1] > 0 else 0)
        self._n_features_out = int(lead + len(self.degrees_))

    # ---- the domain ----------------------------------------------------------------------------------------

    def check_reach(self, X: Any, first: bool = False) -> None:
        """Refuse rows for which the series does not converge."""
        radius = self._series.radius
        if math.isinf(radius) or self.max_degree is not None:
            return
        if self._random_inner():
            seed = np.random.default_rng(0)
            inner = draw_inner(self.kernel_.inner, X.shape[1], 1, seed) if first else self._inner
            assert inner is not None
            domain.refuse_inner_outside(inner.diagonal(X), radius, self.kernel_.outer)
        else:
            domain.refuse_outside(domain.squared_norms(X), radius, self.kernel_)

    def truncation_error(self, radius: float) -> float:
        """sup |K_k - K| over inputs of norm at most `radius`, for the series cut at `max_degree`."""
        kernel = self._kernel()
        outer = kernel.outer if isinstance(kernel, Compose) else kernel
        return 0.0 if self.max_degree is None else truncation_error(outer, self.max_degree, radius)

    def n_components_for(self, epsilon: float, delta: float, n_features: int, radius: float) -> int:
        """`gristmill.n_components_for` with this map's kernel and p."""
        return n_components_for(self._kernel(), epsilon, delta, n_features, radius, p=self.p)

    # ---- transforming --------------------------------------------------------------------------------------

    def _validate(self, X: Any, reset: bool) -> Any:
        if _input.is_sparse(X) and X.dtype.kind in "iub":
            raise TypeError(
                f"X is a sparse matrix of {X.dtype}; the map works on floats: pass X.astype(np.float64) (or np.float32)"
            )
        _input.refuse_masked(X, "X")
        _input.check_sparse(X)
        # The core refuses NaN and names row and column; rows that do not reach it are checked here.
        elsewhere = reset or not self.runs_in_core()
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=elsewhere,
        )

    def transform(self, X: Table) -> npt.NDArray[np.generic]:
        """The features of each row: float32 for float32, else float64.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if self._transformer is not None:
            X = _as_rows(self._transformer.transform(X))
        self.check_reach(X)
        return self.map_columns(X)

    def map_columns(self, X: Any) -> Numbers:
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if self._inner is not None:
            return self._composed(X).astype(dtype, copy=False)
        out = np.empty((X.shape[0], self._n_features_out), dtype=dtype)
        self.core_map(dtype).transform(_input.core_rows(X, dtype is np.float32, False), out)
        constant, linear = self._lead
        if constant > 0:
            out[:, 0] = constant
        if linear > 0:
            at = int(constant > 0)
            dense = X.toarray() if _input.is_sparse(X) else X
            out[:, at : at + self._width] = dtype(linear) * dense
        return out

    def core_map(self, dtype: npt.DTypeLike) -> Any:
        key = np.dtype(dtype).name
        if key not in self._maps:
            kind = _core.MaclaurinMap32 if key == "float32" else _core.MaclaurinMap64
            self._maps[key] = kind(
                self._width,
                self._degrees,
                self._weights,
                self._pair_degrees,
                self._pair_weights,
                bool(self.structured),
                self._seed,
            )
        return self._maps[key]

    def _composed(self, X: Any) -> npt.NDArray[np.float64]:
        """Products of one-feature maps: all first factors, then all second ones, ..."""
        assert self._inner is not None
        factors = self._inner.values(X)
        out = np.broadcast_to(self._weights, (X.shape[0], len(self._weights))).copy()
        start = 0
        for level in range(1, int(self._degrees.max(initial=0)) + 1):
            reached = int(np.sum(self._degrees >= level))
            out[:, :reached] *= factors[:, start : start + reached]
            start += reached
        return out

    # ---- gradients -----------------------------------------------------------------------------------------

    def map_gradient(self, X: Any, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How sums of the columns by weights, (outputs, columns) or (rows, outputs, columns), change with X."""
        if self._transformer is not None:
            raise TypeError(f"gradient: {self._transformer!r} is a map of another library, whose gradient is unknown")
        if self._inner is not None:
            return self._composed_gradient(X, weights)
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        lead = self._n_features_out - len(self.degrees_)
        random = np.ascontiguousarray(weights[..., lead:])
        found = np.asarray(self.core_map(dtype).gradient(_input.core_rows(X, dtype is np.float32, False), random))
        constant, linear = self._lead
        if linear > 0:
            found += linear * weights[..., int(constant > 0) : lead]
        return found

    def _composed_gradient(self, X: Any, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Product rule: each factor in turn is replaced by its derivative."""
        assert self._inner is not None
        factors = self._inner.values(X)[:, None, :]
        rows, outputs = X.shape[0], weights.shape[-2]
        before = np.broadcast_to(weights * self._weights, (rows, outputs, len(self._weights))).copy()
        counts = [int(np.sum(self._degrees >= level)) for level in range(1, int(self._degrees.max(initial=0)) + 1)]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        rest = np.empty((rows, outputs, int(starts[-1])))
        for start, reached in zip(starts, counts, strict=False):
            rest[..., start : start + reached] = before[..., :reached]
            before[..., :reached] *= factors[..., start : start + reached]
        after = np.ones((rows, 1, len(self._weights)))
        for start, reached in zip(starts[-2::-1], counts[::-1], strict=True):
            rest[..., start : start + reached] *= after[..., :reached]
            after[..., :reached] *= factors[..., start : start + reached]
        return self._inner.pull(X, rest)

    # ---- saving --------------------------------------------------------------------------------------------

    def saved_fields(self) -> FileFields:
        check_is_fitted(self)
        if self._transformer is not None:
            raise TypeError(
                "a map over a transformer of another library cannot be saved without code; pickle it instead"
            )
        arrays = {
            "degrees": self._degrees,
            "weights": self._weights,
            "pair_degrees": self._pair_degrees,
            "pair_weights": self._pair_weights,
            "seed": np.array([self._seed], dtype=np.uint64),
            "lead": np.array(self._lead),
        }
        fitted = persist.encode_features(self)
        if self._inner is not None:
            inner_arrays, fitted["inner"] = self._inner.to_file()
            arrays |= {f"inner.{name}": value for name, value in inner_arrays.items()}
        return arrays, fitted

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        self._series = self.check_parameters()
        self.kernel_ = self._kernel()
        persist.decode_features(self, fitted)
        self._width = self.n_features_in_
        self._degrees = _checked_array(arrays, "degrees", np.int32)
        self._pair_degrees = _checked_array(arrays, "pair_degrees", np.int32)
        self._weights = _checked_array(arrays, "weights", np.float64)
        self._pair_weights = _checked_array(arrays, "pair_weights", np.float64)
        self._seed = int(_checked_array(arrays, "seed", np.uint64)[0])
        constant, linear = _checked_array(arrays, "lead", np.float64)
        self._lead = (float(constant), float(linear))
        self._transformer = None
        self._inner = None
        if self._random_inner():
            inner = {name[6:]: value for name, value in arrays.items() if name.startswith("inner.")}
            self._inner = DrawnInner.from_file(self.kernel_.inner, inner, fitted["inner"])
        self._check_degrees()
        self._start()

    def _check_degrees(self) -> None:
        """The signs are drawn at the first transform, as many as the degrees say: so these must be likely ones."""
        likely = 64 + 64 / (self.p - 1) if self.measure == "geometric" else _HIGHEST
        for degrees, weights in ((self._degrees, self._weights), (self._pair_degrees, self._pair_weights)):
            falls = bool(np.all(np.diff(degrees) <= 0))  # highest first
            within = len(degrees) == 0 or 0 <= degrees.min() <= degrees.max() <= likely
            if not falls or not within or len(degrees) != len(weights):
                raise persist.ModelFileError("its array 'degrees' is damaged")

    def __getstate__(self) -> dict[str, object]:
        state = dict(super().__getstate__())
        for name in ("_maps", "_series"):  # rebuilt from the rest
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        if "_degrees" in self.__dict__:
            self._series = self.check_parameters()
            self._maps = {}

    def __sklearn_is_fitted__(self) -> bool:
        return "_n_features_out" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _checked_array(arrays: Mapping[str, object], name: str, dtype: object) -> npt.NDArray[Any]:
    array = np.ascontiguousarray(arrays[name])
    if array.dtype != dtype or array.ndim != 1 or not np.isfinite(array).all():
        raise persist.ModelFileError(f"its array {name!r} is damaged")
    return array


def _as_rows(X: Any) -> Any:
    if _input.is_sparse(X):
        return X.tocsr()
    X = np.asarray(X)
    return X if X.dtype == np.float32 else X.astype(np.float64, copy=False)


def _fitted_inner(inner: object, X: Table) -> Any:
    from sklearn.exceptions import NotFittedError

    try:
        check_is_fitted(inner)
        return inner
    except NotFittedError:
        return clone(inner).fit(X)
