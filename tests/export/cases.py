"""Models of every composition that can be exported, on small streams."""

from __future__ import annotations

import numpy as np

import gristmill as g

KERNELS = [
    g.Linear(),
    g.Polynomial(3, 0.3, 1.0),
    g.Gaussian(0.5),
    g.Laplacian(0.4),
    g.Exponential(3.0),
    g.Vovk(5),
    g.Vovk(40),
    g.Sigmoid(0.2, 0.1),
    g.Manhattan(),
    g.SquaredEuclidean(),
    g.Normalized(g.Polynomial(2)),
    g.Gaussian(1.0) + 0.5 * g.Linear() * g.Laplacian(0.2),
]
RULES = [g.Perceptron(), g.PassiveAggressive(), g.SGD(g.Hinge(), rate=0.2, reg=0.01), g.Implicit(g.Hinge())]
BUDGETS = [g.DropOldest(40), g.DropSmallest(40), g.DropRandom(40), g.Merge(40), g.Window(40), g.Unbounded()]
#: rules and budgets that go together, beside all pairs of the above
SPECIAL = [
    (g.Alma(), g.Unbounded()),
    (g.Romma(), g.Unbounded()),
    (g.Adatron(), g.Unbounded()),
    (g.FeasibleSet(), g.DropOldest(40)),
    (g.StepSizeAdaptation(), g.DropOldest(40)),
    (g.MarginProjection(), g.Project(0.1, 40)),
    (g.Perceptron(), g.Project(0.1)),
    (g.Perceptron(), g.Forget(30)),
]


def stream(seed, width=4, count=400, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(count, width))
    two = np.where(X[:, 0] * X[:, 1] > 0, "b", "a")
    three = np.array([7, 3, 5])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    return X, two, three, np.sin(X[:, 0]) + X[:, 1]


def random_model(seed):
    """A kernel learner of a random composition, and rows to ask it about."""
    rng = np.random.default_rng(seed)
    kernel = KERNELS[seed % len(KERNELS)]
    scale = 0.1 if isinstance(kernel, g.Vovk) else 1.0
    X, two, three, number = stream(seed, width=int(rng.integers(2, 9)), scale=scale)
    budget = BUDGETS[rng.integers(len(BUDGETS))]
    task = seed % 4
    if task == 0:
        model = g.KernelClassifier(kernel, RULES[rng.integers(4)], budget, random_state=0).fit(X, two)
    elif task == 1:
        model = g.KernelClassifier(kernel, RULES[rng.integers(4)], budget, random_state=0).fit(X, three)
    elif task == 2:
        model = g.KernelRegressor(kernel, g.PassiveAggressive(0.5), budget, random_state=0).fit(X, number)
    else:
        model = g.KernelNovelty(kernel, g.SGD(g.Hinge(0.0, nu=0.1), rate=0.2, reg=0.01), budget, random_state=0).fit(X)
    return model, scale * rng.normal(size=(300, X.shape[1]))


def relative(found, expected):
    """The largest deviation, in units of the largest number."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    both = np.isfinite(expected)
    assert (np.isfinite(found) == both).all()
    if not both.any():
        return 0.0
    return float(np.abs(found[both] - expected[both]).max() / max(np.abs(expected[both]).max(), 1e-300))
