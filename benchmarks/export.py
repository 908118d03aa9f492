"""Exported models beside their own: bytes, deviations, microseconds a row: `python -m benchmarks.export`.

C is compiled by the machine's own `cc -O2`; onnxruntime runs in one thread, as gristmill does.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from gristmill import (
    Additive,
    AutoClassifier,
    AutoNovelty,
    AutoRegressor,
    FeatureLearner,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Merge,
    PassiveAggressive,
    Polynomial,
    Prepared,
    RandomMaclaurin,
)
from gristmill.export import ExportError, to_c, to_json, to_onnx

from .data import SEED

ROWS, ROUNDS = 2000, 5

PROGRAM = """
#include <stdio.h>
#include <time.h>
#include "gm.h"
static double rows[%(rows)d][GM_FEATURES];
int main(void) {
    static gm_num x[GM_FEATURES], work[GM_WORK], scores[GM_OUTPUTS];
    double best = 1e9, sum = 0;
    int round, i, j;
    if (fread(rows, sizeof rows, 1, stdin) != 1) return 1;
    for (round = 0; round < %(rounds)d; ++round) {
        const clock_t began = clock();
        double took;
        for (i = 0; i < %(rows)d; ++i) {
            for (j = 0; j < GM_FEATURES; ++j) x[j] = (gm_num)rows[i][j];
            gm_scores(x, work, scores);
            sum += (double)scores[0];
        }
        took = (double)(clock() - began) / CLOCKS_PER_SEC;
        best = took < best ? took : best;
    }
    printf("%%.17g %%.17g", best, sum);
    return 0;
}
"""


def models(rng: np.random.Generator) -> dict[str, tuple[Any, Any]]:
    """Fitted models, and rows to ask them about."""
    found = {}
    for points, width in ((20, 5), (80, 8), (300, 20), (1000, 50)):
        X = rng.normal(size=(ROWS + 3 * points, width))
        y = X[:, 0] * X[:, 1] > 0
        inner = KernelClassifier(Gaussian(1 / width), PassiveAggressive(), Merge(points))
        found[f"Prepared(KernelClassifier), {points} x {width}"] = Prepared(inner).fit(X, y), X[:ROWS]
    X = rng.normal(size=(ROWS, 8))
    y = np.sin(X[:, 0]) + X[:, 1]
    map_ = RandomMaclaurin(Polynomial(3), 256, random_state=0)
    found["KernelRegressor, additive, 300 x 8"] = (
        KernelRegressor(Additive(Laplacian(1.0)), PassiveAggressive(0.3)).fit(X[:300], y[:300]),
        X,
    )
    found["FeatureLearner, 256 features of 8"] = FeatureLearner(map_, PassiveAggressive()).fit(X / 3, y > 0), X / 3
    found["AutoClassifier, 8 columns"] = AutoClassifier().fit(X, X[:, 0] * X[:, 1] > 0), X
    found["AutoRegressor, 8 columns"] = AutoRegressor().fit(X, y), X
    found["AutoNovelty, 8 columns"] = AutoNovelty().fit(X), X
    return found


def best(run: Callable[[], Any]) -> float:
    """Microseconds of the processor a row."""
    times = []
    for _ in range(ROUNDS):
        began = process_time()
        run()
        times.append(process_time() - began)
    return 1e6 * min(times) / ROWS


def in_onnx(model: Any, X: Any, number: str) -> tuple[int, float, Any]:
    """Bytes, microseconds a row, and the outputs by name."""
    import onnxruntime

    data = to_onnx(model, number).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    feed = {"X": X.astype(number)}
    names = [output.name for output in session.get_outputs()]
    took = best(lambda: session.run(None, feed))
    return len(data), took, dict(zip(names, session.run(None, feed), strict=True))


def in_c(model: Any, X: Any, number: str) -> tuple[int, float] | None:
    """Bytes of the header, and microseconds a row; None where C cannot hold it."""
    try:
        text = to_c(model, number=number, name="gm")
    except ExportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "gm.h").write_text(text)
        (home / "main.c").write_text(PROGRAM % {"rows": ROWS, "rounds": ROUNDS})
        subprocess.run(["cc", "-std=c99", "-O2", str(home / "main.c"), "-o", str(home / "main"), "-lm"], check=True)
        done = subprocess.run([str(home / "main")], input=X.tobytes(), capture_output=True, check=True).stdout.split()
    return len(text), 1e6 * float(done[0]) / ROWS


def main() -> None:
    heads = ["model", "own us", "ONNX bytes", "deviation", "double us", "float32 us", "same labels"]
    heads += ["C bytes", "double us", "float32 us"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, (model, X) in models(np.random.default_rng(SEED)).items():
        X = np.ascontiguousarray(X)
        own = best(lambda model=model, X=X: model.decision_function(X))
        size, took, outputs = in_onnx(model, X, "float64")
        _, single, rough = in_onnx(model, X, "float32")
        found = outputs.get("scores", outputs.get("prediction"))
        expected = np.asarray(model.decision_function(X))
        deviation = np.abs(found - expected).max() / np.abs(expected).max()
        same = f"{(rough['label'] == model.predict(X)).mean():.4f}" if "label" in rough else "-"
        c, c_single = in_c(model, X, "float64"), in_c(model, X, "float32")
        columns = "- | - | -" if c is None or c_single is None else f"{c[0]:,} | {c[1]:.2f} | {c_single[1]:.2f}"
        print(
            f"| {name} | {own:.2f} | {size:,} | {deviation:.1e} | {took:.2f} | {single:.2f} | {same} | {columns} |",
            flush=True,
        )
        assert len(to_json(model)) > 100


if __name__ == "__main__":
    main()
