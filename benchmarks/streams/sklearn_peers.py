"""scikit-learn's learners with partial_fit, event by event, and detectors that are fitted anew at times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import config_context

from gristmill.streams import StreamScaler

from ..data import SEED
from .cases import Case
from .entry import Entry, EventByEvent


class Partial(EventByEvent):
    """A model behind an online scaling; regression targets are scaled too, by what was seen before."""

    def __init__(self, case: Case, model: Any) -> None:
        self.model = model
        self.known = {"classes": np.unique(case.y)} if case.task == "classification" else {}
        self.target = None if self.known else Target()
        self.scaler = StreamScaler()
        self.began = False

    def answer(self, ready: Any) -> Any:
        X = self.mapped(self.scaler.learn_transform(np.stack([x for x, _ in ready])))
        with config_context(assume_finite=True, skip_parameter_validation=True):  # most of the time otherwise
            return [self.one(row, y) for row, (_, y) in zip(X[:, None, :], ready, strict=True)]

    def mapped(self, X: Any) -> Any:
        """Features that do not change while a few rows are learned."""
        return X

    def one(self, x: Any, y: Any) -> Any:
        said = self.model.predict(x).item() if self.began else None
        if self.target is not None:
            said = self.target.back(said or 0.0)
            y = self.target.take(y)
        self.model.partial_fit(x, np.array([y]), **self.known)
        self.began = True
        return said


class Target:
    """The target less its running mean, over its running deviation."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.squares = 0.0

    @property
    def spread(self) -> float:
        return float(np.sqrt(self.squares / self.count)) if self.count > 1 and self.squares > 0 else 1.0

    def back(self, value: float) -> float:
        return self.mean + self.spread * value

    def take(self, y: float) -> float:
        self.count += 1
        before = self.mean
        self.mean += (y - before) / self.count
        self.squares += (y - before) * (y - self.mean)
        return (y - self.mean) / self.spread


class NystroemLine(Partial):
    """Linear on the columns until 300 events are there to be the basis; then on their kernel values."""

    basis = 300

    def __init__(self, case: Case, line: Callable[[], Any]) -> None:
        super().__init__(case, line())
        self.line = line
        self.kept: list[tuple[Any, Any]] = []
        self.map: Any = None

    def mapped(self, X: Any) -> Any:
        return X if self.map is None else self.map.transform(X)

    def one(self, x: Any, y: Any) -> Any:
        said = super().one(x, y)
        if self.map is None:
            self.kept.append((x, y))
            if len(self.kept) == self.basis:  # at the end of some rows, for these are a hundred
                self.begin_core()
        return said

    def begin_core(self) -> None:
        from sklearn.kernel_approximation import Nystroem

        points = np.concatenate([x for x, _ in self.kept])
        gamma = 1.0 / points.shape[1]
        self.map = Nystroem(gamma=gamma, n_components=self.basis, random_state=SEED).fit(points)
        self.model = self.line()
        y = np.array([label for _, label in self.kept])
        if self.target is not None:
            y = (y - self.target.mean) / self.target.spread
        self.model.partial_fit(self.map.transform(points), y, **self.known)
        self.kept = []


class Refitted:
    """A detector fitted anew every 500 events on the last 1,000; 0 for all before the first time."""

    rows = 500
    memory = 1000

    def __init__(self, build: Callable[[], Any]) -> None:
        self.build = build
        self.model: Any = None
        self.past: Any = None

    def ready(self, X: Any, y: Any) -> Any:
        return X

    def answer(self, ready: Any) -> Any:
        said = np.zeros(len(ready)) if self.model is None else self.model.score_samples(ready)
        self.past = ready if self.past is None else np.concatenate([self.past, ready])[-self.memory :]
        self.model = self.build().fit(self.past)
        return said


def _sgd(task: str) -> Callable[[], Any]:
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    if task == "regression":
        return lambda: SGDRegressor(random_state=SEED)
    return lambda: SGDClassifier(random_state=SEED)


def _nystroem(case: Case) -> Any:
    return NystroemLine(case, _sgd(case.task))


def _network(case: Case) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPRegressor if case.task == "regression" else MLPClassifier
    return Partial(case, kind(random_state=SEED))


def _isolation(case: Case) -> Any:
    from sklearn.ensemble import IsolationForest

    return Refitted(lambda: IsolationForest(random_state=SEED))


def _outlier_factor(case: Case) -> Any:
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return Refitted(lambda: make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True)))


SKLEARN = [
    *(
        Entry(name, task, "peer", about, make)
        for name, about, make in (
            ("sklearn Nystroem(300)", "scaled, SGD on 300 kernel values, Gaussian 1/d", _nystroem),
            ("sklearn MLP", "scaled, 100 hidden units, Adam", _network),
        )
        for task in ("classification", "regression")
    ),
    Entry("IsolationForest", "novelty", "peer", "every 500 on the last 1,000", _isolation),
    Entry("LOF", "novelty", "peer", "every 500 on the last 1,000, standardised", _outlier_factor),
]
