"""Prequential log loss and calibration error of our probabilities, beside the uncalibrated squashing of the same scores and
River's scaled logistic regression: `python -m benchmarks.probabilities [events]`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gristmill import KernelClassifier, Laplacian, Prepared, _core, passive_aggressive

from .streams.cases import SOURCES, Case
from .streams.river_peers import _linear

NAMES = ("elec2", "Phishing", "ijcnn1", "usps", "nursery")
FIRST = 1000  # calibration is judged after so many events
LEARNERS = {
    "KernelClassifier()": lambda d: Prepared(KernelClassifier(random_state=0)),
    "PA-I, size=1000": lambda d: Prepared(passive_aggressive(Laplacian(3 / d), size=1000, random_state=0)),
}


def replayed(scores: Any, codes: Any, classes: int) -> Any:
    """What the learner's own calibration said of each event before it learned it, with all classes known from the start."""
    rows = np.ascontiguousarray(scores.reshape(len(scores), -1))
    calibration = _core.Calibration()
    if classes > 2:
        calibration.split()
        for _ in range(classes - 2):
            calibration.add()
    said = np.empty((len(rows), classes))
    for i, code in enumerate(codes):
        said[i] = calibration.probabilities(rows[i : i + 1], classes)[0]
        calibration.learn(rows[i], int(code))
    return said


def squashed(scores: Any) -> Any:
    """The logistic function or the softmax of the scores as they are."""
    logits = np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def of_river(case: Case, labels: list[Any]) -> Any:
    model, names = _linear(case), [f"c{i}" for i in range(case.X.shape[1])]
    two = len(labels) == 2
    said = np.full((len(case.y), len(labels)), 1 / len(labels))
    for i, (x, y) in enumerate(zip(case.X.tolist(), case.y.tolist(), strict=True)):
        row = dict(zip(names, x, strict=True))
        chances = model.predict_proba_one(row)
        if chances:
            said[i] = [chances.get((label == labels[1]) if two else label, 0.0) for label in labels]
        model.learn_one(row, (y == labels[1]) if two else y)
    return said


def measured(shares: Any, codes: Any) -> str:
    """Error, log loss, and the calibration error of the answer in 15 bins after the first events."""
    loss = -np.log(np.clip(shares[np.arange(len(codes)), codes], 1e-15, 1)).mean()
    top, right = shares[FIRST:].max(axis=1), shares[FIRST:].argmax(axis=1) == codes[FIRST:]
    bins = np.minimum((top * 15).astype(int), 14)
    off = sum(abs((top - right)[bins == b].sum()) for b in range(15)) / max(len(top), 1)
    return f"{(shares.argmax(axis=1) != codes).mean():9.4f} {loss:9.4f} {off:9.4f}"


def main(events: int) -> None:
    print(f"{'stream':10} {'learner':30} {'error':>9} {'log loss':>9} {'calibr.':>9}")
    for name in NAMES:
        case = SOURCES[name].case(events)
        labels = np.unique(case.y).tolist()
        codes = np.searchsorted(labels, case.y)
        for title, make in LEARNERS.items():
            scores = make(case.X.shape[1]).prequential(case.X, case.y, classes=labels)
            print(f"{name:10} {title:30} {measured(replayed(scores, codes, len(labels)), codes)}", flush=True)
            print(f"{name:10} {title + ', squashed':30} {measured(squashed(scores), codes)}", flush=True)
        print(f"{name:10} {'River, logistic regression':30} {measured(of_river(case, labels), codes)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
