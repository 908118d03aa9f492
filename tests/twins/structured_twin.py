"""Reference implementation of `StructuredLearner` in NumPy: a joint kernel of pairs, asked for every pair of functions.

f = sum_i c_i K((x_i, y_i), .); nothing is remembered between samples but the functions and their coefficients.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.linalg import solve_triangular

from gristmill.budgets import DropOldest, DropSmallest, Project
from gristmill.rules import Implicit, MarginProjection

DEPENDENT = 1e-10


def classes(kernel):
    """The joint kernel of a kernel on inputs: k(x, x') if the labels are equal."""
    return lambda x, y, other, label: kernel(x, other) if y == label else 0.0


def sequences(kernel, transitions):
    """The joint kernel of `Sequences`, by its definition."""

    def value(x, tags, other, other_tags):
        found = sum(kernel(x[s], other[t]) for s, a in enumerate(tags) for t, b in enumerate(other_tags) if a == b)
        steps, others = list(pairwise(tags)), list(pairwise(other_tags))
        return found + transitions * sum(a == b for a in steps for b in others)

    return value


class Twin:
    """candidates(x): all labels of an input; the best is the first with the highest score."""

    def __init__(self, joint, candidates, rule, budget, average=False, cost=None):
        self.joint, self.candidates, self.rule, self.budget, self.average = joint, candidates, rule, budget, average
        self.cost = cost or (lambda y, r: 1.0)
        self.points, self.ids = [], []  # (x, label) of each function, and the position of its input in the stream
        self.coef, self.total = np.empty(0), np.empty(0)
        self.seen = self.ticks = 0

    def row(self, x, label):
        return np.array([self.joint(x, label, *pair) for pair in self.points])

    def score(self, x, label, average=False):
        weights = self.total / max(self.ticks, 1) if average else self.coef
        return float(weights @ self.row(x, label)) if self.points else 0.0

    def best(self, x, exclude=None, plus=lambda label: 0.0, average=False):
        labels = [label for label in self.candidates(x) if label != exclude]
        return max(labels, key=lambda label: self.score(x, label, average) + plus(label))

    def prequential(self, X, y, scores=True):
        found = []
        for x, label in zip(X, y, strict=True):
            if scores:
                found.append([self.score(x, c, self.average) for c in self.candidates(x)])
            else:
                found.append(self.best(x, average=self.average))
            self.learn(x, label)
        return found

    def learn(self, x, y):
        if self.average:
            self.total, self.ticks = self.total + self.coef, self.ticks + 1
        if isinstance(self.rule, Implicit):
            self.implicit(x, y)
        else:
            rival = self.best(x, y)
            margin = self.score(x, y) - self.score(x, rival)
            if isinstance(self.budget, Project):
                self.project(x, y, rival, margin)
            elif margin <= 0:
                self.add(x, [(y, 1.0), (rival, -1.0)])
        self.seen += 1

    def implicit(self, x, y):
        rival = self.best(x, y, plus=lambda label: self.cost(y, label))
        keep = 1 / (1 + self.rule.rate * self.rule.reg)
        limit = keep * self.rule.rate * self.rule.C
        wanted = self.cost(y, rival) - keep * (self.score(x, y) - self.score(x, rival))
        extent = self.joint(x, y, x, y) + self.joint(x, rival, x, rival) - 2 * self.joint(x, y, x, rival)
        step = min(max(wanted / extent, 0.0), limit) if extent > 0 else 0.0
        self.coef = keep * self.coef
        if step:
            self.add(x, [(y, step), (rival, -step)])

    def add(self, x, terms):
        for label, coefficient in terms:
            self.points.append((x, label))
            self.ids.append(self.seen)
            self.coef, self.total = np.append(self.coef, coefficient), np.append(self.total, 0.0)
        inputs = sorted(set(self.ids))
        if isinstance(self.budget, DropOldest | DropSmallest) and len(inputs) > self.budget.size:
            largest = {at: max(abs(c) for c, i in zip(self.coef, self.ids, strict=True) if i == at) for at in inputs}
            oldest = isinstance(self.budget, DropOldest)
            victim = inputs[0] if oldest else min(inputs, key=lambda at: largest[at])
            stay = [i for i, at in enumerate(self.ids) if at != victim]
            self.points, self.ids = [self.points[i] for i in stay], [self.ids[i] for i in stay]
            self.coef, self.total = self.coef[stay], self.total[stay]

    def gram(self):
        return np.array([self.row(*pair) for pair in self.points]).reshape(len(self.points), -1)

    def projected(self, row):
        """Coefficients of the projection onto the functions, and its squared length."""
        if not self.points:
            return np.empty(0), 0.0
        factor = np.linalg.cholesky(self.gram())
        z = solve_triangular(factor, row, lower=True)
        return solve_triangular(factor.T, z, lower=False), float(z @ z)

    def project(self, x, y, rival, margin):
        aggressive = isinstance(self.rule, MarginProjection)
        if margin > (1 if aggressive else 0):
            return
        own, other = self.row(x, y), self.row(x, rival)
        self_value = self.joint(x, y, x, y) + self.joint(x, rival, x, rival) - 2 * self.joint(x, y, x, rival)
        onto, length2 = self.projected(own - other)
        rest = self_value - length2
        residual = np.sqrt(rest) if rest > DEPENDENT * self_value else 0.0
        tolerance = self.budget.tolerance
        if margin > 0:
            loss = 1 - margin
            ratio = 0.0 if residual == 0 else residual / tolerance if tolerance > 0 else np.inf
            ratio = ratio**2 if self.rule.squared else ratio
            if loss >= ratio and length2 > 0:
                self.coef = self.coef + min(loss / length2, 2 * (loss - ratio) / length2, 1.0) * onto
            return
        if residual <= tolerance:
            self.coef = self.coef + onto
            return
        for label, size in ((y, 1.0), (rival, -1.0)):
            row, own_value = self.row(x, label), self.joint(x, label, x, label)
            onto, length2 = self.projected(row)
            if own_value - length2 > DEPENDENT * own_value:
                self.points.append((x, label))
                self.ids.append(self.seen)
                self.coef, self.total = np.append(self.coef, size), np.append(self.total, 0.0)
            else:
                self.coef = self.coef + size * onto
