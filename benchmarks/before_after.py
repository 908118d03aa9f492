"""`python -m benchmarks.before_after OLD_SRC NEW_SRC [WORD ...]`: the same runs by two builds of the package, in turn.

Each argument is a folder that holds a built `gristmill` package (`src` of a checkout after a build in place). Two programs,
one a build, take turns at each run, so that whatever else the machine does falls on both; the least processor time counts.
With words: only runs with one of them in their name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .measure import pin, show

Case = tuple[Callable[[], Any], Any, Any]


def cases() -> dict[str, Case]:
    """A fresh learner, its rows and labels, by name; only what every version of the package has."""
    import scipy.sparse

    import gristmill as gm

    rng = np.random.default_rng(0)
    X, wide = rng.normal(size=(20_000, 20)), rng.normal(size=(6_000, 123))
    y, y_wide = np.where(X[:, 0] * X[:, 1] > 0, 1, -1), np.where(wide[:, 0] > 0, 1, -1)
    sparse = scipy.sparse.csr_array(np.where(rng.random(wide.shape) < 0.11, wide, 0))
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    gauss, narrow, pa = gm.Gaussian(0.05), gm.Gaussian(0.01), gm.PassiveAggressive()

    def classifier(*parts: Any, **how: Any) -> Callable[[], Any]:
        return lambda: gm.KernelClassifier(*parts, **how)

    return {
        "PA-I, newest 100 of 20 columns": (classifier(gauss, pa, gm.DropOldest(100)), X, y),
        "PA-I, newest 800 of 123 columns": (classifier(narrow, pa, gm.DropOldest(800)), wide, y_wide),
        "the same in float32": (classifier(narrow, pa, gm.DropOldest(800)), wide.astype(np.float32), y_wide),
        "the same, sparse": (classifier(narrow, pa, gm.DropOldest(800)), sparse, y_wide),
        "PA-I, Laplacian, largest 500": (classifier(gm.Laplacian(0.1), pa, gm.DropSmallest(500)), X, y),
        "PA-I, averaged, unbounded": (classifier(gauss, pa, gm.Unbounded(), average=True), X[:5000], y[:5000]),
        "Perceptron, unbounded": (classifier(gauss, gm.Perceptron(), gm.Unbounded()), X[:8000], y[:8000]),
        "Projectron++": (lambda: gm.projectron_pp(gauss, 0.5), X[:6000], y[:6000]),
        "Forgetron(300)": (lambda: gm.forgetron(gauss, 300), X, y),
        "ALMA (norm kept)": (classifier(gauss, gm.Alma(0.9), gm.DropOldest(300)), X[:6000], y[:6000]),
        "three classes": (classifier(gauss, pa, gm.DropOldest(300)), X, three),
        "NORMA, window of 500": (lambda: gm.norma_classifier(gauss, 0.2, 0.01, window=500), X, y),
        "regression": (
            lambda: gm.KernelRegressor(gauss, gm.SGD(gm.Squared(), 0.1, 0.01), gm.DropOldest(300)),
            X,
            X[:, 0],
        ),
        "novelty": (lambda: gm.norma_novelty(gauss, nu=0.05, rate=0.05, size=200), X, None),
        "additive, Laplacian": (
            lambda: gm.KernelRegressor(gm.Additive(gm.Laplacian(1.0)), budget=gm.DropOldest(500)),
            X[:6000],
            X[:6000, 0],
        ),
        "random Maclaurin, 300": (
            lambda: gm.FeatureLearner(gm.RandomMaclaurin(gm.Exponential(), 300, random_state=0), pa),
            X[:6000],
            y[:6000],
        ),
        "AutoClassifier, 8 columns": (lambda: gm.AutoClassifier(), X[:, :8], y),
        "AutoRegressor, 8 columns": (lambda: gm.AutoRegressor(), X[:8000, :8], X[:8000, 0] * X[:8000, 1]),
        "AutoNovelty, 8 columns": (lambda: gm.AutoNovelty(), X[:8000, :8], None),
        "Prepared, 20 columns": (lambda: gm.Prepared(gm.KernelClassifier(random_state=0)), X, y),
        "Prepared by relevance": (
            lambda: gm.Prepared(gm.KernelClassifier(random_state=0), "relevance"),
            X[:8000],
            y[:8000],
        ),
        "AUC, linear, buffer 100": (lambda: gm.PairwiseAUC(buffer=gm.ReservoirX(100), random_state=0), X, y),
    }


def loops() -> dict[str, Callable[[], None]]:
    """Lone events."""
    import gristmill as gm

    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 20))
    y = np.where(X[:, 0] > 0, 1, -1).tolist()

    def begin() -> Any:
        return gm.KernelClassifier(gm.Gaussian(0.05), gm.PassiveAggressive(), gm.DropOldest(100))

    model = begin().fit(X[:500], y[:500])

    def learn() -> None:
        for x, label in zip(X, y, strict=True):
            model.learn_one(x, label)

    def predict() -> None:
        for x in X:
            model.predict_one(x)

    def first() -> None:
        for x in X[:300]:
            begin().learn_one(x, 1)

    return {"3,000 learn_one": learn, "3,000 predict_one": predict, "300 first learn_one": first}


def serve() -> None:
    """Seconds of each run that is asked for, a line each."""
    runs, lone = cases(), loops()
    print(json.dumps([*runs, *lone]), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name in lone:
            work = lone[name]
        else:
            make, X, y = runs[name]
            learn = make().partial_fit
            work = (lambda learn=learn, X=X: learn(X)) if y is None else (lambda learn=learn, X=X, y=y: learn(X, y))
        start = time.thread_time()
        work()
        print(time.thread_time() - start, flush=True)


def program(source: str) -> subprocess.Popen[str]:
    here = str(Path(__file__).resolve().parent.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(source).resolve()), here])}
    command = [sys.executable, "-m", "benchmarks.before_after", "--serve"]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def asked(of: subprocess.Popen[str], name: str) -> float:
    assert of.stdin is not None
    assert of.stdout is not None
    print(name, file=of.stdin, flush=True)
    return float(of.stdout.readline())


def main(old: str, new: str, *words: str, seconds: float = 4.0) -> None:
    pin()
    programs = [program(old), program(new)]
    names = [json.loads(p.stdout.readline()) for p in programs if p.stdout is not None][-1]
    rows = []
    for name in names:
        if words and not any(word in name for word in words):
            continue
        times: list[list[float]] = []
        while len(times) < 5 or np.sum(times) < seconds:
            times.append([asked(p, name) for p in programs])
        before, after = (min(column) for column in zip(*times, strict=True))
        rows.append({"run": name, "before, s": before, "after, s": after, "ratio": after / before})
        print(f"{name}: {after / before:.3f}", file=sys.stderr)
    show("before and after, the least of many in turn", rows)
    for p in programs:
        p.terminate()


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    elif len(sys.argv) > 2:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
