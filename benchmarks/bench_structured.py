"""`python -m benchmarks structured`: words and classes by `StructuredLearner`, beside the bare kernel values."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from gristmill import DropSmallest, Gaussian, MarginProjection, Project, StructuredLearner
from gristmill.streams import drifting_digits
from gristmill.structured import Sequences

from .measure import best, show

Floats = np.ndarray[Any, np.dtype[np.float64]]


def words(count: int, length: int = 5, seed: int = 0) -> tuple[list[Floats], list[tuple[int, ...]]]:
    """Sequences of digits with noise, in which a digit is mostly followed by one of three others."""
    rng = np.random.default_rng(seed)
    images, digits = load_digits(return_X_y=True)
    followers = [rng.permutation(10)[:3] for _ in range(10)]
    X, y = [], []
    for _ in range(count):
        word = [int(rng.integers(10))]
        while len(word) < length:
            word.append(int(rng.choice(followers[word[-1]]) if rng.random() < 0.9 else rng.integers(10)))
        rows = [rng.choice(np.flatnonzero(digits == digit)) for digit in word]
        X.append(images[rows] / 16 + 0.3 * rng.normal(size=(length, 64)))
        y.append(tuple(word))
    return X, y


def main() -> list[dict[str, Any]]:
    ten = list(range(10))
    X, y = words(300)
    sequences = Sequences(Gaussian(0.1), 0.1)
    learner = StructuredLearner(sequences, ten, budget=DropSmallest(100)).fit(X, y)
    rows, stored = np.concatenate(X), np.concatenate(learner.support_vectors_)
    Z, labels = drifting_digits(n_events=3000).arrays()
    few = StructuredLearner(Gaussian(0.0015), ten, budget=DropSmallest(300))
    folded = StructuredLearner(Gaussian(0.0015), ten, rule=MarginProjection(), budget=Project(0.8))
    tasks = {
        "words of five digits, 100 stored": (learner, X, y, lambda: Gaussian(0.1)(rows, stored)),
        "ten classes, Implicit, 300 stored": (few, Z, labels, lambda: Gaussian(0.0015)(Z, Z[:300])),
        "ten classes, Projectron++": (folded, Z, labels, None),
    }
    found = []
    for name, (model, inputs, targets, bare) in tasks.items():
        seconds = best(lambda m=model, a=inputs, b=targets: m.fit(a, b))
        ratio = None if bare is None else seconds / best(bare)
        found.append({"task": name, "us a sample": 1e6 * seconds / len(inputs), "times the kernel values": ratio})
    show("structured labels", found)
    return found


if __name__ == "__main__":
    main()
