"""`python -m benchmarks structured`: words and classes by `StructuredLearner`, beside bare kernel values and NumPy loops.

The loops of `structured_loops` take the same steps, which is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from gristmill import DropSmallest, Gaussian, MarginProjection, Project, StructuredLearner
from gristmill.streams import drifting_digits
from gristmill.structured import Sequences

from . import structured_loops
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


def same_steps(model: StructuredLearner, steps: Any) -> None:
    """Raise if the stored steps of a loop are not those of the learner."""
    own = np.abs(model.dual_coef_).reshape(len(steps), -1).max(axis=1)  # over tags, and over the rows of a word
    np.testing.assert_allclose(own, steps, rtol=1e-6, atol=1e-9)


def main() -> list[dict[str, Any]]:
    ten = list(range(10))
    X, y = words(300)
    rows, stored = np.concatenate(X), np.concatenate(X[:100])
    Z, labels = drifting_digits(n_events=3000).arrays()
    codes = np.searchsorted(ten, labels)
    sequences = StructuredLearner(Sequences(Gaussian(0.1), 0.1), ten, budget=DropSmallest(100))
    tasks: dict[str, tuple[Any, ...]] = {
        "words of five digits, Viterbi, 100 stored": (
            sequences, X, y, lambda: Gaussian(0.1)(rows, stored), lambda: structured_loops.words(0.1, 0.1, X, y, 10, 100)
        )
    }  # fmt: skip
    for size in (300, 1000):
        tasks[f"ten classes, Implicit, {size:,} stored"] = (
            StructuredLearner(Gaussian(0.0015), ten, budget=DropSmallest(size)),
            Z,
            labels,
            lambda size=size: Gaussian(0.0015)(Z, Z[:size]),
            lambda size=size: structured_loops.classes(0.0015, Z, codes, 10, size),
        )
    projected = StructuredLearner(Gaussian(0.0015), ten, rule=MarginProjection(), budget=Project(0.8))
    tasks["ten classes, Projectron++"] = (projected, Z, labels, None, None)
    found = []
    for name, (model, inputs, targets, bare, loop) in tasks.items():
        if loop is not None:
            same_steps(model.fit(inputs, targets), loop())
        seconds = best(lambda m=model, a=inputs, b=targets: m.fit(a, b))
        row = {"task": name, "us a sample": 1e6 * seconds / len(inputs)}
        row["times the kernel values"] = None if bare is None else seconds / best(bare)
        row["NumPy loop / ours"] = None if loop is None else best(loop) / seconds
        found.append(row)
    show("structured labels", found)
    return found


if __name__ == "__main__":
    main()
