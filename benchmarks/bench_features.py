"""Random maps: speed of the transform, error against scikit-learn's maps, events a second of FeatureLearner.

Run by itself: `python -m benchmarks.bench_features`. One core; every ratio is between numbers of one run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch

from gristmill import (
    Exponential,
    FeatureLearner,
    Gaussian,
    KernelClassifier,
    PassiveAggressive,
    Polynomial,
    RandomMaclaurin,
)
from gristmill.budgets import DropOldest

from .measure import best, show

PLAIN = {"stratified": False, "signs": "real"}


def unit_rows(n: int, d: int, seed: int = 0, positive: bool = False, dtype: Any = np.float64) -> Any:
    X = np.random.default_rng(seed).normal(size=(n, d))
    X = np.abs(X) if positive else X
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(dtype)


# ---- speed of the transform --------------------------------------------------------------------------------


def transform_speed() -> list[dict[str, Any]]:
    """20,000 x 123 to 500 features, beside a product of as many projections and a sketch."""
    results = []
    maps: list[tuple[str, Any, dict[str, Any]]] = [
        ("exponential, plain law", Exponential(1.0), PLAIN),
        ("exponential, default", Exponential(1.0), {}),
        ("exponential, structured", Exponential(1.0), {"structured": True}),
        ("polynomial 3, default", Polynomial(3), {}),
        ("polynomial 10, default", Polynomial(10), {}),
    ]
    for dtype in (np.float64, np.float32):
        X = unit_rows(20_000, 123, dtype=dtype)
        sketch = PolynomialCountSketch(degree=3, coef0=1, n_components=500, random_state=0).fit(X)
        sketch_time = best(lambda X=X, s=sketch: s.transform(X), 3)
        for name, kernel, options in maps:
            model = RandomMaclaurin(kernel, 500, random_state=0, **options).fit(X)
            signs = np.random.default_rng(0).choice([-1.0, 1.0], (123, int(model.degrees_.sum()))).astype(dtype)
            # Turn about, so that a busy moment of the machine meets both.
            times = [
                (best(lambda m=model, X=X: m.transform(X), 1), best(lambda X=X, w=signs: X @ w, 1)) for _ in range(9)
            ]
            ours, product = (min(t[i] for t in times) for i in (0, 1))
            results.append(
                {
                    "map": name, "dtype": np.dtype(dtype).name, "projections": int(model.degrees_.sum()),
                    "milliseconds": 1e3 * ours, "of the bare product": ours / product,
                    "faster than sketch": sketch_time / ours,
                }
            )  # fmt: skip
    return results


def structured_speed() -> list[dict[str, Any]]:
    """Signed Hadamard against independent signs at 4,096 inputs."""
    results = []
    for dtype in (np.float64, np.float32):
        X = unit_rows(1_000, 4_096, dtype=dtype)
        for size in (500, 4_096):
            dense, fast = (
                RandomMaclaurin(Exponential(1.0), size, random_state=0, structured=s).fit(X) for s in (False, True)
            )
            slow, quick = (
                best(lambda m=dense, X=X: m.transform(X), 3),
                best(lambda m=fast, X=X: m.transform(X), 5),
            )
            results.append(
                {
                    "features": size, "dtype": np.dtype(dtype).name, "independent ms": 1e3 * slow,
                    "structured ms": 1e3 * quick, "times faster": slow / quick,
                }
            )  # fmt: skip
    return results


# ---- error -------------------------------------------------------------------------------------------------


def error_of(make: Callable[[int], Any], X: Any, K: Any, seeds: int) -> float:
    """Root mean square over seeds of |K' - K|_F / |K|_F."""
    squares = []
    for seed in range(seeds):
        Z = make(seed).fit_transform(X)
        squares.append(np.sum((Z @ Z.T - K) ** 2) / np.sum(K**2))
    return float(np.sqrt(np.mean(squares)))


