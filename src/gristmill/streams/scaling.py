"""What a kernel wants of its inputs: comparable columns and a width that fits, found on the way."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._input import is_ready

Floats = npt.NDArray[np.float64]
_ROWS = 256  # rows scaled at a time: what is computed on the way then stays in the cache


class StreamScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Online scaling: each event by what has been seen up to and including it.

    However the stream is cut into chunks, the numbers are the same, bit for bit.

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

    n_seen_ = 0

    def __init__(self, method: str = "standard", warmup: int | None = None) -> None:
        self.method = method
        self.warmup = warmup

    def __sklearn_is_fitted__(self) -> bool:
        return self.n_seen_ > 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything and take in X."""
        self.n_seen_ = 0
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in more events."""
        self.learn_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Floats:
        """Scale X by all of X, as a batch transformer does; on a stream use `learn_transform`."""
        return self.fit(X).transform(X)

    def learn_transform(self, X: Any) -> Floats:
        """Take in events, and scale each by what was known when it came."""
        if self.method not in ("standard", "minmax"):
            raise ValueError(f"method must be 'standard' or 'minmax', got {self.method!r}")
        if self.warmup is not None and self.warmup < 1:
            raise ValueError(f"warmup must be at least 1 or None, got {self.warmup!r}")
        first = self.n_seen_ == 0
        if first or not self._takes(X):
            X = validate_data(self, X, reset=first, dtype=np.float64)
        if first:
            # Sums are taken of differences from the first event: large offsets would drown small variances.
            self._state = np.stack([X[0], np.zeros(X.shape[1]), np.zeros(X.shape[1])])
            if self.method == "minmax":
                self._state[1:] = X[0]
        return self._learn_rows(X)

    def _learn_rows(self, X: Floats) -> Floats:
        fresh = len(X) if self.warmup is None else min(len(X), max(0, self.warmup - self.n_seen_))
        scaled: Floats = np.empty_like(X)
        for start in range(0, fresh, _ROWS):
            part = slice(start, min(start + _ROWS, fresh))
            centre, spread = self._run(X[part])
            np.subtract(X[part], centre, out=scaled[part])
            scaled[part] /= spread
            self.n_seen_ += part.stop - part.start
        if fresh < len(X):
            self.n_seen_ += len(X) - fresh
            scaled[fresh:] = self._scale(X[fresh:])
        return scaled

    # For a few rows scikit-learn's checks would cost many times what the scaling does.

    def _takes(self, X: Any) -> bool:
        """Whether scikit-learn's checks would find nothing to say against X."""
        return is_ready(X, self.__dict__) and X.dtype == np.float64 and bool(np.isfinite(X).all())

    def _checked(self, rows: Floats) -> Floats:
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but StreamScaler is expecting {self.n_features_in_} features as input"
            )
        if not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise ValueError(f"Input X contains NaN or infinity: row {row}, column {column} is {rows[row, column]}")
        return rows

    def _mark(self) -> tuple[int, Floats | None]:
        """What to go back to."""
        seen = getattr(self, "n_seen_", 0)
        return seen, self._state.copy() if seen else None

    def _back(self, mark: tuple[int, Floats | None]) -> None:
        if mark[1] is None:
            self.__dict__.pop("n_seen_", None)
        else:
            self.n_seen_, self._state = mark[0], mark[1]
            self.n_features_in_ = self._state.shape[1]

    def _widen(self, first: Floats, n_seen: int) -> None:
        """Columns that come after `n_seen` events, as if each had had its first value in all of them."""
        if not getattr(self, "n_seen_", 0):
            self.n_seen_, self._state = n_seen, np.empty((3, 0))
        fresh = np.stack([first, np.zeros(len(first)), np.zeros(len(first))])
        if self.method == "minmax":
            fresh[1:] = first
        self._state = np.hstack([self._state, fresh])
        self.n_features_in_ = self._state.shape[1]

    def _run(self, X: Floats) -> tuple[Floats, Floats]:
        """Centre and spread at each event, the event included; the state moves on."""
        if self.method == "minmax":
            low = np.minimum.accumulate(np.vstack([self._state[1], X]))[1:]
            high = np.maximum.accumulate(np.vstack([self._state[2], X]))[1:]
            self._state[1:] = low[-1], high[-1]
            return low, _not_zero(high - low)
        sums = X - self._state[0]
        squares = sums * sums
        sums[0] += self._state[1]
        squares[0] += self._state[2]
        np.add.accumulate(sums, out=sums)
        np.add.accumulate(squares, out=squares)
        self._state[1:] = sums[-1], squares[-1]
        count = (self.n_seen_ + 1 + np.arange(len(X)))[:, None]
        return self._moments(sums, squares, count)

    def _moments(self, sums: Floats, squares: Floats, count: Any) -> tuple[Floats, Floats]:
        mean = sums / count
        spread = squares / count
        spread -= mean * mean
        np.maximum(spread, 0.0, out=spread)
        np.sqrt(spread, out=spread)
        mean += self._state[0]
        return mean, _not_zero(spread)

    def transform(self, X: Any) -> Floats:
        """Scale by what is known now; nothing is taken in."""
        check_is_fitted(self)
        return self._scale(X if self._takes(X) else validate_data(self, X, reset=False, dtype=np.float64))

    def _scale(self, X: Floats) -> Floats:
        if self.method == "minmax":
            return np.asarray((X - self._state[1]) / _not_zero(self._state[2] - self._state[1]))
        known = self.n_seen_ if self.warmup is None else min(self.n_seen_, self.warmup)
        centre, spread = self._moments(self._state[1], self._state[2], known)
        return np.asarray((X - centre) / spread)

    def _slope(self) -> Floats:
        """How fast each scaled column moves with the raw one, by what is known now."""
        if self.method == "minmax":
            return np.asarray(1.0 / _not_zero(self._state[2] - self._state[1]))
        known = self.n_seen_ if self.warmup is None else min(self.n_seen_, self.warmup)
        return np.asarray(1.0 / self._moments(self._state[1], self._state[2], known)[1])

    def _affine(self) -> tuple[Floats, Floats]:
        """A scaled column is (x - centre) * slope, by what is known now."""
        if self.method == "minmax":
            return self._state[1], self._slope()
        known = self.n_seen_ if self.warmup is None else min(self.n_seen_, self.warmup)
        return self._moments(self._state[1], self._state[2], known)[0], self._slope()

    @staticmethod
    def _merged(scalers: list[StreamScaler], shares: Any = None) -> StreamScaler:
        """One scaling of all that these have seen: counts and sums add up."""
        first = scalers[0]
        for at, one in enumerate(scalers):
            check_is_fitted(one)
            if (one.method, one.warmup, one.n_features_in_) != (first.method, first.warmup, first.n_features_in_):
                raise ValueError(
                    f"merge: scalings 0 and {at} differ: {first!r} of {first.n_features_in_} columns and {one!r} of "
                    f"{one.n_features_in_}"
                )
        merged = copy.deepcopy(first)
        merged.n_seen_ = sum(one.n_seen_ for one in scalers)
        if first.method == "minmax":
            merged._state[1] = np.min([one._state[1] for one in scalers], axis=0)
            merged._state[2] = np.max([one._state[2] for one in scalers], axis=0)
            return merged
        counts = [one.n_seen_ if one.warmup is None else min(one.n_seen_, one.warmup) for one in scalers]
        for one, count in zip(scalers[1:], counts[1:], strict=True):
            away = one._state[0] - first._state[0]  # sums are of differences from the first event
            merged._state[1] += one._state[1] + count * away
            merged._state[2] += one._state[2] + (2 * one._state[1] + count * away) * away
        if first.warmup is not None and merged.n_seen_ > first.warmup:  # frozen: as many events as it waits for
            merged._state[1:] *= first.warmup / sum(counts)
        return merged

    @property
    def memory_bytes(self) -> int:
        """Bytes of what was found."""
        return int(self._state.nbytes)

    # ---- part of a model file (persist.py) -----------------------------------------------------------------

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        check_is_fitted(self)
        return {"scaler_state": self._state}, {"n_seen": self.n_seen_}

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        state = np.asarray(arrays["scaler_state"], dtype=np.float64)
        if state.ndim != 2 or state.shape[0] != 3 or not np.isfinite(state).all():
            raise ValueError("its scaling is damaged")
        self._state, self.n_seen_, self.n_features_in_ = state.copy(), int(fitted["n_seen"]), state.shape[1]


def _not_zero(spread: Floats) -> Floats:
    """A column that has not moved is left where its centre puts it: at zero."""
    return spread if spread.all() else np.asarray(np.where(spread > 0, spread, 1.0))


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
