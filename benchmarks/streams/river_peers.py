"""River's learners. Its users have events as dicts, so the dicts are made before the clock runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..data import SEED
from .cases import Case
from .entry import Entry, EventByEvent


class OfRiver(EventByEvent):
    """Classifiers and regressors."""

    def __init__(self, model: Any, first: Any) -> None:
        self.model = model
        self.first = first  # where River says None, or nothing yet

    def ready(self, X: Any, y: Any) -> Any:
        names = [f"c{i}" for i in range(X.shape[1])]
        rows = (dict(zip(names, x, strict=True)) for x in X.tolist())
        return list(zip(rows, y.tolist(), strict=True))

    def one(self, x: Any, y: Any) -> Any:
        said = self.model.predict_one(x)
        self.model.learn_one(x, y)
        return self.first if said is None else said


class Detector(OfRiver):
    """Anomaly detectors; they are not given labels."""

    def one(self, x: Any, y: Any) -> Any:
        said = self.model.score_one(x)
        self.model.learn_one(x)
        return -said


def _forest(case: Case) -> Any:
    from river import forest

    kind = forest.ARFClassifier if case.task == "classification" else forest.ARFRegressor
    return kind(n_models=10, seed=SEED)


def _tree(case: Case) -> Any:
    from river import tree

    kind = (
        tree.HoeffdingAdaptiveTreeClassifier if case.task == "classification" else tree.HoeffdingAdaptiveTreeRegressor
    )
    return kind(seed=SEED)


def _neighbours(case: Case) -> Any:
    from river import neighbors, preprocessing

    kind = neighbors.KNNClassifier if case.task == "classification" else neighbors.KNNRegressor
    return preprocessing.StandardScaler() | kind(n_neighbors=5, engine=neighbors.LazySearch(window_size=1000))


def _linear(case: Case) -> Any:
    from river import preprocessing

    return preprocessing.StandardScaler() | _line(case)


def _features(case: Case) -> Any:
    from river import feature_extraction, preprocessing

    # It maps each column by itself: so many features a column.
    sampler = feature_extraction.RBFSampler(n_components=min(100, 2000 // case.X.shape[1]), seed=SEED)
    return preprocessing.StandardScaler() | sampler | _line(case)


def _line(case: Case) -> Any:
    from river import linear_model, multiclass, preprocessing

    if case.task == "regression":  # its steps are meant for targets of unit size
        return preprocessing.TargetStandardScaler(regressor=linear_model.LinearRegression())
    model = linear_model.LogisticRegression()
    return model if len(set(case.y.tolist())) == 2 else multiclass.OneVsRestClassifier(model)


def _half_spaces(case: Case) -> Any:
    from river import anomaly, preprocessing

    return preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=SEED)


def _entries(name: str, kind: str, about: str, build: Callable[[Case], Any]) -> list[Entry]:
    def make(case: Case) -> OfRiver:
        return OfRiver(build(case), None if case.task == "classification" else 0.0)

    return [Entry(name, task, kind, about, make) for task in ("classification", "regression")]


#: From fast to slow: the whole of the benchmark may be broken off and gone on with.
RIVER = [
    *_entries("River linear", "linear", "StandardScaler | LogisticRegression or LinearRegression", _linear),
    *_entries("River adaptive tree", "peer", "HoeffdingAdaptiveTree", _tree),
    *_entries("River k-NN(1000)", "peer", "StandardScaler, 5 neighbours among the last 1,000", _neighbours),
    Entry("HalfSpaceTrees", "novelty", "peer", "MinMaxScaler, 10 trees", lambda case: Detector(_half_spaces(case), 0)),
    *_entries(
        "River RBFSampler", "peer", "StandardScaler | RBFSampler(100, at most 2,000 features) | linear", _features
    ),
    *_entries("River ARF(10)", "peer", "10 trees", _forest),
]
