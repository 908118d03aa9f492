"""Log loss and calibration error of our probabilities: along the stream, beside the uncalibrated squashing of the same
scores and River's scaled logistic regression; and on a second half that was not learned, beside scikit-learn's
CalibratedClassifierCV of the same learner: `python -m benchmarks.probabilities [events [streams]]`.

A calibration error over few events is not 0 even where the probabilities are exactly right; "chance" says what it would be
on average if the labels were drawn from these very probabilities.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV

from gristmill import KernelClassifier, Laplacian, Prepared, _core, passive_aggressive
from gristmill.evaluate import ReliabilityDisplay

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


def measured(shares: Any, codes: Any, first: int = FIRST) -> str:
    """Error, log loss, calibration error of the answers in 15 bins after the first events, and that of chance alone."""
    loss = -np.log(np.clip(shares[np.arange(len(codes)), codes], 1e-15, 1)).mean()
    top, right = shares[first:].max(axis=1), shares[first:].argmax(axis=1) == codes[first:]
    off = ReliabilityDisplay(top, right).calibration_error_
    rng = np.random.default_rng(0)
    chance = np.mean([ReliabilityDisplay(top, rng.random(len(top)) < top).calibration_error_ for _ in range(100)])
    return f"{(shares.argmax(axis=1) != codes).mean():9.4f} {loss:9.4f} {off:9.4f} {chance:9.4f}"


def held_out(name: str, title: str, model: Any, case: Case, codes: Any) -> None:
    """The second half, by a learner of the first that learns no more."""
    half = len(codes) // 2
    X, y, later, labels = case.X[:half], codes[:half], case.X[half:], codes[half:]
    known = np.arange(codes.max() + 1)
    fitted = clone(model).partial_fit(X, y, classes=known)
    enough = np.bincount(y)[y] >= 3  # it refuses a class of fewer events than folds
    calibrated = CalibratedClassifierCV(clone(model), cv=3).fit(X[enough], y[enough])
    wide = np.zeros((len(labels), len(known)))
    wide[:, calibrated.classes_] = calibrated.predict_proba(later)
    said = {
        "": fitted.predict_proba(later),
        ", squashed": squashed(fitted.decision_function(later)),
        ", CalibratedClassifierCV": wide,
    }
    for how, shares in said.items():
        print(f"{name:10} {title + how:45} {measured(shares, labels, 0)}", flush=True)


def main(events: int, names: tuple[str, ...] = NAMES) -> None:
    heads = f"{'error':>9} {'log loss':>9} {'calibr.':>9} {'chance':>9}"
    print(f"{'stream':10} {'learner, along the stream':30} {heads}")
    for name in names:
        case = SOURCES[name].case(events)
        labels = np.unique(case.y).tolist()
        codes = np.searchsorted(labels, case.y)
        for title, make in LEARNERS.items():
            scores = make(case.X.shape[1]).prequential(case.X, case.y, classes=labels)
            print(f"{name:10} {title:30} {measured(replayed(scores, codes, len(labels)), codes)}", flush=True)
            print(f"{name:10} {title + ', squashed':30} {measured(squashed(scores), codes)}", flush=True)
        print(f"{name:10} {'River, logistic regression':30} {measured(of_river(case, labels), codes)}", flush=True)
    print(f"\n{'stream':10} {'learner of the first half, on the second':45} {heads}")
    for name in names:
        case = SOURCES[name].case(events)
        codes = np.searchsorted(np.unique(case.y), case.y)
        for title, make in LEARNERS.items():
            held_out(name, title, make(case.X.shape[1]), case, codes)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, tuple(sys.argv[2:]) or NAMES)
