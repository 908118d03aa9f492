"""A learner with what its inputs need: the scaling, and the columns of the table it was trained on."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from . import persist
from .streams.columns import Columns
from .streams.scaling import StreamScaler


class Prepared(BaseEstimator):
    """A learner behind an online scaler; saved, loaded and cut into chunks as one.

    Parameters
    ----------
    model : learner of gristmill
    scale : {"standard", "minmax"} or None, default="standard"
        Each event is scaled by what was seen up to and including it, then learned.
    warmup : int, optional
        The scaling is frozen after so many events; never otherwise.

    Attributes
    ----------
    model_ : the fitted learner
    scaler_ : StreamScaler, or None
    columns_ : Columns, or None
        How a table becomes X, where the command line or a reader of files has settled it.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, Prepared, passive_aggressive
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)) * [1.0, 1000.0]
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = Prepared(passive_aggressive(Gaussian(1.0), size=100))
    >>> scores = model.prequential(X, y)
    >>> round(float(((scores >= 0) != y).mean()), 2)
    0.09
    """

    def __init__(self, model: Any, scale: str | None = "standard", warmup: int | None = None) -> None:
        self.model = model
        self.scale = scale
        self.warmup = warmup

    # ---- learning
    # -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order."""
        before = dict(self.__dict__)
        self._reset()
        try:
            return self.partial_fit(X, y)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _reset(self) -> None:
        for name in ("model_", "scaler_", "columns_"):
            self.__dict__.pop(name, None)

    def partial_fit(self, X: Any, y: Any = None, **known: Any) -> Self:
        """Go on learning from X, y, in order."""
        self._learn("partial_fit", X, y, known)
        return self

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Any:
        """Learn as `partial_fit` does, and return what was said of each event before it was learned."""
        return self._learn("prequential", X, y, {} if classes is None else {"classes": classes})

    def _learn(self, verb: str, X: Any, y: Any, known: dict[str, Any]) -> Any:
        if "model_" not in self.__dict__:
            self.model_ = clone(self.model)
            self.scaler_ = None if self.scale is None else StreamScaler(self.scale, self.warmup)
        began = self._has_seen()
        before = self.scaler_._mark() if began and self.scaler_ is not None else None
        try:
            return getattr(self.model_, verb)(self._taken_in(X), y, **known)
        except BaseException:
            if before is not None and self.scaler_ is not None:
                self.scaler_._back(before)
            if not began:
                self._reset()
            raise

    def _has_seen(self) -> bool:
        return "model_" in self.__dict__ and "_core" in self.model_.__dict__

    def _taken_in(self, X: Any) -> Any:
        if self.scaler_ is None:
            return X
        if hasattr(X, "tocsr"):
            raise TypeError("scale: sparse rows cannot be centred without losing their zeros; use scale=None")
        if self._has_seen() and type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X):
            return self.scaler_._learn_rows(self.scaler_._checked(X))
        return self.scaler_.learn_transform(X)

    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one event."""
        row = np.asarray(x, dtype=float).reshape(1, -1)
        if not self._has_seen() or self.scaler_ is None:
            self.partial_fit(row, None if y is None else np.array([y]))
            return
        before = self.scaler_._mark()
        try:
            self.model_.learn_one(self.scaler_._learn_rows(self.scaler_._checked(row))[0], y)
        except BaseException:
            self.scaler_._back(before)
            raise

    # ---- answers
    # ------------------------------------------------------------------------------------------------

    def _scaled(self, X: Any) -> Any:
        if not self._has_seen():
            raise NotFittedError("This Prepared instance is not fitted yet: call fit, partial_fit or learn_one first")
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def predict(self, X: Any) -> Any:
        """What the learner predicts of each event, scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.predict(scaled)

    def decision_function(self, X: Any) -> Any:
        """The learner's scores of each event, scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.decision_function(scaled)

    def predict_one(self, x: Any) -> Any:
        """What the learner predicts of one event."""
        return self.model_.predict_one(self._scaled_one(x))

    def score_one(self, x: Any) -> Any:
        """The learner's score of one event."""
        return self.model_.score_one(self._scaled_one(x))

    def _scaled_one(self, x: Any) -> Any:
        row = np.asarray(x, dtype=float).reshape(1, -1)
        if not self._has_seen() or self.scaler_ is None:
            return self._scaled(row)[0]
        return self.scaler_._scale(self.scaler_._checked(row))[0]

    @property
    def _task(self) -> str:
        return str(self.model._task)

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the learner and the scaling keep."""
        scaling = 0 if self.scaler_ is None else self.scaler_._state.nbytes
        return int(self.model_.memory_bytes_) + scaling

    def __getattr__(self, name: str) -> Any:
        # What was learned is the learner's: n_support_, classes_, n_seen_, margin_ ...
        if name.endswith("_") and not name.startswith("_") and "model_" in self.__dict__:
            return getattr(self.model_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_seen()

    def __sklearn_tags__(self) -> Any:
        tags = self.model.__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.sparse and self.scale is None
        return tags

    # ---- saving
    # -------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write learner, scaling and columns to one file that holds no code; see `gristmill.load`."""
        persist.save(self, path)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if not self._has_seen():
            raise NotFittedError("This Prepared instance is not fitted yet: there is nothing to save")
        arrays, fitted = self.model_._to_file()
        together = {f"model.{name}": array for name, array in arrays.items()}
        plain: dict[str, Any] = {"model": fitted}
        if self.scaler_ is not None:
            found, plain["scaler"] = self.scaler_._to_file()
            together |= found
        columns = self.__dict__.get("columns_")
        if columns is not None:
            plain["columns"] = columns.to_json()
        return together, plain

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        self.model_ = clone(self.model)
        inner = {name.removeprefix("model."): a for name, a in arrays.items() if name.startswith("model.")}
        self.model_._from_file(inner, fitted["model"])
        self.scaler_ = None
        if self.scale is not None:
            self.scaler_ = StreamScaler(self.scale, self.warmup)
            self.scaler_._from_file(arrays, fitted["scaler"])
            if self.scaler_.n_features_in_ != self.model_.n_features_in_:
                raise persist.ModelFileError("its scaling does not fit its points")
        if "columns" in fitted:
            self.columns_ = Columns.from_json(fitted["columns"])
            if len(self.columns_.out_names) != self.model_.n_features_in_:
                raise persist.ModelFileError("its columns do not fit its points")
