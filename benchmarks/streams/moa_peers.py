"""Forests of MOA by CapyMOA, which needs Java; nothing is on the list where it is not installed."""

from __future__ import annotations

import importlib.util
import shutil
from typing import Any

import numpy as np

from ..data import SEED
from .cases import Case
from .entry import Entry, EventByEvent


class OfMoa(EventByEvent):
    """A classifier or regressor of MOA; its instances are made before the clock runs."""

    def __init__(self, kind: str, case: Case) -> None:
        from capymoa import classifier, regressor
        from capymoa.stream import Schema

        self.is_class = case.task == "classification"
        self.labels = np.unique(case.y) if self.is_class else None
        names = [f"c{i}" for i in range(case.X.shape[1])]
        if self.is_class:
            values = [str(i) for i in range(len(self.labels))]  # type: ignore[arg-type]
            self.schema = Schema.from_custom([*names, "y"], "y", {"y": values}, name=case.name)
        else:
            self.schema = Schema.from_custom([*names, "y"], "y", name=case.name)
        made: Any = getattr(classifier if self.is_class else regressor, kind)
        self.model = made(schema=self.schema, random_seed=SEED, ensemble_size=10)

    def ready(self, X: Any, y: Any) -> Any:
        from capymoa.core import LabeledInstance, RegressionInstance

        if self.is_class:
            codes = np.searchsorted(self.labels, y)
            return [(LabeledInstance.from_array(self.schema, x, int(c)), c) for x, c in zip(X, codes, strict=True)]
        return [(RegressionInstance.from_array(self.schema, x, float(t)), t) for x, t in zip(X, y, strict=True)]

    def one(self, x: Any, y: Any) -> Any:
        found = self.model.predict(x)
        self.model.train(x)
        if not self.is_class:
            return 0.0 if found is None else float(found)
        return None if found is None else self.labels[int(found)]  # type: ignore[index]


def _entry(name: str, task: str, kind: str) -> Entry:
    return Entry(name, task, "peer", f"{kind}, 10 trees, CapyMOA", lambda case: OfMoa(kind, case))


MOA: list[Entry] = []
if importlib.util.find_spec("capymoa") is not None and shutil.which("java") is not None:
    MOA = [
        _entry("MOA ARF(10)", "classification", "AdaptiveRandomForestClassifier"),
        _entry("MOA SRP(10)", "classification", "StreamingRandomPatches"),
        _entry("MOA ARF(10)", "regression", "AdaptiveRandomForestRegressor"),
    ]
