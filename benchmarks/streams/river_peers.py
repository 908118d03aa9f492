"""River's learners. Its users have events as dicts, so the dicts are made before the clock runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..data import SEED
from .cases import Case
from .entry import Entry, EventByEvent


class OfRiver(EventByEvent):
    """Classifiers and regressors. Its linear models want two classes as booleans, so all of its learners get them."""

    def __init__(self, model: Any, case: Case) -> None:
        self.model = model
        labels = np.unique(case.y).tolist() if case.task == "classification" else []
        self.pair = labels if len(labels) == 2 else None
        self.nothing = None if labels else 0.0  # where River says None: it knows nothing yet

    def ready(self, X: Any, y: Any) -> Any:
        names = [f"c{i}" for i in range(X.shape[1])]
        rows = (dict(zip(names, x, strict=True)) for x in X.tolist())
        return list(zip(rows, (y if self.pair is None else y == self.pair[1]).tolist(), strict=True))

    def one(self, x: Any, y: Any) -> Any:
        said = self.model.predict_one(x)
        self.model.learn_one(x, y)
        if said is None:
            return self.nothing
        return said if self.pair is None else self.pair[bool(said)]


class Detector(OfRiver):
    """Anomaly detectors; they are not given labels."""

    def one(self, x: Any, y: Any) -> Any:
        said = self.model.score_one(x)
        self.model.learn_one(x)
        return -said


def _scaled(regressor: Any) -> Any:
    """Leaves of regression trees are linear models, whose steps are meant for columns and targets of unit size."""
    from river import preprocessing

    return preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(regressor=regressor)


def _forest(case: Case) -> Any:
    from river import forest

    if case.task == "regression":
        return _scaled(forest.ARFRegressor(n_models=10, seed=SEED))
    return forest.ARFClassifier(n_models=10, seed=SEED)


def _mondrian(case: Case) -> Any:
    from river import forest, preprocessing

    kind = forest.AMFRegressor if case.task == "regression" else forest.AMFClassifier
    return preprocessing.StandardScaler() | kind(n_estimators=10, seed=SEED)


def _patches(case: Case) -> Any:
    from river import ensemble

    if case.task == "regression":
        return _scaled(ensemble.SRPRegressor(n_models=10, seed=SEED))
    return ensemble.SRPClassifier(n_models=10, seed=SEED)


def _tree(case: Case) -> Any:
    from river import tree

    if case.task == "regression":
        return _scaled(tree.HoeffdingAdaptiveTreeRegressor(seed=SEED))
    return tree.HoeffdingAdaptiveTreeClassifier(seed=SEED)


def _neighbours(case: Case) -> Any:
    from river import neighbors, preprocessing

    kind = neighbors.KNNClassifier if case.task == "classification" else neighbors.KNNRegressor
    return preprocessing.StandardScaler() | kind(n_neighbors=5, engine=neighbors.LazySearch(window_size=1000))


def _linear(case: Case) -> Any:
    from river import preprocessing

    return preprocessing.StandardScaler() | _line(case, 0.01)


def _features(case: Case) -> Any:
    from river import feature_extraction, preprocessing

    d = case.X.shape[1]
    each = max(1, min(100, 2000 // d))  # it maps each column by itself: so many features a column
    sampler = feature_extraction.RBFSampler(n_components=each, seed=SEED)
    return preprocessing.StandardScaler() | sampler | _line(case, 1.0 / (d * each))  # at its usual rate it diverges


def _line(case: Case, rate: float) -> Any:
    from river import linear_model, multiclass, optim, preprocessing

    if case.task == "regression":  # its steps are meant for targets of unit size
        return preprocessing.TargetStandardScaler(regressor=linear_model.LinearRegression(optim.SGD(rate)))
    model = linear_model.LogisticRegression(optim.SGD(rate))
    return model if len(np.unique(case.y)) == 2 else multiclass.OneVsRestClassifier(model)


def _half_spaces(case: Case) -> Any:
    from river import anomaly, preprocessing

    return preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=SEED)


def _entries(name: str, kind: str, about: str, build: Callable[[Case], Any]) -> list[Entry]:
    def make(case: Case) -> OfRiver:
        return OfRiver(build(case), case)

    return [Entry(name, task, kind, about, make) for task in ("classification", "regression")]


def _detector(case: Case) -> OfRiver:
    return Detector(_half_spaces(case), case)


RIVER = [
    *_entries("River linear", "linear", "StandardScaler | LogisticRegression or LinearRegression, rate 0.01", _linear),
    Entry("HalfSpaceTrees", "novelty", "peer", "MinMaxScaler, 10 trees", _detector),
    *_entries("River k-NN(1000)", "peer", "StandardScaler, 5 neighbours among the last 1,000", _neighbours),
    *_entries("River adaptive tree", "peer", "HoeffdingAdaptiveTree; for numbers all is scaled", _tree),
    *_entries("River AMF(10)", "peer", "StandardScaler, 10 Mondrian trees", _mondrian),
    *_entries("River ARF(10)", "peer", "10 trees; for numbers all is scaled", _forest),
    *_entries("River SRP(10)", "peer", "10 trees on random patches; for numbers all is scaled", _patches),
    *_entries(
        "River RBFSampler",
        "peer",
        "scaled, RBFSampler(100, at most 2,000 features), linear, rate 1 / features",
        _features,
    ),
]
