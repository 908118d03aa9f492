"""Some objects against others: every value of a similarity that is used is computed and checked here."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.inputs import is_sparse
from ..kernels import Gaussian, Kernel, as_kernel, pair_value

Block = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


class SimilarityError(ValueError):
    """A similarity failed for two objects; the message says which, by their positions."""


def size_of(X: Any) -> int:
    """How many objects X holds."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def take(X: Any, positions: Any) -> Any:
    """Some of the objects of X, as X holds them."""
    return [X[i] for i in positions] if isinstance(X, list) else X[positions]


class Comparison:
    """A similarity, ready to compare: it knows what it takes, checks what it gives, and counts.

    Parameters
    ----------
    similarity : kernel, callable of two objects, or "precomputed"
    distance : bool
        The values are distances: they are taken with the opposite sign.
    n_jobs : int or None
        Processes (or the workers of a surrounding `joblib.parallel_config`) for a Python function.
    progress : bool
        Show a bar while a Python function is called.
    """

    def __init__(
        self, similarity: object, distance: bool = False, n_jobs: int | None = None, progress: bool = False
    ) -> None:
        if isinstance(similarity, str):
            if similarity != "precomputed":
                raise ValueError(
                    f"similarity must be a kernel, a function of two objects or 'precomputed', got {similarity!r}"
                )
            self.kernel: Kernel | None = None
        else:
            try:
                self.kernel = as_kernel(similarity)
            except TypeError:
                raise TypeError(
                    "similarity must be a kernel such as Gaussian(gamma=0.5), a function of two objects or "
                    f"'precomputed', got {similarity!r}"
                ) from None
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.evaluations = 0

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "evaluations": 0}  # predicting counts, too, and must not change what is pickled

    @property
    def takes(self) -> str:
        """What X must be: "vectors", "objects" or "precomputed" values."""
        if self.kernel is None:
            return "precomputed"
        return "vectors" if self.kernel.is_native else "objects"

    def block(self, X: Any, others: Any, positions: Positions, rows: Positions | None = None) -> Block:
        """The values of each object of X against each of `others`.

        `positions` are those of the others in the training set and `rows` those of X, without which they are
        counted from 0: errors name them.
        """
        rows = np.arange(size_of(X)) if rows is None else rows
        if self.kernel is None:
            raise TypeError("precomputed values are looked up, not compared")
        if self.kernel.is_native:
            values = np.asarray(self.kernel(*_same_kind(X, others)), dtype=np.float64)
        else:
            values = self._python_block(X, others, positions, rows)
        self.evaluations += values.size
        return self.signed(values, positions, rows)

    def signed(self, values: Block, positions: Positions, rows: Positions | None = None) -> Block:
        """Finite values, as similarities: those of a distance change their sign."""
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            row, column = bad[0]
            named = row if rows is None else rows[row]
            raise SimilarityError(_between(named, positions[column]) + f" is {values[row, column]}")
        return -values if self.distance else values

    def _python_block(self, X: list[Any], others: Sequence[object], positions: Positions, rows: Positions) -> Block:
        workers = 1 if self.n_jobs is None else self.n_jobs
        if workers == 1:
            found = [_row(self.kernel, X[i], others, positions, rows[i]) for i in self._shown(len(X))]
            return np.array(found, dtype=np.float64).reshape(len(X), len(others))
        from joblib import Parallel, delayed, effective_n_jobs

        # A few chunks a worker: each takes the landmarks along, which may be large objects.
        size = max(1, -(-len(X) // (4 * effective_n_jobs(workers))))
        begins = range(0, len(X), size)
        chunks = Parallel(n_jobs=workers)(
            delayed(_rows)(self.kernel, X[b : b + size], others, positions, rows[b : b + size])
            for b in (begins[i] for i in self._shown(len(begins)))
        )
        found = [row for chunk in chunks for row in chunk]
        return np.array(found, dtype=np.float64).reshape(len(X), len(others))

    def _shown(self, total: int) -> Iterable[int]:
        if not self.progress:
            return range(total)
        try:
            from rich.progress import track
        except ImportError as error:
            raise ImportError("progress=True needs rich: pip install 'gristmill[cli]'") from error
        return track(range(total), description="similarities")


def _same_kind(X: Any, others: Any) -> tuple[Any, Any]:
    """Both dense or both sparse, in one precision: the others, which are few, follow X."""
    if X.dtype != others.dtype:
        X, others = X.astype(np.float64), others.astype(np.float64)
    if is_sparse(others) and not is_sparse(X):
        return X, others.toarray()
    if is_sparse(X) and not is_sparse(others):
        from scipy.sparse import csr_array

        return X, csr_array(others)
    return X, others


def _between(row: int, column: int) -> str:
    return f"the similarity of object {row} and landmark {column} (position in the training set)"


def _row(kernel: Any, x: Any, others: Sequence[Any], positions: Positions, row: int) -> list[float]:
    """One object against the others, each value checked as it comes."""
    values = []
    for other, position in zip(others, positions, strict=True):
        try:
            value = kernel.function(x, other) if hasattr(kernel, "function") else pair_value(kernel, x, other)
        except Exception as error:
            raise SimilarityError(f"{_between(row, position)} raised {type(error).__name__}: {error}") from error
        values.append(_number(value, row, position))
    return values


def _rows(
    kernel: object, X: Sequence[Any], others: Sequence[Any], positions: Positions, rows: Positions
) -> list[list[float]]:
    return [_row(kernel, x, others, positions, row) for x, row in zip(X, rows, strict=True)]


def _number(value: object, row: int, position: int) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, numbers.Real | np.bool_):
        raise SimilarityError(f"{_between(row, position)} is {value!r}, which is not a number")
    number = float(value)
    if number - number != 0:
        raise SimilarityError(f"{_between(row, position)} is {number}")
    return number


class TrainingBlock:
    """The training objects against those of them that are asked for; no value is computed twice.

    Greedy selection asks for one column at a time and the fit for all chosen ones: together they cost
    objects x landmarks evaluations, never the matrix of all pairs.
    """

    def __init__(self, comparison: Comparison, X: Any) -> None:
        self.comparison_of = comparison
        self._X = X
        self._known: dict[int, Block] = {}

    @property
    def size(self) -> int:
        return size_of(self._X)

    def columns(self, positions: Any, keep: bool = True) -> Block:
        """The similarities of every training object to those at the given positions, one column each.

        Without `keep` a kernel's values are not remembered: they are cheap, and all columns may be asked for in
        the end. Those of a Python function always are.
        """
        wanted = np.asarray(positions, dtype=np.int64)
        if self.comparison_of.takes == "precomputed":
            return self.comparison_of.signed(self._X[:, wanted], wanted)
        missing = np.array([p for p in dict.fromkeys(wanted.tolist()) if p not in self._known], dtype=np.int64)
        if missing.size:
            found = self.comparison_of.block(self._X, take(self._X, missing), missing)
            if not keep and self.comparison_of.takes == "vectors" and missing.size == wanted.size:
                return found  # in the order that was asked for, since each is asked for once
            self._known.update(zip(missing.tolist(), found.T, strict=True))
        return np.stack([self._known[p] for p in wanted.tolist()], axis=1)


def default_similarity(width: int) -> Kernel:
    """The default similarity of vectors."""
    return Gaussian(1.0 / max(width, 1))
