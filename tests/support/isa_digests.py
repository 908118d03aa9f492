"""Digests of what learners say along fixed streams, as JSON: run by test_isas.py under each instruction set.

The inputs are made of whole numbers and divisions by powers of two, so that no C library has a say in them.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from scipy.sparse import csr_array

import gristmill as g
from gristmill import _core


def numbers(seed: int, *shape: int) -> np.ndarray:
    """Sums of three uniform numbers between -0.75 and 0.75, from splitmix64."""
    count = np.arange(1, 3 * int(np.prod(shape)) + 1, dtype=np.uint64)
    z = np.uint64(seed) + count * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    u = ((z ^ (z >> np.uint64(31))) >> np.uint64(44)).astype(float) / 2.0**20
    parts = u.reshape(3, *shape)
    return (parts[0] + parts[1] + parts[2] - 1.5) / 2


def learners() -> dict[str, object]:
    k = g.Gaussian(0.8)
    both = g.Gaussian(0.5) + g.Normalized(g.Polynomial(2)) * g.Laplacian(0.1) + g.Sigmoid(0.3)
    return {
        "perceptron": g.perceptron(k),
        "random budget": g.random_budget_perceptron(k, 40, random_state=3),
        "forgetron": g.forgetron(k, 40),
        "projectron": g.projectron(k),
        "projectron++": g.projectron_pp(k),
        "alma": g.alma(k),
        "passive-aggressive": g.passive_aggressive(k),
        "romma": g.romma(k),
        "norma": g.norma_classifier(both, 0.3, 0.02, loss=g.Logistic(), size=37),
        "norma, averaged": g.norma_classifier(k, 0.3, 0.02, loss=g.Hinge(nu=0.3), average=True),
        "ilk": g.ilk_classifier(k, loss=g.Logistic(), size=40),
        "projection": g.projection_classifier(k, radius=2.0),
        "svmd": g.svmd(k, 0.2, 0.01, 0.05, 0.95, loss=g.Logistic()),
        "additive": g.norma_classifier(g.Additive(g.Laplacian(1.0)), 0.3, 0.02, loss=g.Logistic(), size=60),
        "auc": g.PairwiseAUC(random_state=1, loss=g.Logistic()),
        "auc, kernel": g.PairwiseAUC(k, random_state=1),
    }


def digest(scores: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(scores, dtype="<f8").tobytes()).hexdigest()[:16]


def main() -> None:
    X = numbers(1, 400, 9)
    target = X[:, 0] - 2 * X[:, 1] * X[:, 2] + numbers(2, 400) / 16
    y = np.where(target > 0, 1, -1)
    found = {name: digest(model.prequential(X, y)) for name, model in learners().items()}
    kernel = g.Gaussian(0.8) * g.Laplacian(0.2)
    for name, rows in {"float32": X.astype(np.float32), "CSR": csr_array(np.where(X > 0.1, X, 0.0))}.items():
        found[name] = digest(g.norma_classifier(kernel, 0.3, 0.02, size=37).prequential(rows, y))
    classes = np.digitize(target, [-0.25, 0.25])
    three = g.norma_classifier(kernel, 0.3, 0.02, size=37)
    found["three classes"] = digest(
        three.partial_fit(X[:1], classes[:1], classes=[0, 1, 2]).prequential(X[1:], classes[1:])
    )
    found["regression"] = digest(g.norma_regressor(kernel, 0.3, 0.02, size=37).prequential(X, target))
    found["novelty"] = digest(g.norma_novelty(kernel, 0.1, 0.3, size=37).prequential(X))
    print(json.dumps({"isa": _core.isa(), "digests": found}))


if __name__ == "__main__":
    main()
