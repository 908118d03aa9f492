"""The online family on the papers' data: mistakes, stored points, seconds, memory. Needs a data home (GRISTMILL_DATA)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gristmill
from gristmill import Gaussian, Polynomial, datasets

from .measure import best, product_seconds, show

# Seconds of the paper (MATLAB, 2009) and of the best native program people could get on a machine like the one this was
# first run on; None where there is no number.
QUOTED = {
    "perceptron": (130, 6.8),
    "passive_aggressive": (375, 14.3),
    "forgetron": (None, 1.9),
    "random_budget_perceptron": (None, 1.6),
    "projectron": (40, 22),
    "projectron_pp": (None, 28),
}


def loaded(name: str) -> tuple[Any, Any]:
    X, y = datasets.load(name).arrays()
    return X, np.asarray(y)


def learners(kernel: Any, tolerance: float, classes: int) -> dict[str, Callable[[int], Any]]:
    """By name, made with the number of points that a budget may keep; Projectron++ comes first and sets that number."""
    made = {
        "projectron_pp": lambda size: gristmill.projectron_pp(kernel, tolerance),
        "projectron_pp, squared": lambda size: gristmill.projectron_pp(kernel, tolerance, squared=True),
        "projectron": lambda size: gristmill.projectron(kernel, tolerance),
        "perceptron": lambda size: gristmill.perceptron(kernel),
        "passive_aggressive": lambda size: gristmill.passive_aggressive(kernel, C=1.0),
        "random_budget_perceptron": lambda size: gristmill.random_budget_perceptron(kernel, size, random_state=0),
    }
    if classes == 2:
        made["forgetron"] = lambda size: gristmill.forgetron(kernel, size)
    return made


def mistakes(scores: Any, y: Any, classes: Any) -> int:
    """From scores, never from labels: a score of 0 is a mistake for either class."""
    if scores.ndim == 1:
        return int(np.sum(scores * np.where(y == classes[1], 1, -1) <= 0))
    own = np.searchsorted(classes, y)
    rows = np.arange(len(y))
    rivals = scores.copy()
    rivals[rows, own] = -np.inf
    return int(np.sum(scores[rows, own] <= rivals.max(axis=1)))


def one_pass(
    name: str, y: Any, kinds: dict[str, Any], made: dict[str, Callable[[int], Any]], size: int | None = None
) -> list[dict[str, Any]]:
    """One row a learner and kind of input; without a size the budgets get as many points as Projectron++ stored."""
    classes = np.unique(y)
    dense = next(rows for rows in kinds.values() if isinstance(rows, np.ndarray))
    rows = []
    for learner, make in made.items():
        for kind, data in kinds.items():
            kept: dict[str, Any] = {}

            def work(data: Any = data, make: Any = make, kept: Any = kept, size: int = size or 0) -> None:
                kept["model"] = make(size)
                kept["scores"] = kept["model"].prequential(data, y)

            seconds = best(work, 1 if dense.size > 20_000_000 else 2)
            model = kept["model"]
            size = size or model.n_support_
            bare = product_seconds(dense, np.ascontiguousarray(dense[: max(model.n_support_, 1)]))
            paper, native = QUOTED.get(learner.split(",")[0], (None, None)) if name == "a9a" else (None, None)
            rows.append(
                {
                    "data": name,
                    "learner": learner,
                    "rows": kind,
                    "mistakes": mistakes(kept["scores"], y, classes),
                    "stored": model.n_support_,
                    "seconds": seconds,
                    "MB": model.memory_bytes_ / 1e6,
                    "to BLAS of final shape": seconds / bare,
                    "paper, s": paper,
                    "times native": None if native is None else native / seconds,
                }
            )
            print(f"  {name} {learner} {kind}: {seconds:.2f} s", flush=True)
    return rows


def small() -> list[dict[str, Any]]:
    """a9a and ijcnn1, two classes."""
    X, y = loaded("a9a")
    dense = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    from scipy.sparse import csr_array

    made = learners(Gaussian(0.04), 0.1**0.5, 2)
    rows = one_pass("a9a", y, {"dense": dense, "CSR": csr_array(dense)}, made, size=793)
    X, y = loaded("ijcnn1")
    dense = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return rows + one_pass("ijcnn1", y, {"dense": dense}, learners(Gaussian(8.0), 0.1**0.5, 2))


def digits() -> list[dict[str, Any]]:
    """usps and mnist, ten classes, polynomial kernels of unit length inputs."""
    rows = []
    for name, degree, tolerance in (("usps", 13, 0.8), ("mnist", 7, 0.7)):
        X, y = loaded(name)
        X = np.ascontiguousarray(X, dtype=np.float64)
        if name == "usps":
            X = (X + 1) / 2
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        kernel = 0.5 * Polynomial(degree, 0.5, 0.5)  # Theorem 6 of the paper asks for k(x, x) <= 1/2
        made = learners(kernel, tolerance, 10)
        del made["projectron"]
        rows += one_pass(name, y, {"dense": X}, made)
    return rows


def silk() -> list[dict[str, Any]]:
    """SILK with 128 points on mnist 0-4 against 5-9, polynomial of degree 9."""
    X, digit = loaded("mnist")
    X = np.ascontiguousarray(X, dtype=np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(digit < 5, -1, 1)
    model = gristmill.ilk_classifier(Polynomial(9, 1.0, 0.0), C=1.0, size=128)
    kept: dict[str, Any] = {}
    seconds = best(lambda: kept.update(scores=model.prequential(X, y)), 1)
    wrong = kept["scores"] * y <= 0
    return [
        {
            "events": len(y),
            "stored": model.n_support_,
            "events/s": len(y) / seconds,
            "error": float(wrong.mean()),
            **{f"error to {part}": float(wrong[:part].mean()) for part in (1000, 10_000, 30_000)},
        }
    ]


def main() -> dict[str, Any]:
    try:
        datasets.path_of("a9a")
    except Exception as missing:
        print(f"\nThe online family needs the papers' data: {missing}")
        return {}
    results = {}
    for part in (small, digits, silk):
        results[part.__name__] = part()
        show(part.__doc__ or "", results[part.__name__])
    return results
