"""Random compositions: kernels within kernels, rules, budgets, scalings, labels of any kind, odd columns, races, maps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import gristmill as g
from gristmill.race import baselines

TEXTS = [
    "",
    " ",
    "a",
    "b",
    "ü",
    "\n",
    'q"uote',
    "back\\slash",
    "*/",
    "??/",
    "%s",
    "\u2028",
    "\x00",
    "nan",
    "None",
    "0",
    "e\u0301",
]
TASKS = ("classification", "classification", "regression", "novelty")


class Case(NamedTuple):
    """A fitted model, rows to ask it about, and how far from the library an export may be."""

    model: Any
    rows: Any
    limit: float = 1e-12


def kernel(rng: np.random.Generator, depth: int = 0) -> Any:
    def number(*some):
        return float(rng.choice(some))

    def inner():
        return kernel(rng, depth + 1)

    leaves = [
        g.Linear,
        lambda: g.Polynomial(int(rng.integers(1, 5)), number(0.1, 0.3), number(0.0, 1.0)),
        lambda: g.Gaussian(number(0.05, 0.5, 2.0)),
        lambda: g.Laplacian(number(0.05, 0.4, 3.0)),
        lambda: g.Exponential(3.0),
        lambda: g.Sigmoid(0.2, 0.1),
        g.Manhattan,
        g.SquaredEuclidean,
    ]
    nodes = [
        lambda: inner() + inner(),
        lambda: inner() * inner(),
        lambda: number(0.3, 1 + 1e-9) * inner(),
        lambda: g.Normalized(inner()),
    ]
    parts = leaves + nodes if depth < 2 else leaves
    return parts[rng.integers(len(parts))]()


def rule(rng: np.random.Generator, task: str) -> Any:
    found = {
        "classification": [
            g.Perceptron(),
            g.PassiveAggressive(1.0, variant=2),
            g.SGD(g.Hinge(), rate=0.2, reg=0.01),
            g.SGD(g.Logistic(), rate=0.5, reg=0.001, schedule="inv_sqrt", intercept=True),
            g.Implicit(g.Logistic(), rate=0.3),
        ],
        "regression": [
            g.PassiveAggressive(0.5),
            g.SGD(g.Huber(0.5, nu=0.3), rate=0.2, intercept=True),
            g.SGD(g.Pinball(0.7), rate=0.1),
            g.Implicit(g.Squared(), C=0.5),
        ],
        "novelty": [g.SGD(g.Hinge(0.0, nu=0.1), rate=0.2, reg=0.01), g.Implicit(g.Hinge(), reg=0.05)],
    }[task]
    return found[rng.integers(len(found))]


def learner(rng: np.random.Generator, task: str, chosen: Any = None) -> Any:
    size = int(rng.choice([2, 7, 17, 40]))
    budgets = [
        g.DropOldest(size),
        g.DropSmallest(size),
        g.DropRandom(size),
        g.Merge(size),
        g.Window(size),
        g.Unbounded(),
    ]
    made = {"classification": g.KernelClassifier, "regression": g.KernelRegressor, "novelty": g.KernelNovelty}[task]
    some = kernel(rng) if chosen is None else chosen
    return made(some, rule(rng, task), budgets[rng.integers(6)], random_state=0)


def rows(rng: np.random.Generator, count: int, width: int) -> Any:
    X = rng.normal(size=(count, width))
    odd = rng.integers(5)
    if odd == 0:
        X[:, rng.integers(width)] = 3.0
    elif odd == 1:
        X = np.exp(X)
    elif odd == 2:
        X[:, 0] = X[:, 0] > 0
    elif odd == 3:
        X = X * 10.0 ** rng.integers(-3, 3, size=width)
    return X / max(1.0, np.abs(X).max() / 4)


def labels(rng: np.random.Generator, X: Any) -> Any:
    first, last = X[:, 0] > np.median(X[:, 0]), X[:, -1] > np.median(X[:, -1])
    names = [
        np.array(["b", "a"]),
        np.array([7, -3, 2**60]),
        np.array([False, True]),
        np.array(["only"]),
        np.array([TEXTS[at] for at in rng.choice(len(TEXTS), 3, replace=False)], dtype=object),
    ][rng.integers(5)]
    return names[(first.astype(int) + last) % len(names)]


def case(seed: int, single: bool = False) -> Case:
    """A composition; single: one that a C header can hold. One that diverges, which the library refuses, is drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        try:
            return _drawn(rng, single)
        except ValueError as error:
            if "diverged" not in str(error):
                raise


def _drawn(rng: np.random.Generator, single: bool) -> Case:
    task = TASKS[rng.integers(4)]
    count, width = int(rng.choice([3, 40, 300])), int(rng.integers(1, 9))
    X = rows(rng, count + 60, width)
    y = labels(rng, X) if task == "classification" else np.sin(X[:, 0]) + 3 * X[:, -1] if task == "regression" else None
    known = () if y is None else (y[:count],)
    form = ["alone", "prepared", "race", "map"][rng.integers(2 if single or task == "novelty" else 4)]
    if form == "alone":
        return Case(learner(rng, task).fit(X[:count], *known), X[count:])
    scale = [None, "standard", "minmax", "rank", "relevance", "rank-relevance"][
        rng.integers(4 if task == "novelty" else 6)
    ]
    if form == "prepared":
        inner = learner(rng, task)
        if isinstance(inner.budget, g.Window) and scale is not None and "relevance" in scale:
            scale = "standard"  # such a budget refuses that its points are learned again
        model = g.Prepared(inner, scale, warmup=[None, 20][rng.integers(2)])
        return Case(model.fit(X[:count], *known), X[count:] * [1.0, 3.0][rng.integers(2)])
    if form == "map":
        map_ = g.RandomMaclaurin(
            g.Polynomial(3), int(rng.choice([1, 9, 130])), structured=bool(rng.integers(2)), random_state=0
        )
        model = g.FeatureLearner(map_, rule(rng, task), task="regression" if task == "regression" else "classification")
        return Case(g.Prepared(model, scale=None).fit(X[:count], *known), X[count:])
    experts = [
        g.Prepared(learner(rng, task, g.Gaussian(gamma)), ["standard", "rank"][at])
        for at, gamma in enumerate((0.1, 1.0))
    ]
    experts += [baselines.Majority()] if task == "classification" else [baselines.Line(), baselines.LineOfChanges()]
    return Case(g.Race(experts).fit(X[:count], *known), X[count:], 1e-11)  # logarithms and changes of near numbers
