"""A map followed by the core's linear learner, behind the verbs of the core's kernel learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from .. import _core
from .._common.labels import wide
from .._common.positions import part_of
from .._common.types import Fields, Table
from .maclaurin import RandomMaclaurin

_SLICE = 1024  # rows mapped at a time: memory does not grow with the length of a chunk

#: transformers of scikit-learn whose fit looks at nothing but the number of columns
_STATELESS = {
    "RBFSampler", "SkewedChi2Sampler", "AdditiveChi2Sampler", "PolynomialCountSketch", "PolynomialFeatures",
    "Normalizer", "FunctionTransformer", "Binarizer", "GaussianRandomProjection", "SparseRandomProjection",
}  # fmt: skip


def stateless(map_: object) -> bool:
    """Whether fitting the map needs only the number of columns."""
    if isinstance(map_, RandomMaclaurin):
        return map_.needs_only_width()
    if isinstance(map_, Pipeline):
        return all(step in (None, "passthrough") or stateless(step) for _, step in map_.steps)
    return type(map_).__name__ in _STATELESS


class MappedCore:
    """Stands where the estimators expect a core: rows in, mapped slice by slice, learned event by event."""

    is_sparse = False

    def __init__(
        self, map_: Any, width: int, rule: object, task: str, single: bool, average: bool, balanced: bool = False
    ) -> None:
        self.map, self.width, self.is_single = map_, width, single
        self.is_plain = not single  # a vector of doubles may come in as it is
        if isinstance(map_, RandomMaclaurin):
            mapped = map_._n_features_out
        else:
            mapped = self._mapped(np.zeros((1, width), dtype=np.float32 if single else np.float64)).shape[1]

        def fresh() -> Any:
            core = _core.WeightLearner(width=mapped, rule=rule, task=task, average=average)
            if balanced:
                core.balance_classes()
            return core

        self._fresh: Callable[[], Any] = fresh
        self.linear = self._fresh()

    def __getattr__(self, name: str) -> Any:
        # outputs, classes, seen, norm2, margin, coef(), intercept(), rule_state(): those of the weights
        return getattr(self.linear, name)

    # ---- rows ----------------------------------------------------------------------------------------------

    def _mapped(self, X: Table) -> npt.NDArray[np.generic]:
        if isinstance(self.map, RandomMaclaurin) and not self.map.uses_transformer:
            return self.map.map_columns(X)
        Z = self.map.transform(X)
        Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
        return np.ascontiguousarray(Z, dtype=np.float32 if Z.dtype == np.float32 else np.float64)

    def _as_table(self, rows: object) -> Any:
        if not isinstance(rows, tuple):
            return rows
        from scipy.sparse import csr_array

        indptr, indices, data, width = rows
        return csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))

    def check(self, rows: Any) -> None:
        """Validate all rows before anything is learned."""
        X = self._as_table(rows)
        if X.shape[1] != self.width:
            raise ValueError(f"X has {X.shape[1]} features, but the model was started with {self.width}")
        values = X.data if isinstance(rows, tuple) else X
        if not np.isfinite(values).all():
            dense = X.toarray() if isinstance(rows, tuple) else X
            row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(dense)))
            value = dense[row, column]
            kind = "NaN" if np.isnan(value) else "infinity"
            raise ValueError(
                f"Input X contains {kind}: row {row}, column {column} is {value}; impute or drop such rows first"
            )
        if isinstance(self.map, RandomMaclaurin) and not self.map.uses_transformer:
            self.map.check_reach(X)

    # ---- learning and scoring ------------------------------------------------------------------------------

    def learn(self, rows: Any, labels: Any, weights: Any, want_scores: bool, classes: int = 0) -> Any:
        self.check(rows)
        X = self._as_table(rows)
        count = X.shape[0]
        if count <= _SLICE:
            return self.linear.learn(self._mapped(X), labels, weights, want_scores, classes)
        twin = self._fresh()  # kept when all slices went well
        twin.restore(self.linear.state())
        scores: list[Any] = []
        for at in range(0, count, _SLICE):
            here = slice(at, min(at + _SLICE, count))
            some = part_of(weights, here)
            scores.append(twin.learn(self._mapped(X[here]), labels[here], some, want_scores, classes))
        self.linear = twin
        return np.concatenate([wide(part, twin.outputs) for part in scores]) if want_scores else None

    def score(self, rows: Any) -> tuple[Any, int]:
        self.check(rows)
        X = self._as_table(rows)
        slices = range(0, X.shape[0], _SLICE)
        parts = [self.linear.score(self._mapped(X[at : at + _SLICE])) for at in slices]
        classes = parts[0][1]  # a class that comes in between has no scores in the first slices
        if any(part[1] != classes for part in parts):
            return self.score(rows)
        return np.concatenate([part[0] for part in parts]), classes

    def gradient(self, rows: object) -> tuple[Any, int]:
        """How the scores change with the columns, (rows, outputs, columns), and how many classes there were."""
        if not isinstance(self.map, RandomMaclaurin):
            raise TypeError(
                f"gradient: {self.map!r} is a map of another library, whose gradient is unknown; "
                "RandomMaclaurin has gradients"
            )
        self.check(rows)
        X, linear = self._as_table(rows), self.linear
        classes, weights = linear.classes, linear.coef()
        slices = range(0, X.shape[0], _SLICE)
        parts = [self.map.map_gradient(X[at : at + _SLICE], weights) for at in slices]
        return np.concatenate(parts), classes

    def learn_one(self, x: object, label: float, weight: float) -> None:
        self.linear.learn(self._mapped(self._one(x)), np.array([float(label)]), np.array([weight]), False)

    def score_one(self, x: object) -> float | None:
        scores, _ = self.linear.score(self._mapped(self._one(x)))
        return float(scores[0, 0]) if scores.shape[1] == 1 else None

    def _one(self, x: object) -> Any:
        row = np.ascontiguousarray(x, dtype=np.float64).reshape(1, -1)
        if isinstance(self.map, RandomMaclaurin) and self.map.runs_in_core():
            self.map.check_reach(row)  # width and NaN are refused by the map itself
        else:
            self.check(row)
        return row

    # ---- what the estimators ask of a core -----------------------------------------------------------------

    @property
    def memory_bytes(self) -> int:
        map_bytes = 0
        if isinstance(self.map, RandomMaclaurin) and self.map.runs_in_core():
            map_bytes = self.map.core_map(np.float32 if self.is_single else np.float64).memory_bytes
        return int(self.linear.memory_bytes + map_bytes)

    def state(self) -> Fields:
        state = dict(self.linear.state())
        state["coef"] = state.pop("weights")
        # No points are stored; the empty table carries the number and the type of the inputs.
        state["points"] = np.empty((0, self.width), dtype=np.float32 if self.is_single else np.float64)
        return state

    def restore(self, state: Mapping[str, object]) -> None:
        arrays = {name: value for name, value in state.items() if name != "points"}
        arrays["weights"] = arrays.pop("coef")
        self.linear.restore(arrays)
