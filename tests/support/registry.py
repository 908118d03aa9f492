"""One door to everything public that learns on a stream: how it is made, learns, answers and is measured.

As a program: digests of what each says after a stream, as JSON, for test_promises.py under each instruction set.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from typing import Any

import numpy as np
import public_learners

from gristmill import Fleet, KernelClassifier, KernelRegressor, KeyedFleet, Prepared, _core
from gristmill.budgets import DropOldest, Merge
from gristmill.kernels import Gaussian, Laplacian
from gristmill.streams import StreamScaler

#: learns on a stream and is public, but not on the list of doors, each with the reason
EXEMPT = {
    "FeatureLearner": "makes a FeatureClassifier, FeatureRegressor or FeatureNovelty",
    "Race": "makes a RaceClassifier or RaceRegressor",
    "BackgroundSubtractor": "frames in front of a Fleet, one member a pixel: test_video.py",
    "ShardedFleet": "lives on Ray: test_cluster_shards.py and test_cluster_ray.py hold it to a KeyedFleet, bit for bit",
    "Classifier": "an adapter for River over a learner of this list: test_river.py, with River's own checks",
    "Regressor": "as Classifier",
    "AnomalyDetector": "as Classifier",
}
#: doors beside that of the class, for a parameter that changes how it learns
VARIANTS = {"KeyedFleet(center=True)"}


class Door:
    """A learner of rows and labels; others say what is different."""

    saves = True
    takes: tuple[str, ...] = ()  #: damages that it takes for data

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def small(self) -> dict[str, Any]:
        """What a short stream fills, where the default is larger."""
        if self.name.startswith("Race"):
            kind = KernelRegressor if self.name.endswith("Regressor") else KernelClassifier
            return {"experts": [kind(budget=DropOldest(20)), Prepared(kind(Laplacian(3.0), budget=Merge(20)))]}
        budget = Merge(20) if self.name in ("KernelPCA", "KernelKMeans") else DropOldest(20)
        given = {"budget": budget, "memory": "60 kB", "n_landmarks": 20, "freeze": 100}
        kind = public_learners.public().get(self.name)
        known = {} if kind is None else inspect.signature(kind).parameters
        return {key: value for key, value in given.items() if key in known}

    def made(self, **given: Any) -> Any:
        return public_learners.made(self.name, **given)

    def stream(self, count: int) -> tuple[Any, Any]:
        X, y = public_learners.stream(self.name, count)
        return X, None if self.name.endswith(("Novelty", "PCA", "KMeans")) else y

    def some(self, y: Any, start: int, end: int) -> Any:
        return None if y is None else y[start:end]

    def learn(self, model: Any, X: Any, y: Any) -> Any:
        return model.partial_fit(X) if y is None else model.partial_fit(X, y)

    def learned(self, X: Any, y: Any) -> Any:
        return self.learn(self.made(), X, y)

    def said(self, model: Any, X: Any) -> bytes:
        return np.ascontiguousarray(public_learners.answers(model, X)).tobytes()

    def memory(self, model: Any) -> int:
        return int(model.memory_bytes_)


class OfPrepared(Door):
    takes = ("nan", "infinity", "narrow", "wide", "text")  # gaps, other columns and words are what it is for

    def made(self, **given: Any) -> Any:
        return Prepared(KernelClassifier(Gaussian(1.0), budget=DropOldest(20)))


class OfFleet(Door):
    """Each event goes to two members."""

    def made(self, **given: Any) -> Any:
        return Fleet(KernelClassifier(Gaussian(1.0), budget=DropOldest(20)), 2)

    def learn(self, model: Any, X: Any, y: Any) -> Any:
        return model.partial_fit(np.repeat(X[:, None], 2, axis=1), np.repeat(y[:, None], 2, axis=1))

    def said(self, model: Any, X: Any) -> bytes:
        return bytes(model.decision_function(np.repeat(X[:, None], 2, axis=1)).tobytes())


class OfKeyedFleet(Door):
    def made(self, **given: Any) -> Any:
        return KeyedFleet(KernelClassifier(Gaussian(1.0), budget=DropOldest(20)))

    @staticmethod
    def keys(X: Any) -> Any:
        return np.arange(len(X)) % 3 if X.dtype == object else (np.nan_to_num(X[:, 0], posinf=0) * 1000).astype(int) % 3

    def learn(self, model: Any, X: Any, y: Any) -> Any:
        return model.partial_fit(self.keys(X), X, y)

    def said(self, model: Any, X: Any) -> bytes:
        return bytes(model.decision_function(self.keys(X), X).tobytes())


class OfCenteredKeyedFleet(OfKeyedFleet):
    def made(self, **given: Any) -> Any:
        return KeyedFleet(KernelRegressor(Gaussian(1.0), budget=DropOldest(20)), center=True)


class OfScaler(Door):
    """A part of a pipeline: it is saved with one."""

    saves = False
    takes = ("wide", "narrow")

    def made(self, **given: Any) -> Any:
        return StreamScaler()

    def stream(self, count: int) -> tuple[Any, Any]:
        return super().stream(count)[0], None

    def said(self, model: Any, X: Any) -> bytes:
        return bytes(np.ascontiguousarray(model.transform(X)).tobytes())

    def memory(self, model: Any) -> int:
        return int(model.memory_bytes)


DOORS: dict[str, Door] = {name: Door(name) for name in public_learners.public()} | {
    "Prepared": OfPrepared("Prepared"),
    "Fleet": OfFleet("Fleet"),
    "KeyedFleet": OfKeyedFleet("KeyedFleet"),
    "KeyedFleet(center=True)": OfCenteredKeyedFleet("KeyedFleet(center=True)"),
    "StreamScaler": OfScaler("StreamScaler"),
}


def main() -> None:
    found = {"isa": _core.isa()}
    for name, door in DOORS.items():
        X, y = door.stream(150)
        found[name] = hashlib.sha256(door.said(door.learned(X, y), X)).hexdigest()[:16]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
