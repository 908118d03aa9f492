"""The foundation: look-ahead against bare BLAS, single events against River, sparse against dense, flat cost, import."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np

from gristmill import DropOldest, Gaussian, KernelClassifier, Perceptron

from .measure import best, product_seconds, show


def stream(events: int, features: int, dtype: Any, seed: int = 0) -> tuple[Any, Any]:
    """Noisy linear labels on uniform inputs: about a fifth of the events are mistakes, so the dictionary keeps moving."""
    rng = np.random.default_rng(seed)
    X = rng.random((events, features)).astype(dtype)
    y = np.where((X - 0.5) @ rng.normal(size=features) + 0.5 * rng.normal(size=events) > 0, 1, -1)
    return X, y


def full(features: int, size: int, dtype: Any) -> KernelClassifier:
    """A Perceptron whose dictionary is full: random labels are mistaken every other time."""
    rng = np.random.default_rng(1)
    model = KernelClassifier(Gaussian(5.0 / features), Perceptron(), DropOldest(size))
    while getattr(model, "n_support_", 0) < size:
        X = rng.random((size, features)).astype(dtype)
        model.partial_fit(X, np.where(rng.random(size) > 0.5, 1, -1), classes=[-1, 1])
    return model


def look_ahead() -> list[dict[str, Any]]:
    """Whole prequential runs against the bare matrix products of the same shapes."""
    rows = []
    for events, features, size in ((32_561, 123, 800), (32_561, 123, 4_000), (8_000, 784, 8_000)):
        double = 0.0
        for dtype in (np.float64, np.float32):
            X, y = stream(events, features, dtype)
            bare = product_seconds(X, np.ascontiguousarray(X[:size]))
            models = iter([full(features, size, dtype) for _ in range(3)])
            ours = best(lambda X=X, y=y, models=models: next(models).prequential(X, y))
            double = ours if dtype is np.float64 else double
            rows.append(
                {
                    "events": events,
                    "features": features,
                    "stored": size,
                    "type": np.dtype(dtype).name,
                    "seconds": ours,
                    "bare BLAS": bare,
                    "ratio": ours / bare,
                    "to float64": ours / double,
                }
            )
    return rows


def single_events() -> list[dict[str, Any]]:
    """learn_one with a NumPy row against River's pipeline, and against the core's own time."""
    from river import feature_extraction, linear_model

    features, size, events = 20, 100, 20_000
    X, y = stream(events, features, np.float64)
    model = full(features, size, np.float64)
    labels = y.tolist()

    def one_by_one() -> None:
        for x, label in zip(X, labels, strict=True):
            model.learn_one(x, label)

    ours = best(one_by_one) / events
    chunk = best(lambda: model.partial_fit(X, y)) / events
    river = feature_extraction.RBFSampler(n_components=100, seed=1) | linear_model.LogisticRegression()
    dicts = [dict(enumerate(x)) for x in X[:1000].tolist()]

    def peer() -> None:
        for x, label in zip(dicts, labels, strict=False):
            river.learn_one(x, label > 0)

    theirs = best(peer, 2) / len(dicts)
    return [
        {
            "features": features,
            "stored": size,
            "learn_one, us": 1e6 * ours,
            "in a chunk, us": 1e6 * chunk,
            "above the core, us": 1e6 * (ours - chunk),
            "River, us": 1e6 * theirs,
            "times River": theirs / ours,
        }
    ]


def sparse() -> list[dict[str, Any]]:
    """CSR rows: a9a's shape against dense, and a width that no dense row could have."""
    from scipy.sparse import csr_array, random_array

    rng = np.random.default_rng(0)
    events, width, each = 32_561, 123, 14
    columns = np.sort(rng.random((events, width)).argsort(axis=1)[:, :each], axis=1)
    X = csr_array(
        (np.ones(events * each), columns.ravel(), np.arange(0, events * each + 1, each)), shape=(events, width)
    )
    dense = X.toarray()
    y = np.where(dense @ rng.normal(size=width) > 0, 1, -1)

    def run(rows: Any) -> float:
        return best(lambda: KernelClassifier(Gaussian(0.04), Perceptron(), DropOldest(800)).fit(rows, y))

    on_dense, on_sparse = run(dense), run(X)
    rows = [
        {
            "shape": f"{events} x {width}, {each} non-zeros",
            "CSR, s": on_sparse,
            "dense, s": on_dense,
            "times dense": on_dense / on_sparse,
        }
    ]
    events, width, each = 20_000, 100_000, 80
    wide = random_array((events, width), density=each / width, format="csr", rng=rng)
    y = np.where(np.asarray(wide @ rng.normal(size=width)) > 0, 1, -1)
    model = KernelClassifier(Gaussian(0.01), Perceptron(), DropOldest(1000))
    seconds = best(lambda: model.fit(wide, y), 1)
    stored = model.support_vectors_.nnz
    rows.append(
        {
            "shape": f"{events} x {width}, {each} non-zeros",
            "CSR, s": seconds,
            "bytes a stored non-zero": model.memory_bytes_ / stored,
        }
    )
    return rows


def flat_cost() -> list[dict[str, Any]]:
    """Cost per event and memory do not grow once the budget is full."""
    tenth = 100_000
    model = full(10, 200, np.float64)
    times, sizes = [], []
    for part in range(10):
        X, y = stream(tenth, 10, np.float64, seed=part)
        start = time.thread_time()
        model.partial_fit(X, y)
        times.append(time.thread_time() - start)
        sizes.append(model.memory_bytes_)
    return [
        {
            "events": 10 * tenth,
            "first tenth, s": times[0],
            "last tenth, s": times[-1],
            "last/first": times[-1] / times[0],
            "bytes at first": sizes[0],
            "bytes at last": sizes[-1],
        }
    ]


def import_time() -> list[dict[str, Any]]:
    """What `import gristmill` and its estimators add to numpy and scikit-learn."""
    code = (
        "import time, numpy, sklearn.base, sklearn.utils.validation, sklearn.utils.multiclass, scipy.sparse;"
        "a = time.thread_time(); import gristmill; b = time.thread_time(); gristmill.KernelClassifier;"
        "c = time.thread_time(); print(b - a, c - b)"
    )
    runs = [
        [float(x) for x in subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()]
        for _ in range(5)
    ]
    return [{"import gristmill, s": min(r[0] for r in runs), "and an estimator, s": min(r[1] for r in runs)}]


def main() -> dict[str, Any]:
    results = {}
    for part in (look_ahead, single_events, sparse, flat_cost, import_time):
        results[part.__name__] = part()
        show(part.__doc__ or "", results[part.__name__])
    return results
