"""River adapters: gristmill's learners over dicts of features, in River's pipelines and evaluations.

Features may come, go and change their order from event to event. Each name gets a column when it is first
learned; a name that an event does not have counts as 0, and a name that was never learned is passed over in
predictions. A learner over a map, which is drawn for a fixed number of columns, has 64 columns; later names share them.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

try:
    from river import base
except ImportError:  # pragma: no cover
    raise ImportError("gristmill.river needs River: pip install 'gristmill[river]'") from None
from sklearn.base import clone

from . import _core
from ._base.estimator import StreamEstimator, task_of
from ._common.types import Labels
from .learners.single_events import connect

Row = npt.NDArray[np.float64]
#: River before 0.26 keeps it with its anomaly detectors
_Detector: Any = (base if hasattr(base, "AnomalyDetector") else import_module("river.anomaly.base")).AnomalyDetector

_MAP_COLUMNS = 64  # columns of a map


class _Adapter:
    """What the three adapters share: names to columns, and a learner that grows with them."""

    _task: ClassVar[str]
    model: Any
    #: passes single events to the core; None until the columns are known, and if the core cannot take them
    _events: _core.EventPipeline | None = None

    def begin_core(self, model: object) -> None:
        if not hasattr(model, "learn_one") or task_of(model) != self._task:
            raise TypeError(
                f"{type(self).__name__} needs a gristmill learner for {self._task}, got {type(model).__name__}"
            )
        self.model = model
        self._learner = clone(model)
        self._columns: dict[Any, tuple[int, float]] = {}
        self._width = 0
        self._widens = bool(getattr(model, "widens", False))

    # ---- single events ---------------------------------------------------------------------------------------

    def _learned(self, x: object, y: Labels = None) -> bool:
        """Learn an event by the core's own way; False, and nothing is done, where it brings a name or does not fit."""
        events = self._events
        return events is not None and events.learn_one(x, y)

    def _learn_row(self, x: Mapping[Any, Any], *label: object) -> None:
        self._events = None
        self._learner.learn_one(self._learning_row(x), *label)
        self._events = self._single_events()

    def _single_events(self) -> _core.EventPipeline | None:
        """Passes events whose names are known to the core; None if names share a column."""
        learner, names = self._learner, self._columns
        if not isinstance(learner, StreamEstimator) or len(names) > self._width:
            return None
        table = _core.Table("zero", False)
        for _ in names:
            table.add_column()
            table.add_kind(table.columns - 1, "number", 1)
        index = {name: place for name, (place, _) in names.items()}
        events = _core.EventPipeline(table, None, [], self._width, index, set(), None, sys.maxsize)
        return events if connect(events, learner, own=True) else None

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_events"}

    # ---- columns ---------------------------------------------------------------------------------------------

    def _learning_row(self, x: Mapping[Any, Any]) -> Row:
        values = {name: _number(name, value) for name, value in x.items()}  # a bad one changes nothing
        self._add_columns(values)
        return self._row(values)

    def _add_columns(self, names: Any) -> None:
        """Columns for new names. Their number doubles, so that a growing vocabulary is copied few times."""
        fresh = [name for name in names if name not in self._columns]
        if not fresh and self._width:
            return
        if self._width and not self._widens and len(self._columns) + len(fresh) > self._width:
            self._share(fresh)
            return
        # In sorted order: the order of a dict must not decide the order of a sum.
        for name in sorted(fresh, key=str):
            self._columns[name] = (len(self._columns), 1.0)
        if len(self._columns) > self._width or not self._width:
            # The first event says how many columns there are: defaults, and widths that follow from them, go by it.
            at_least = getattr(self.model.map, "n_features_in_", _MAP_COLUMNS) if hasattr(self.model, "map") else 0
            self._width = max(at_least, len(self._columns), 2 * self._width)
            if self._started:
                self._learner.widen(self._width)

    def _share(self, fresh: list[object]) -> None:
        """A map was drawn for so many columns: names that come later share them, with a sign of their own."""
        for name in fresh:
            code = zlib.crc32(repr(name).encode())
            self._columns[name] = (code % self._width, 1.0 if code >> 31 else -1.0)

    def _row(self, x: Mapping[Any, Any]) -> Row:
        row = np.zeros(max(self._width, 1))
        for name, value in x.items():
            place = self._columns.get(name)
            if place is not None:
                row[place[0]] += place[1] * _number(name, value)
        return row

    def _table(self, X: Any) -> Row:
        table = np.zeros((len(X), max(self._width, 1)))
        for name in X.columns:
            place = self._columns.get(name)
            if place is not None:
                table[:, place[0]] += place[1] * X[name].to_numpy()
        return table

    @property
    def _started(self) -> bool:
        return bool(self._learner.__sklearn_is_fitted__())

    # ---- River's interface -----------------------------------------------------------------------------------

    @property
    def n_support_(self) -> int:
        """How many points are stored."""
        return int(getattr(self._learner, "n_support_", 0)) if self._started else 0

    @property
    def _raw_memory_usage(self) -> int:
        # River walks Python objects; what the core holds is invisible to it and is added here.
        walked = int(super()._raw_memory_usage)  # type: ignore[misc]
        return walked + (int(self._learner.memory_bytes_) if self._started else 0)


def _number(name: object, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"the feature {name!r} is {value!r}, which is not a number; put River's OneHotEncoder before the learner"
        ) from None
    if not math.isfinite(number):
        raise ValueError(f"the feature {name!r} is {value!r}, which is not finite")
    return number


