"""Scaling of columns and kernel widths, learned along the stream."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _core
from .._common.inputs import refuse_masked
from .._common.types import Fields, FileFields, Fitted

Floats = npt.NDArray[np.float64]
WIDEST = 2**24  #: columns of sparse rows that are scaled


class StreamScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Online scaling: each event by what has been seen up to and including it.

    However the stream is cut into chunks, the numbers are the same, bit for bit; a column times a power of two changes
    none of them. A value farther than 5 standard deviations from the mean counts as 5 in the running moments (after 16
    events), and is drawn in to less than 10: neither heavy tails, nor the first value that moves after many equal
    ones, take a column or a distance for themselves.

    Parameters
    ----------
    method : {"standard", "minmax"}, default="standard"
        Less the running mean, over the running standard deviation; or into [0, 1] by the smallest and largest
        so far.
    warmup : int, optional
        Freeze what was found after so many events, so that stored points and new ones are measured alike.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.streams import StreamScaler
    >>> X = np.array([[0.0], [2.0], [4.0]])
    >>> StreamScaler().learn_transform(X).ravel().round(3).tolist()
    [0.0, 1.0, 1.225]
    """

    _scaling: Any = None  # the core's; nothing is seen yet
    is_centred = True  #: not where rows came sparse
    is_affine = True  #: whether a scaled column is a straight line of the raw one, unless it is drawn in

    def __init__(self, method: str = "standard", warmup: int | None = None) -> None:
        self.method = method
        self.warmup = warmup

    @property
    def n_seen_(self) -> int:
        """How many events have come."""
        return 0 if self._scaling is None else int(self._scaling.seen)

    @property
    def core(self) -> Any:
        """The core's scaling; None before the first event."""
        return self._scaling

    def __sklearn_is_fitted__(self) -> bool:
        return self._scaling is not None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything and take in X."""
        self._scaling = None
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in more events."""
        self.learn_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Floats:
        """Scale X by all of X, as a batch transformer does; on a stream use `learn_transform`."""
        return self.fit(X).transform(X)

    def learn_transform(self, X: Any) -> Floats:
        """Learn events, and scale each by the statistics up to and including it."""
        fresh = self._fresh() if self._scaling is None else None
        refuse_masked(X, "X")
        X = validate_data(self, X, reset=fresh is not None, dtype=np.float64)
        if fresh is not None:
            fresh.widen(np.ascontiguousarray(X[0]), 0)
            self._scaling = fresh
        return self.learn_checked(X)

    def transform(self, X: Any) -> Floats:
        """Scale by what is known now; nothing is taken in."""
        check_is_fitted(self)
        refuse_masked(X, "X")
        return self.scale_checked(validate_data(self, X, reset=False, dtype=np.float64))

    def _fresh(self) -> Any:
        if self.method not in ("standard", "minmax"):
            raise ValueError(f"method must be 'standard' or 'minmax', got {self.method!r}")
        if self.warmup is not None and self.warmup < 1:
            raise ValueError(f"warmup must be at least 1 or None, got {self.warmup!r}")
        return _core.Scaling(self.method == "minmax", self.warmup)

    # ---- what a table asks: rows are finite, and as wide as they should be ---------------------------------------

    def learn_checked(self, X: Floats) -> Floats:
        scaled: Floats = self._scaling.learn(np.ascontiguousarray(X))
        return scaled

    def scale_checked(self, X: Floats) -> Floats:
        scaled: Floats = self._scaling.scale(np.ascontiguousarray(X))
        return scaled

    def learn_sparse(self, X: Any) -> Any:
        """Take in CSR rows, and divide each by what was known when it came: nothing is centred, so that zeros stay zeros."""
        if self._scaling is None:
            if X.shape[1] > WIDEST:
                raise ValueError(
                    f"scale: a scaling keeps three numbers a column, and {X.shape[1]} columns are too many; use scale=None"
                )
            self._scaling, self.is_centred, self.n_features_in_ = self._fresh(), False, int(X.shape[1])
            self._scaling.widen(np.zeros(X.shape[1]), 0)
        starts, columns, values = _plain_csr(X)
        return _with_data(X, self._scaling.learn_sparse(starts, columns, values))

    def scale_sparse(self, X: Any) -> Any:
        _, columns, values = _plain_csr(X)
        return _with_data(X, self._scaling.scale_sparse(columns, values))

    def column_slopes(self) -> Floats:
        """How fast each scaled column moves with the raw one, by what is known now."""
        if not self.is_centred:
            _, low, high = self._scaling.state()
            spread = high - low if self.method == "minmax" else np.sqrt(high / max(self.known_events(), 1))
            return np.asarray(1.0 / np.where(spread > 0, spread, 1.0))
        return np.asarray(self._scaling.slopes())

    def widen_columns(self, first: Floats, n_seen: int) -> None:
        """Columns that come after `n_seen` events, as if each had had its first value in all of them."""
        if self._scaling is None:
            self._scaling = self._fresh()
        self._scaling.widen(np.ascontiguousarray(first), n_seen)
        self.n_features_in_ = self._scaling.width

    def snapshot(self) -> Any:
        """What to go back to."""
        return None if self._scaling is None else self._scaling.copy()

    def rollback(self, mark: Any) -> None:
        if mark is None:
            self.__dict__.pop("is_centred", None)
        self._scaling = mark
        if mark is not None:
            self.n_features_in_ = mark.width

    def affine_map(self) -> tuple[Floats, Floats]:
        """A scaled column is (x - centre) * slope, by what is known now, unless it is drawn in."""
        first, low, _ = self._scaling.state()
        if not self.is_centred:
            return np.zeros(len(first)), self.column_slopes()
        return low if self.method == "minmax" else first + low / max(self.known_events(), 1), self.column_slopes()

    def unscaled_values(self, points: Floats) -> Floats:
        """Values that are scaled to these points, unless they were drawn in."""
        centre, slope = self.affine_map()
        return np.asarray(points / slope + centre)

    def scaled_values(self, values: Floats) -> Floats:
        """Values as points of this scaling."""
        return self.scale_checked(values)

    def means_fields(self) -> tuple[Floats, Floats]:
        """A typical value of each column, and the sum of differences from it."""
        first, low, _ = np.array(self._scaling.state())
        return first, low if self.method == "standard" else np.zeros(len(first))

    def known_events(self) -> int:
        """Events that count."""
        return self.n_seen_ if self.warmup is None else min(self.n_seen_, self.warmup)

    @staticmethod
    def merged_of(scalers: list[StreamScaler], shares: Any = None) -> StreamScaler:
        """One scaling of all that these have seen: counts and sums add up."""
        first = scalers[0]
        for at, one in enumerate(scalers):
            check_is_fitted(one)
            if (one.method, one.warmup, one.n_features_in_) != (first.method, first.warmup, first.n_features_in_):
                raise ValueError(
                    f"merge: scalings 0 and {at} differ: {first!r} of {first.n_features_in_} columns and {one!r} of "
                    f"{one.n_features_in_}"
                )
        states, seen = [np.array(one._scaling.state()) for one in scalers], sum(one.n_seen_ for one in scalers)
        state = states[0]
        if first.method == "minmax":
            state[1] = np.min([one[1] for one in states], axis=0)
            state[2] = np.max([one[2] for one in states], axis=0)
        else:
            counts = [one.known_events() for one in scalers]
            for other, count in zip(states[1:], counts[1:], strict=True):
                away = other[0] - state[0]  # sums are of differences from the first event
                state[1] += other[1] + count * away
                state[2] += other[2] + (2 * other[1] + count * away) * away
            if first.warmup is not None and seen > first.warmup:  # frozen: as many events as it waits for
                state[1:] *= first.warmup / sum(counts)
        merged = copy.deepcopy(first)
        merged._scaling.restore(state, seen)
        return merged

    @property
    def moments(self) -> Floats:
        """First value, and sums and squares of differences from it; or that, least and largest."""
        return np.array(self._scaling.state())

    @moments.setter
    def moments(self, state: Floats) -> None:
        self._scaling.restore(np.ascontiguousarray(state), self.n_seen_)

    @property
    def memory_bytes(self) -> int:
        """Bytes of what was found."""
        return 0 if self._scaling is None else self.bytes_for(int(self._scaling.width))

    def bytes_for(self, columns: int) -> int:
        """Bytes of what will be found of so many columns."""
        return 24 * columns

    # ---- files and copies ----------------------------------------------------------------------------------------

    def saved_fields(self) -> FileFields:
        check_is_fitted(self)
        found = self._scaling.copy()  # a consistent state, even if another thread learns
        return {"scaler_state": found.state()}, {"n_seen": found.seen, "centred": self.is_centred}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        state = np.array(arrays["scaler_state"], dtype=np.float64, order="C")
        seen = fitted["n_seen"]
        if state.ndim != 2 or type(seen) is not int or not 0 <= seen < 2**62:
            raise ValueError("its scaling is damaged")
        scaling = self._fresh()
        scaling.restore(state, seen)
        self._scaling, self.n_features_in_ = scaling, scaling.width
        self.is_centred = bool(fitted.get("centred", True))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        scaling = state.pop("_scaling", None)
        if scaling is None:
            return state
        found = scaling.copy()  # a consistent state, even if another thread learns
        return {**state, "_scaling": (found.state(), found.seen)}

    def __setstate__(self, state: Fields) -> None:
        packed = state.pop("_scaling", None)
        super().__setstate__(state)
        if packed is not None:
            self._scaling = self._fresh()
            self._scaling.restore(*packed)


