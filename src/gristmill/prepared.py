"""A learner with what its inputs need: the scaling, and the columns of the table it was trained on."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from . import persist
from ._nested import NestedParameters
from ._storable import Storable
from ._validate import count, one_of, optional
from .streams import relevance
from .streams.columns import Columns
from .streams.scaling import StreamScaler


def _as_the_model_has(method: Any) -> Any:
    """A verb that is there where the learner has it."""
    return available_if(lambda prepared: hasattr(prepared.model, method.__name__))(method)


class Prepared(Storable, NestedParameters):
    """A learner behind an online scaler; saved, loaded and cut into chunks as one.

    Parameters
    ----------
    model : learner of gristmill
    scale : {"standard", "minmax", "relevance"} or None, default="standard"
        Each event is scaled by what was seen up to and including it, then learned. "relevance" standardises too, and
        gives each column a weight by how much it moves what the kernel learner has learned: after 500 events, 1000, 2000,
        ... the weights are renewed and the coefficients learned anew from the stored points.
    warmup : int, optional
        The scaling is frozen after so many events; never otherwise.

    Attributes
    ----------
    model_ : the fitted learner
    scaler_ : StreamScaler, RelevanceScaler, or None
    relevance_ : array, with scale="relevance"
        How much each standardised column moves the answer: its share in the mean square of the gradient.
    relevance_history_ : tuple of Renewal, with scale="relevance"
        Position in the stream, shares, and whether the weights followed, of each time they were looked at.
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
    0.05
    """

    def __init__(self, model: Any, scale: str | None = "standard", warmup: int | None = None) -> None:
        self.model = model
        self.scale = scale
        self.warmup = warmup

    _began: _Begun | None = None  # nothing is learned yet

    # ---- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order."""
        self._learn("partial_fit", X, y, {}, fresh=True)
        return self

    def partial_fit(self, X: Any, y: Any = None, **known: Any) -> Self:
        """Go on learning from X, y, in order."""
        self._learn("partial_fit", X, y, known)
        return self

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Any:
        """Learn as `partial_fit` does, and return what was said of each event before it was learned."""
        return self._learn("prequential", X, y, {} if classes is None else {"classes": classes})

    @_as_the_model_has
    def prequential_interval(self, X: Any, y: Any, coverage: float = 0.9) -> Any:
        """Learn as `partial_fit` does, and return the interval that was said of each event before it was learned."""
        return self._learn("prequential_interval", X, y, {"coverage": coverage})

    def _learn(self, verb: str, X: Any, y: Any, known: dict[str, Any], fresh: bool = False) -> Any:
        self._check_parameters()
        began = None if fresh else self._began
        if began is not None:
            self._refuse_changed("learning on")
        if began is None:
            began = _Begun(clone(self.model), self._fresh_scaler())
            began.model._columns = 0  # as many as there are, and none comes as it is
        before = None if fresh or self._began is None else began.mark()
        try:
            said = began.learn(verb, X, y, known)
        except BaseException:
            began.back(before)
            raise
        if fresh:
            self.__dict__.pop("columns_", None)
            self.__dict__.pop("_changed", None)
        self._began = began
        return said

    def _fresh_scaler(self) -> Any:
        if self.scale == "relevance":
            return relevance.RelevanceScaler(self.warmup)
        return None if self.scale is None else StreamScaler(self.scale, self.warmup)

    def _go_on(self, model: Any, scaler: Any) -> None:
        """Be what has learned already, elsewhere."""
        self._began = _Begun(model, scaler)

    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one event."""
        began = self._began
        if began is None or not began.scales_alone():
            self.partial_fit(_row(x), None if y is None else [y])
            return
        self._refuse_changed("learning on")
        before = began.mark()
        try:
            began.model.learn_one(began.taken_in(_row(x))[0], y)
        except BaseException:
            began.back(before)
            raise

    # ---- answers -------------------------------------------------------------------------------------------

    def _started(self) -> _Begun:
        if self._began is None:
            raise NotFittedError("This Prepared instance is not fitted yet: call fit, partial_fit or learn_one first")
        return self._began

    def _scaled(self, X: Any) -> Any:
        scaler = self._started().scaler
        return X if scaler is None else scaler.transform(X)

    @_as_the_model_has
    def predict(self, X: Any) -> Any:
        """What the learner predicts of each event, scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.predict(scaled)

    @_as_the_model_has
    def decision_function(self, X: Any) -> Any:
        """The learner's scores of each event, scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.decision_function(scaled)

    @_as_the_model_has
    def predict_proba(self, X: Any) -> Any:
        """The learner's probability of each class, of each event scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.predict_proba(scaled)

    @_as_the_model_has
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of `predict_proba`."""
        scaled = self._scaled(X)
        return self.model_.predict_log_proba(scaled)

    @_as_the_model_has
    def predict_proba_one(self, x: Any) -> Any:
        """The learner's probability of each class for one event; nothing before anything was learned."""
        return self._answer_one("predict_proba_one", x)

    @_as_the_model_has
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """The learner's interval for each event, scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.predict_interval(scaled, coverage)

    @_as_the_model_has
    def predict_interval_one(self, x: Any, coverage: float = 0.9) -> Any:
        """The learner's interval for one event; everything is possible before anything was learned."""
        return self._answer_one("predict_interval_one", x, coverage)

    @_as_the_model_has
    def explain(self, x: Any, top: int | None = 10) -> Any:
        """Why the learner says what it says of one event, scaled by what is known now."""
        scaled = self._scaled(_row(x))
        return self.model_.explain(scaled[0], top)

    @_as_the_model_has
    def score_samples(self, X: Any) -> Any:
        """How familiar the learner finds each event, scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.score_samples(scaled)

    @_as_the_model_has
    def transform(self, X: Any) -> Any:
        """What the learner makes of each event, scaled by what is known now."""
        scaled = self._scaled(X)
        return self.model_.transform(scaled)

    @_as_the_model_has
    def score(self, X: Any, y: Any) -> float:
        """The learner's own measure: accuracy of classes, R^2 of numbers."""
        scaled = self._scaled(X)
        return float(self.model_.score(scaled, y))

    @_as_the_model_has
    def gradient(self, X: Any) -> Any:
        """How the scores change with each column as it came, before any scaling: d f / d x at each event."""
        began = self._started()
        found = began.model.gradient(self._scaled(X))
        return found if began.scaler is None else found * began.scaler._slope()

    def predict_one(self, x: Any) -> Any:
        """What the learner predicts of one event; before anything was learned, what it says then."""
        return self._answer_one("predict_one", x)

    def score_one(self, x: Any) -> Any:
        """The learner's score of one event; before anything was learned, what it says then."""
        return self._answer_one("score_one", x)

    def _answer_one(self, verb: str, x: Any, *asked: Any) -> Any:
        began = self._began
        if began is None:
            return getattr(self.model, verb)(x, *asked)
        if began.scaler is None:
            return getattr(began.model, verb)(x, *asked)
        return getattr(began.model, verb)(began.scaler._scale(began.scaler._checked(_row(x)))[0], *asked)

    @property
    def model_(self) -> Any:
        """The fitted learner."""
        return self._started().model

    @property
    def scaler_(self) -> Any:
        """The scaling, or None."""
        return self._started().scaler

    @property
    def relevance_(self) -> Any:
        """How much each standardised column moves the answer: shares that add up to 1."""
        return self._weighed().shares

    @property
    def relevance_history_(self) -> tuple[relevance.Renewal, ...]:
        """What was found each time the columns were looked at, oldest first."""
        return self._weighed().history

    def _weighed(self) -> relevance.RelevanceScaler:
        if self._began is None or not isinstance(self._began.scaler, relevance.RelevanceScaler):
            raise AttributeError('relevance_ is there with scale="relevance", once something was learned')
        return self._began.scaler

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the learner and the scaling keep."""
        began = self._started()
        scaling = 0 if began.scaler is None else began.scaler.memory_bytes
        return int(began.model.memory_bytes_) + scaling

    def __getattr__(self, name: str) -> Any:
        # What was learned is the learner's: n_support_, classes_, n_seen_, margin_ ...
        if name.endswith("_") and not name.startswith("_") and self._began is not None:
            return getattr(self._began.model, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return self._began is not None

    def __sklearn_tags__(self) -> Any:
        tags = self.model.__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.sparse and self.scale is None
        return tags

    # ---- saving --------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not hasattr(self.model, "partial_fit") or not hasattr(self.model, "_check_parameters"):
            raise TypeError(f"Prepared: model must be a learner of gristmill, got {self.model!r}")
        optional(one_of("standard", "minmax", "relevance")).check("Prepared", "scale", self.scale)
        optional(count).check("Prepared", "warmup", self.warmup)
        if self.scale == "relevance":
            relevance.refuse(self.model)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        began = self._started()
        arrays, fitted = began.model._to_file()
        together = {f"model.{name}": array for name, array in arrays.items()}
        plain: dict[str, Any] = {"model": fitted}
        if began.scaler is not None:
            found, plain["scaler"] = began.scaler._to_file()
            together |= found
        columns = getattr(self, "columns_", None)
        if columns is not None:
            plain["columns"] = columns.to_json()
        return together, plain

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        model, scaler = clone(self.model), None
        model._check_parameters()
        inner = {name.removeprefix("model."): a for name, a in arrays.items() if name.startswith("model.")}
        model._from_file(inner, fitted["model"])
        if self.scale is not None:
            scaler = self._fresh_scaler()
            scaler._from_file(arrays, fitted["scaler"])
            if scaler.n_features_in_ != model.n_features_in_:
                raise persist.ModelFileError("its scaling does not fit its points")
        if "columns" in fitted:
            self.columns_ = Columns.from_json(fitted["columns"])
            if len(self.columns_.out_names) != model.n_features_in_:
                raise persist.ModelFileError("its columns do not fit its points")
        self._began = _Begun(model, scaler)


def _row(x: Any) -> Any:
    return x if hasattr(x, "tocsr") else np.asarray(x, dtype=float).reshape(1, -1)


@dataclasses.dataclass
class _Begun:
    """The learner and the scaling that its inputs went through."""

    model: Any
    scaler: Any  #: StreamScaler, RelevanceScaler, or None

    def learn(self, verb: str, X: Any, y: Any, known: dict[str, Any]) -> Any:
        """A chunk through scaling and learner; on an error the learner is as it was."""
        if isinstance(self.scaler, relevance.RelevanceScaler) and not hasattr(X, "tocsr"):
            return relevance.learn(self.scaler, self.model, verb, X, y, known)
        return getattr(self.model, verb)(self.taken_in(X), y, **known)

    def scales_alone(self) -> bool:
        """Whether the next event is scaled and learned, and nothing else comes of it."""
        if isinstance(self.scaler, relevance.RelevanceScaler):
            return self.scaler.room() > 1
        return self.scaler is not None

    def taken_in(self, X: Any) -> Any:
        """X scaled by what is known at each event, which the scaling takes in."""
        if self.scaler is None:
            return X
        if hasattr(X, "tocsr"):
            raise TypeError("scale: sparse rows cannot be centred without losing their zeros; use scale=None")
        if self.scaler.n_seen_ and type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X):
            return self.scaler._learn_rows(self.scaler._checked(X))
        return self.scaler.learn_transform(X)

    def mark(self) -> Any:
        return None if self.scaler is None else self.scaler._mark()

    def back(self, mark: Any) -> None:
        if self.scaler is not None and mark is not None:
            self.scaler._back(mark)