class Classifier(_Adapter, base.MiniBatchClassifier):
    """A kernel classifier as a River classifier.

    Parameters
    ----------
    model
        A classifier of gristmill, such as those of the catalogue. It is copied, and the copy learns.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive
    >>> from gristmill.river import Classifier
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | Classifier(passive_aggressive(Gaussian(0.1), size=100))
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 88.71%
    """

    _task = "classification"

    def __init__(self, model: object) -> None:
        self.begin_core(model)

    @property
    def _multiclass(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        from .catalogue import passive_aggressive
        from .kernels import Gaussian

        yield {"model": passive_aggressive(Gaussian(0.1), size=50)}

    def learn_one(self, x: dict[Any, Any], y: Labels) -> None:
        """Learn one event."""
        if not self._learned(x, y):
            self._learn_row(x, _plain(y))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn a batch; the same as learning its rows one by one."""
        self._events = None
        self._add_columns(X.columns)
        self._learner.partial_fit(self._table(X), [_plain(label) for label in y])

    def predict_one(self, x: dict[Any, Any], **_: object) -> Any:
        """The most probable class; None before anything was learned."""
        found: Any = NotImplemented if self._events is None else self._events.predict_one(x)
        if found is NotImplemented:
            return _plain(self._learner.predict_one(self._row(x))) if self._started else None
        return found

    def predict_proba_one(self, x: dict[Any, Any], **_: object) -> dict[Any, float]:
        """The learner's calibrated probability of each class."""
        found: Any = NotImplemented if self._events is None else self._events.predict_proba_one(x)
        if found is NotImplemented:
            found = self._learner.predict_proba_one(self._row(x)) if self._started else {}
        chances: dict[Any, float] = found
        return chances

    def predict_proba_many(self, X: Any) -> Any:
        """One row of chances an event."""
        import pandas as pd

        if not self._started:
            return pd.DataFrame(index=X.index)
        rows = self._learner.predict_proba(self._table(X))
        return pd.DataFrame(rows, columns=self._learner.classes_.tolist(), index=X.index)


def _plain(label: object) -> Any:
    return label.item() if hasattr(label, "item") else label


class Regressor(_Adapter, base.MiniBatchRegressor):
    """A kernel regressor as a River regressor.

    Parameters
    ----------
    model
        A regressor of gristmill. It is copied, and the copy learns.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive_regressor
    >>> from gristmill.river import Regressor
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> learner = passive_aggressive_regressor(Gaussian(0.05), C=10.0, size=100)
    >>> model = preprocessing.StandardScaler() | Regressor(learner)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 1.649575
    """

    _task = "regression"

    def __init__(self, model: object) -> None:
        self.begin_core(model)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        from .catalogue import passive_aggressive_regressor
        from .kernels import Gaussian

        yield {"model": passive_aggressive_regressor(Gaussian(0.1), size=50)}

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn one event."""
        if not self._learned(x, y):
            self._learn_row(x, float(y))

    def learn_many(self, X: Any, y: Labels) -> None:
        """Learn a batch; the same as learning its rows one by one."""
        self._events = None
        self._add_columns(X.columns)
        self._learner.partial_fit(self._table(X), np.asarray(y, dtype=float))

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction; 0 before anything was learned."""
        found: Any = NotImplemented if self._events is None else self._events.predict_one(x)
        if found is not NotImplemented:
            return float(found)
        return float(self._learner.predict_one(self._row(x))) if self._started else 0.0

    def predict_many(self, X: Any) -> Any:
        """One prediction an event."""
        import pandas as pd

        values = self._learner.predict(self._table(X)) if self._started else np.zeros(len(X))
        return pd.Series(values, index=X.index)


class AnomalyDetector(_Adapter, _Detector):
    """A kernel novelty detector as a River anomaly detector.

    Parameters
    ----------
    model
        A novelty detector of gristmill. It is copied, and the copy learns.

    Examples
    --------
    >>> from gristmill import Gaussian, norma_novelty
    >>> from gristmill.river import AnomalyDetector
    >>> detector = AnomalyDetector(norma_novelty(Gaussian(1.0), nu=0.1, rate=0.1, schedule="inv_sqrt", size=100))
    >>> for step in range(200):
    ...     detector.learn_one({"pressure": (step % 7) / 10, "heat": (step % 5) / 10})
    >>> detector.score_one({"pressure": 5.0, "heat": 9.0}) > 0
    True
    >>> detector.score_one({"pressure": 0.3, "heat": 0.2}) > 0
    False
    """

    _task = "novelty"

    def __init__(self, model: object) -> None:
        self.begin_core(model)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        from .catalogue import norma_novelty
        from .kernels import Gaussian

        yield {"model": norma_novelty(Gaussian(0.1), nu=0.05, rate=0.1, schedule="inv_sqrt", size=50)}

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Learn one event."""
        if not self._learned(x):
            self._learn_row(x)

    def score_one(self, x: dict[Any, Any]) -> float:
        """The margin less f(x): above 0 is an alarm, higher is more novel; 0 before anything was learned."""
        found: Any = NotImplemented if self._events is None else self._events.score_one(x)
        if found is not NotImplemented:
            return -float(found)
        return -float(self._learner.score_one(self._row(x))) if self._started else 0.0
