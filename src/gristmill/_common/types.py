"""Types of what the modules hand to each other: what users give, rows for a core, and what a core has to offer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: an array whose type of number does not matter
Numbers = npt.NDArray[np.generic]


class Sparse(Protocol):
    """A scipy.sparse matrix or array."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nnz(self) -> int: ...
    def tocsr(self) -> Sparse: ...
    def toarray(self) -> Numbers: ...


#: (indptr, indices, data, width)
SparseRows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Numbers, int]
#: samples as a user gives them: an array, a DataFrame, a sparse table, rows, dicts, or objects for a Python kernel
Table = npt.ArrayLike | Sparse | Sequence[object] | Mapping[str, object]
#: labels, targets, weights or None, as a user gives them
Labels = npt.ArrayLike | Sequence[object] | None
#: rows as a core takes them
Rows = npt.NDArray[np.float64] | npt.NDArray[np.float32] | SparseRows | list[object]
#: what scikit-learn takes as `random_state`
RandomState = int | np.integer | np.random.Generator | np.random.RandomState | None
#: fields of a saved state: arrays by name, the points among them as rows
State = dict[str, Numbers]
#: plain values of a model file beside its arrays, as JSON gives them back
Fitted = dict[str, Any]
#: fields of a saved state or a model file, before anything is known of their types: who takes them checks them
Fields = dict[str, Any]
#: what an estimator writes to a model file
FileFields = tuple[Fields, Fitted]
#: parameters, keyword arguments or options of a command, by name
Options = dict[str, Any]
#: an object of a JSON document: a request, an answer, a line of output, a record
Json = dict[str, Any]
#: a file or folder
FilePath = str | os.PathLike[str]
#: a function of two objects in place of a kernel
Similarity = Callable[[object, object], float]


@runtime_checkable
class Core(Protocol):
    """What every core offers to its estimator, compiled or written in Python."""

    @property
    def seen(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def is_plain(self) -> bool: ...
    def learn(
        self, rows: Rows, labels: Floats, weights: Floats | None, want_scores: bool, classes: int = 0
    ) -> Floats | None: ...
    def score(self, rows: Rows) -> tuple[Floats, int]: ...
    def state(self) -> State: ...
    def restore(self, state: State) -> None: ...


class Scaler(Protocol):
    """Scales the columns of a stream, learning their centres and spreads along the way."""

    @property
    def n_seen_(self) -> int: ...
    def learn_transform(self, X: Floats) -> Floats: ...
    def transform(self, X: Floats) -> Floats: ...