def _plain_csr(X: Any) -> tuple[object, object, Floats]:
    return (
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data, dtype=np.float64),
    )


def _with_data(X: Any, data: Floats) -> Any:
    """The same places with other values."""
    from scipy.sparse import csr_array

    return csr_array((data, X.indices, X.indptr), shape=X.shape)


class WidthFinder:
    """A Gaussian's width from the data: 1 / the median squared distance of a sample of the first events.

    Parameters
    ----------
    size : int
        Events in the sample, drawn evenly from all that were seen.
    random_state : int, Generator or None

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.streams import WidthFinder
    >>> finder = WidthFinder(size=100, random_state=0).update(np.random.default_rng(0).normal(size=(1000, 8)))
    >>> round(finder.gamma, 2)
    0.07
    """

    def __init__(self, size: int = 200, random_state: Any = 0) -> None:
        if size < 2:
            raise ValueError(f"size must be at least 2, got {size!r}")
        self.size = size
        self.n_seen = 0
        self._rng = np.random.default_rng(random_state)
        self._sample: list[Any] = []

    def update(self, X: Any) -> Self:
        """Take in events, one by one, into a reservoir."""
        for row in range(X.shape[0]):
            place = self.n_seen if self.n_seen < self.size else int(self._rng.integers(self.n_seen + 1))
            if place < self.size:
                # A row with very many columns stays sparse: as numbers it might not fit into any memory.
                x = X[[row]] if hasattr(X, "tocsr") else np.asarray(X[row], dtype=float)
                self._sample[place : place + 1] = [x]
            self.n_seen += 1
        return self

    @property
    def gamma(self) -> float:
        """The width parameter; 1 / n_features if all events so far are the same."""
        if not self._sample:
            raise ValueError("no event has been seen: call update first")
        width = self._sample[0].shape[-1]
        upper = np.concatenate(_squared_distances(self._sample))
        median = float(np.median(upper)) if upper.size else 0.0
        return 1.0 / median if median > 0 else 1.0 / width


def _squared_distances(sample: list[Any]) -> list[Floats]:
    """Of each point to those after it."""
    if not hasattr(sample[0], "tocsr"):
        points = np.stack(sample)
        return [((points[place + 1 :] - x) ** 2).sum(axis=1) for place, x in enumerate(points)]
    from scipy.sparse import csr_array, vstack

    rows = csr_array(vstack(sample, format="csr"))
    # A product takes time and memory for every column: only those that occur are kept.
    used, places = np.unique(rows.indices, return_inverse=True)
    rows = csr_array((rows.data, places, rows.indptr), shape=(len(sample), max(len(used), 1)))
    products = (rows @ rows.T).toarray()
    norms = products.diagonal()
    squares = np.maximum(norms[:, None] + norms - 2 * products, 0.0)
    return [squares[place, place + 1 :] for place in range(len(sample))]