def approximation(seeds: int = 8) -> list[dict[str, Any]]:
    """Error at equal numbers of features on unit-norm rows, signed and non-negative, 50 inputs."""
    results = []
    kernels = [(f"(1+t)^{n}/2^{n}", Polynomial(n, gamma=0.5, coef0=0.5)) for n in (2, 5, 10)]
    kernels += [(f"t^{n}", Polynomial(n, coef0=0.0)) for n in (2, 5, 10)]
    for positive in (False, True):
        X = unit_rows(300, 50, positive=positive)
        for name, kernel in [*kernels, ("exp(t)", Exponential(1.0))]:
            K = kernel(X, X)
            for size in (100, 500, 2_000):
                row: dict[str, Any] = {
                    "data": "positive" if positive else "signed",
                    "kernel": name,
                    "features": size,
                }
                for label, options in OPTIONS.items():
                    lead = 51 if options.get("exact_low_order") and not name.startswith("t^") else 0
                    count = size - lead
                    row[label] = error_of(
                        lambda s, k=kernel, o=options, c=count: RandomMaclaurin(k, c, random_state=s, **o),
                        X,
                        K,
                        seeds,
                    )
                row |= rivals(kernel, X, K, size, seeds)
                results.append(row)
    return results


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "default": {},
    "structured": {"structured": True},
    "optimal": {"measure": "optimal"},
    "H0/1 optimal": {"measure": "optimal", "exact_low_order": True, "structured": True},
}


def rivals(kernel: Any, X: Any, K: Any, size: int, seeds: int) -> dict[str, float]:
    out = {"count sketch": float("nan"), "Nystroem": float("nan")}
    if isinstance(kernel, Polynomial):
        parts = {"degree": kernel.degree, "gamma": kernel.gamma, "coef0": kernel.coef0}
        out["count sketch"] = error_of(
            lambda s: PolynomialCountSketch(**parts, n_components=size, random_state=s), X, K, seeds
        )
    if size <= len(X):
        out["Nystroem"] = error_of(
            lambda s: Nystroem(kernel=lambda x, y: kernel(x, y), n_components=size, random_state=s), X, K, 3
        )
    return out


# ---- learning ----------------------------------------------------------------------------------------------


def learner_speed() -> list[dict[str, Any]]:
    """Microseconds an event, in chunks and one by one, beside a kernel learner of 500 points."""
    X = unit_rows(20_000, 50)
    y = X[:, 0] * X[:, 1] > 0
    models = {
        "FeatureLearner, 500 features": FeatureLearner(
            RandomMaclaurin(Polynomial(2), 500, random_state=0), PassiveAggressive()
        ),
        "KernelClassifier, 500 points": KernelClassifier(Gaussian(1.0), PassiveAggressive(), DropOldest(500)),
    }
    results = []
    for name, model in models.items():
        model.fit(X[:2_000], y[:2_000])
        chunk = best(lambda m=model: m.partial_fit(X, y), 3) / len(X)

        def one_by_one(m: Any = model) -> None:
            for i in range(2_000):
                m.learn_one(X[i], y[i])

        results.append(
            {
                "model": name, "us an event, chunk": 1e6 * chunk,
                "us an event, learn_one": 1e6 * best(one_by_one, 3) / 2_000,
                "kilobytes": model.memory_bytes_ / 1024,
            }
        )  # fmt: skip
    return results


def main() -> dict[str, Any]:
    """Print the tables and return them."""
    from threadpoolctl import threadpool_limits

    out: dict[str, Any] = {}
    with threadpool_limits(1):
        for title, run in (
            ("transform of 20,000 x 123 to 500 features", transform_speed),
            ("structured projections, 1,000 x 4,096", structured_speed),
            ("relative error of the kernel matrix, 300 unit rows, 50 inputs", approximation),
            ("learning, 50 inputs", learner_speed),
        ):
            rows = run()
            out[title] = rows
            show(title, rows)
    return out


if __name__ == "__main__":
    main()
