"""What the pairwise learners share: a core that meets events in order, behind scikit-learn's verbs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from .. import _input, persist
from .._base import _generator
from .._validate import Range

Array = npt.NDArray[np.float64]

_FITTED = ("_core", "_codes", "classes_", "n_features_in_", "feature_names_in_")


class PairStreamLearner(BaseEstimator):
    """Base of the pairwise learners; a subclass makes its core and says what its scores mean."""

    #: how many classes there may be
    _most_classes: int | None = None

    def _make_core(self, width: int, seed: int) -> Any:
        """A fresh core; parameters out of range, or that do not go together, are refused here."""
        raise NotImplementedError

    def _check_range(self, name: str, range_: Range) -> Any:
        value = getattr(self, name)
        range_.check(type(self).__name__, name, value)
        return value

    # ---- state -------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_core" in self.__dict__

    def _fitted(self) -> Any:
        try:
            return self.__dict__["_core"]
        except KeyError:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            ) from None

    def _reset(self) -> None:
        for name in _FITTED:
            self.__dict__.pop(name, None)

    # ---- input -------------------------------------------------------------------------------------------

    def _rows(self, X: Any, first: bool) -> Any:
        X = validate_data(self, X, reset=first, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
        return np.ascontiguousarray(X.toarray() if _input.is_sparse(X) else X)

    def _row(self, x: Any) -> Any:
        return x if _input.is_sparse(x) else np.asarray(x, dtype=np.float64).reshape(1, -1)

    def _labels(self, y: Any, count: int) -> Array:
        """Labels as numbers in the order in which they were first met."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        y = column_or_1d(y, warn=True)
        check_consistent_length(np.empty(count), y)
        owner = type(self).__name__
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise ValueError(f"{owner}: row {row}: the label is {y[row]}; labels must be finite or text")
        try:
            check_classification_targets(y)
            found, places, numbers = np.unique(y, return_index=True, return_inverse=True)
        except TypeError as error:
            raise ValueError(
                f"{owner}: the labels in y must be of one kind, all numbers or all text: {error}"
            ) from None
        codes = dict(self.__dict__.get("_codes", {}))
        names = found.tolist()
        for k in np.argsort(places):
            codes.setdefault(names[k], len(codes))
        if self._most_classes is not None and len(codes) > self._most_classes:
            raise ValueError(
                f"{type(self).__name__} is for two classes. Only binary classification is supported: "
                f"y holds {len(codes)} classes, {list(codes)!r}; learn one against the rest instead"
            )
        known = self.__dict__.get("classes_")
        self._codes = codes
        if known is None or len(codes) > len(known):
            self.classes_ = np.unique(np.array(list(codes), dtype=found.dtype if known is None else None))
        return np.array([codes[name] for name in names], dtype=np.float64)[numbers]

    def _numbers(self, codes: Array) -> Array:
        """Class numbers as the core takes them."""
        return codes

    # ---- learning ----------------------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, want_scores: bool, fresh: bool = False) -> Any:
        """One pass in order. Everything is checked, and on any error undone, before it is kept."""
        before = dict(self.__dict__)
        if fresh:
            self._reset()
        try:
            first = "_core" not in self.__dict__
            rows = self._rows(X, first)
            labels = self._numbers(self._labels(y, len(rows)))
            if first:
                seed = int(_generator(getattr(self, "random_state", None)).integers(2**63))
                self._core = self._make_core(0 if isinstance(rows, list) else rows.shape[1], seed)
            return self._core.learn(rows, labels, want_scores)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn from X, y in one pass, in order.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        y : class labels
        """
        self._learn(X, y, want_scores=False, fresh=True)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Go on learning from X, y, in order; cutting a stream into chunks in any way gives the same model.

        `classes` is accepted for scikit-learn's sake; new ones may arrive at any time.
        """
        self._learn(X, y, want_scores=False)
        return self

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one event."""
        self._learn(self._row(x), np.array([y]), want_scores=False)

    # ---- fitted attributes -------------------------------------------------------------------------------

    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = self._fitted().report()
        return report

    @property
    def n_seen_(self) -> int:
        """How many events have come."""
        return int(self._report()["seen"])

    @property
    def n_pairs_(self) -> int:
        """How many pairs that can teach something have been met; 0 while only one class has come."""
        return int(self._report()["pairs"])

    @property
    def buffer_ids_(self) -> npt.NDArray[np.int64]:
        """Place in the stream, from 0, of each event in the buffer; an event may be there more than once."""
        ids: npt.NDArray[np.int64] = self._report()["ids"]
        return ids

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the model keeps; they do not grow with the stream."""
        return int(self._fitted().memory_bytes)

    # ---- saving ------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to a file that holds numbers and parameters, and no code; see `gristmill.load`."""
        persist.save(self, path)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        state = self._fitted().state()
        if isinstance(state.get("points"), list):
            raise TypeError("a model over Python objects cannot be saved without code; pickle it instead")
        fitted = {
            "width": int(self._core.width),
            "n_features_in": int(self.n_features_in_),  # before a map, if there is one
            **persist.encode_labels(list(self._codes), self.classes_.dtype),
        }
        if hasattr(self, "feature_names_in_"):
            fitted["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        return state, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        labels, self.classes_ = persist.decode_labels(fitted)
        self._codes = {label: code for code, label in enumerate(labels)}
        width = fitted["width"]
        if not isinstance(width, int) or not 1 <= width <= 10**7:
            raise persist.ModelFileError(f"it states {width!r} features")
        self.n_features_in_ = int(fitted["n_features_in"])
        if self.n_features_in_ < 1 or (self.n_features_in_ != width and getattr(self, "features", None) is None):
            raise persist.ModelFileError("its points do not have the number of features it states")
        self._restore(arrays, width)
        if "feature_names_in" in fitted:
            self.feature_names_in_ = np.array([str(name) for name in fitted["feature_names_in"]], dtype=object)

    def _restore(self, state: dict[str, Any], width: int) -> None:
        self._core = self._make_core(width, 0)
        ready = {
            name: value if isinstance(value, list) else np.ascontiguousarray(value) for name, value in state.items()
        }
        self._core.restore(ready)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        core = state.pop("_core", None)
        if core is not None:
            state["_core"] = (core.state(), core.width)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.pop("_core", None)
        super().__setstate__(state)
        if packed is not None:
            self._restore(*packed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
