"""A learner that takes any table: columns, scaling and learner as one estimator."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from .._base import late_labels
from .._base.estimator import StreamEstimator
from .._common.ranges import count, one_of, optional
from .._common.types import Fields, FileFields, Fitted, Labels, Options
from ..persist.stored import StoredEstimator
from ..streams.rank import RankScaler
from ..streams.relevance import RelevanceScaler, Renewal
from ..streams.scaling import StreamScaler
from ..streams.tables.frame import Frame
from ..streams.tables.layout import checked_kinds
from ..streams.tables.table import Table
from . import relevance
from .files import from_file, of_numbers, to_file
from .pipeline import Pipeline
from .target_scalers import Targets


def _if_the_model_has(method: Any) -> Any:
    """A method that is there if the learner has it."""
    return available_if(lambda prepared: hasattr(prepared.model, method.__name__))(method)


class Prepared(StoredEstimator):
    """A learner with online encoding and scaling of the columns, trained, saved and loaded as one estimator.

    X may be an array, a DataFrame of pandas or polars, an Arrow table, a dict of columns, a dict (one event), a list of
    dicts, or a table of `read(raw=True)`: all give the same result. Numbers are scaled. A category gets one column per
    value, in the order of their first appearance. Times are encoded as hour and weekday on a circle. Missing values are
    replaced by the mean so far, and marked in a column of their own. The kind of a column is that of its first value
    that is not missing.

    Parameters
    ----------
    model : learner of gristmill
    scale : {"standard", "minmax", "rank", "relevance", "rank-relevance"} or None, default="standard"
        Each event is scaled by what was seen up to and including it, then learned. "relevance" also standardises, and
        weights each column by how much the prediction of the kernel learner depends on it; after 500, 1000, 2000, ...
        events the weights are updated and the coefficients are learned again from the stored points. "rank" replaces each
        value by the normal score of its rank among recent events, so that outliers and heavy tails do not matter; its maps
        are renewed at positions of the stream and the stored points follow. It needs dense rows. "rank-relevance" weights
        such scores. Sparse rows are
        divided by the root mean square (or range) of each column and not centred, so that zeros stay zeros; with
        "relevance" they may have at most 1,024 columns.
    warmup : int, optional
        Number of events after which the scaling is frozen; by default it never is.
    columns : dict, optional
        Kinds of columns by name, to override the kind of the first value: number, boolean, category, time, text, or
        drop.
    missing : {"fill", "raise"}, default="fill"
        "raise": a missing value is an error.
    target : {"scale"} or None, default="scale"
        "scale": the targets of kernel and feature regressors are centred and divided by their standard deviation. Both
        are updated after 2, 4, 8, ... events, and what was learned is converted then, so that predictions do not jump.
        Predictions are in the units of y; `dual_coef_`, `intercept_` and `epsilon_` of the learner, and the widths of
        its losses (epsilon, sigma), are in units of the scaled target. Events before the second distinct target are not
        learned. None: targets are not scaled. Learners that scale by themselves (AutoRegressor) always get the raw
        targets.

    Attributes
    ----------
    model_ : the fitted learner
    table_ : Table
        The columns: names, kinds, values of categories.
    scaler_ : StreamScaler, RelevanceScaler, or None
    n_features_in_ : int
        Columns of the table, whatever their kind.
    feature_names_in_ : array
        Their names, where they came with any.
    relevance_ : array, with scale="relevance"
        Relevance of each column of the table: its share of the mean squared gradient. The values of a category share
        one weight.
    relevance_history_ : tuple of Renewal, with scale="relevance"
        Position in the stream, relevance, and whether the weights were changed, for each update.

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

    A dict is an event; what it lacks is missing:

    >>> model = Prepared(passive_aggressive(Gaussian(1.0), size=100))
    >>> for place in range(60):
    ...     model.learn_one({"hue": "red" if place % 3 else "blue", "size": place % 7}, place % 3 > 0)
    >>> model.predict_one({"hue": "blue"}), model.table_
    (np.False_, Table(hue=category[2], size=number))
    """

    def __init__(
        self,
        model: Any,
        scale: str | None = "standard",
        warmup: int | None = None,
        columns: Mapping[str, str] | None = None,
        missing: str = "fill",
        target: str | None = "scale",
    ) -> None:
        self.model = model
        self.scale = scale
        self.warmup = warmup
        self.columns = columns
        self.missing = missing
        self.target = target

    _pipeline: Pipeline | None = None  # nothing is learned yet
    target_name_: str | None = None  #: the column that held the labels, where a file was learned

    # ---- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, passes: int | None = None) -> Self:
        """Forget everything and learn from X, y, in order: in one pass, or in as many as the learner makes.

        With several passes the scaling is that of the whole batch.

        Parameters
        ----------
        X : any table
        y : labels or targets
        sample_weight : array of numbers >= 0, optional
            For a learner that takes weights.
        passes : int >= 1, optional
            For a learner that can make several.
        """
        self._learn("fit", X, y, {"sample_weight": sample_weight, "passes": passes}, fresh=True)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Labels = None) -> Self:
        """Go on learning from X, y, in order."""
        self._learn("partial_fit", X, y, {"classes": classes, "sample_weight": sample_weight})
        return self

    def prequential(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn as `partial_fit` does, and return what was predicted for each event before."""
        return self._learn("prequential", X, y, {"classes": classes, "sample_weight": sample_weight})

    @_if_the_model_has
    def prequential_interval(self, X: Any, y: Any, coverage: float = 0.9) -> Any:
        """Learn as `partial_fit` does, and return the interval of each event before it was learned."""
        return self._learn("prequential_interval", X, y, {"coverage": coverage})

    def learn_one(self, x: Any, y: Any = None, sample_weight: float = 1.0, id: Hashable = None) -> None:
        """Learn one event: a vector, or a dict by names of columns.

        Parameters
        ----------
        x : vector or dict
        y : label or target
        sample_weight : float >= 0, default=1.0
            For a learner that takes weights.
        id : hashable, optional
            Of an event whose label comes later, by `label(id, y)`; it is learned then.
        """
        if id is not None:
            self._wait(id, x, y)
            return
        pipeline = self._pipeline
        if sample_weight == 1.0 and pipeline is not None and not (self._changed or pipeline.model._changed):
            events = pipeline.events
            if (events is not None and events.learn_one(x, y)) or pipeline.learn_one(x, y):
                return
        known = {} if sample_weight == 1.0 else {"sample_weight": [sample_weight]}
        self._learn("partial_fit", self._event(x), None if y is None else [y], known)

    def _learn(self, verb: str, X: Any, y: Any, known: Options, fresh: bool = False) -> Any:
        self.check_parameters()
        pipeline = None if fresh else self._pipeline
        if pipeline is None:
            pipeline = self.begin_core()
        else:
            self.refuse_changed_parameters("learning on")
        found = pipeline.learn(verb, X, y, {name: value for name, value in known.items() if value is not None})
        if fresh:
            for name in ("target_name_", "columns_", "_changed"):
                self.__dict__.pop(name, None)
        self._pipeline = pipeline
        return found

    def begin_core(self) -> Pipeline:
        model = clone(self.model)
        objects = model.takes_objects()
        table, scaler = (None, None) if objects else (self._fresh_table(), self._fresh_scaler())
        return Pipeline(model, table, scaler, targets=self._fresh_targets())

    def _fresh_targets(self) -> Targets | None:
        return Targets() if self.target == "scale" and self.model.retargets else None

    def resume(self, model: Any, scaler: object, targets: Targets | None = None) -> None:
        """Go on with a learner and a scaling that have learned elsewhere, from rows of plain numbers."""
        standard = scaler
        if isinstance(scaler, RelevanceScaler):
            standard, scaler.position = scaler.standard, scaler.n_seen_
        table = of_numbers(model, self._table_settings(), standard)
        self._pipeline = Pipeline(model, table, scaler, targets=self._fresh_targets() if targets is None else targets)

    def _fresh_table(self) -> Table:
        return Table(**self._table_settings())

    def _table_settings(self) -> dict[str, Any]:
        return {"columns": self.columns, "missing": self.missing, "flags": bool(self.model.widens)}

    def _fresh_scaler(self) -> Any:
        if self.scale in ("relevance", "rank-relevance"):
            return RelevanceScaler(self.warmup, position=0, by_rank=self.scale == "rank-relevance")
        if self.scale == "rank":
            return RankScaler(self.warmup)
        return None if self.scale is None else StreamScaler(self.scale, self.warmup)

    def _event(self, x: object) -> Any:
        """One event as a table, or a list, of one."""
        if isinstance(x, Mapping | Frame) or hasattr(x, "tocsr"):
            return x
        if self.model.takes_objects():
            return [x]
        if isinstance(x, np.ndarray) and x.ndim == 1:
            return x[None]
        return [x.to_dict()] if hasattr(x, "to_dict") else [x]

    label, n_waiting_, _wait = late_labels.label, late_labels.n_waiting_, late_labels.wait

    # ---- answers -------------------------------------------------------------------------------------------

    def _started(self) -> Pipeline:
        if self._pipeline is None:
            raise NotFittedError("This Prepared instance is not fitted yet: call fit, partial_fit or learn_one first")
        return self._pipeline

    @property
    def pipeline(self) -> Pipeline:
        """Table, scaling and learner as they are now; NotFittedError before the first sample."""
        return self._started()

    def _answer(self, verb: str, X: Any, *rest: Any) -> Any:
        """An answer of the learner about samples, encoded by the state of the same moment."""
        pipeline = self._started()
        return pipeline.read(lambda: pipeline.unscaled(verb, getattr(pipeline.model, verb)(pipeline.rows(X), *rest)))

    def _answer_one(self, verb: str, x: object, *rest: object) -> Any:
        pipeline = self._pipeline
        if pipeline is None:
            return getattr(self.model, verb)(x, *rest)
        events = pipeline.single_events()
        event: Any = None

        def answer() -> Any:
            nonlocal event
            row = None if events is None else events.row_of(x)
            if row is None:
                event = self._event(x) if event is None else event
                row = _lone(pipeline.rows(event))
            return pipeline.unscaled(verb, getattr(pipeline.model, verb)(row, *rest))

        return pipeline.read(answer)

    @_if_the_model_has
    def predict(self, X: Any) -> Any:
        """The prediction for each event, by what is known now."""
        return self._answer("predict", X)

    @_if_the_model_has
    def decision_function(self, X: Any) -> Any:
        """The learner's scores of each event, by what is known now."""
        return self._answer("decision_function", X)

    @_if_the_model_has
    def predict_proba(self, X: Any) -> Any:
        """The learner's probability of each class, by what is known now."""
        return self._answer("predict_proba", X)

    @_if_the_model_has
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of `predict_proba`."""
        return self._answer("predict_log_proba", X)

    @_if_the_model_has
    def predict_proba_one(self, x: object) -> Any:
        """The learner's probability of each class for one event; nothing before anything was learned."""
        events = None if self._pipeline is None else self._pipeline.events
        found = NotImplemented if events is None else events.predict_proba_one(x)
        return self._answer_one("predict_proba_one", x) if found is NotImplemented else found

    @_if_the_model_has
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """The learner's interval for each event, by what is known now."""
        return self._answer("predict_interval", X, coverage)

    @_if_the_model_has
    def predict_interval_one(self, x: object, coverage: float = 0.9) -> Any:
        """The learner's interval for one event; everything is possible before anything was learned."""
        return self._answer_one("predict_interval_one", x, coverage)

    @_if_the_model_has
    def explain(self, x: object, top: int | None = 10) -> Any:
        """Why the learner predicts what it predicts of one event, by what is known now; columns are those of the rows.

        With scale="relevance" it also lists which columns of the table matter: `relevance`, by name.
        """
        pipeline = self._started()
        found = self._answer_one("explain", x, top)
        if pipeline.relevance is None:
            return found
        shares = dict(zip(self.table_.names, self.relevance_.tolist(), strict=True))
        return dataclasses.replace(found, relevance=shares)

    @_if_the_model_has
    def report(self) -> Any:
        """The report of a learner that runs a race: weights, errors and stored points of its experts."""
        pipeline = self._started()
        return pipeline.read(lambda: pipeline.model.report())

    @_if_the_model_has
    def score_samples(self, X: Any) -> Any:
        """How familiar each event is to the learner, by what is known now."""
        return self._answer("score_samples", X)

    @_if_the_model_has
    def transform(self, X: Any) -> Any:
        """The learner's transformation of each event, by what is known now."""
        return self._answer("transform", X)

    @_if_the_model_has
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The learner's own measure: accuracy of classes, R^2 of numbers."""
        if self._started().targets is not None:
            from sklearn.metrics import r2_score

            return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
        return float(self._answer("score", X, y, *(() if sample_weight is None else (sample_weight,))))

    @_if_the_model_has
    def gradient(self, X: Any) -> Any:
        """How the scores change with each column of the rows (`get_feature_names_out`) in units as they came."""
        pipeline = self._started()
        return pipeline.read(
            lambda: pipeline.unscaled_gradient(pipeline.model.gradient(pipeline.rows(X)) * pipeline.slopes())
        )

    def predict_one(self, x: object) -> Any:
        """The prediction for one event; before anything was learned, that of a learner that has learned nothing."""
        events = None if self._pipeline is None else self._pipeline.events
        found = NotImplemented if events is None else events.predict_one(x)
        return self._answer_one("predict_one", x) if found is NotImplemented else found

    def score_one(self, x: object) -> Any:
        """The score of one event; before anything was learned, that of a learner that has learned nothing."""
        events = None if self._pipeline is None else self._pipeline.events
        found = NotImplemented if events is None else events.score_one(x)
        return self._answer_one("score_one", x) if found is NotImplemented else found

    # ---- what is known -------------------------------------------------------------------------------------

    @property
    def model_(self) -> Any:
        """The fitted learner."""
        return self._started().model

    @property
    def table_(self) -> Table:
        """The columns: names, kinds, values of categories."""
        table = self._started().table
        if table is None:
            raise AttributeError("table_ is there for tables, and the learner takes objects")
        return table

    @property
    def scaler_(self) -> Any:
        """The scaling, or None."""
        return self._started().scaler

    @property
    def n_features_in_(self) -> int:
        """Columns of the table, whatever their kind."""
        pipeline = self._pipeline_for("n_features_in_")
        return int(pipeline.model.n_features_in_) if pipeline.table is None else pipeline.table.n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of the table, where they came with any."""
        pipeline = self._pipeline_for("feature_names_in_")
        if pipeline.table is None or not pipeline.table.named:
            raise AttributeError("the columns came without names")
        return pipeline.table.feature_names_in_

    def _pipeline_for(self, name: str) -> Pipeline:
        if self._pipeline is None:
            raise AttributeError(f"'Prepared' object has no attribute {name!r} before it has learned")
        return self._pipeline

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Names of the columns of the rows that the learner sees: size, hue=red, size:missing, when:hour sine."""
        return self.table_.get_feature_names_out()

    @property
    def relevance_(self) -> Any:
        """How much each column of the table moves the answer: shares that add up to 1, in the order of `table_.names`."""
        return self._by_column()[0]

    @property
    def relevance_history_(self) -> tuple[Renewal, ...]:
        """What was found each time the columns were looked at, oldest first."""
        return self._by_column()[1]

    def _by_column(self) -> tuple[object, tuple[Renewal, ...]]:
        pipeline = self._pipeline
        found = None if pipeline is None else pipeline.relevance
        if (
            pipeline is not None
            and found is None
            and pipeline.table is not None
            and hasattr(pipeline.model, "relevance_")
        ):
            table = pipeline.table  # of a race, whose experts weigh the columns
            return pipeline.read(lambda: (table.by_column(pipeline.model.relevance_), ()))
        if pipeline is None or found is None:
            raise AttributeError  # __getattr__ says why
        return pipeline.read(lambda: found.by_column(pipeline.table))

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the learner, the table and the scaling keep."""
        return self._started().memory_bytes

    def __getattr__(self, name: str) -> Any:
        # Other fitted attributes are the learner's: n_support_, classes_, n_seen_, margin_ ...
        own = name in ("feature_names_in_", "n_features_in_", "relevance_", "relevance_history_", "table_")
        if name.endswith("_") and not name.startswith("_") and not own and self._pipeline is not None:
            return getattr(self._pipeline.model, name)
        if name in ("relevance_", "relevance_history_"):
            raise AttributeError(f'{name} is there with scale="relevance", once something was learned')
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return self._pipeline is not None

    def __sklearn_tags__(self) -> Any:
        tags = self.model.__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "fill"
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    # ---- saving --------------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        if not isinstance(self.model, StreamEstimator):
            raise TypeError(f"Prepared: model must be a learner of gristmill, got {self.model!r}")
        optional(one_of("standard", "minmax", "rank", "relevance", "rank-relevance")).check(
            "Prepared", "scale", self.scale
        )
        if self.scale in ("rank", "rank-relevance") and hasattr(self.model, "experts"):
            raise ValueError(
                f'Prepared: scale="{self.scale}" moves the stored points of one learner, and {type(self.model).__name__} '
                "scales columns for each of its experts; use scale=None, or experts that are Prepared themselves"
            )
        optional(count).check("Prepared", "warmup", self.warmup)
        one_of("fill", "raise").check("Prepared", "missing", self.missing)
        optional(one_of("scale")).check("Prepared", "target", self.target)
        checked_kinds(self.columns)
        if self.scale in ("relevance", "rank-relevance"):
            relevance.refuse(self.model)

    def saved_fields(self) -> FileFields:
        pipeline = self._started()
        arrays, plain = pipeline.read(lambda: to_file(pipeline))
        if self.target_name_ is not None:
            plain["target_name"] = self.target_name_
        return arrays, plain

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        model = clone(self.model)
        model.check_parameters()
        table = None if model.takes_objects() else self._table_settings()
        self._pipeline = from_file(model, table, self._fresh_scaler(), arrays, fitted)
        if self._pipeline.targets is None and model.retargets:
            self.target = None  # a file from before there was a choice
        name = fitted.get("target_name", fitted.get("columns", {}).get("target"))
        if name is not None:
            self.target_name_ = str(name)

    def __getstate__(self) -> dict[str, object]:
        state = dict(super().__getstate__())
        pipeline = state.pop("_pipeline", None)
        return state if pipeline is None else {**state, "_pipeline": pipeline.__getstate__()}

    def __setstate__(self, state: Fields) -> None:
        packed = state.pop("_pipeline", None)
        super().__setstate__(state)
        if packed is not None:
            self._pipeline = Pipeline(**packed)


def _lone(rows: Any) -> Any:
    """The only row of a table."""
    return rows if hasattr(rows, "tocsr") else rows[0]
