"""THE invariant: whatever is done to it, points, coefficients, scale, norm and average describe one f."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import naive_kernel

from gristmill import Gaussian, Laplacian, Linear, Normalized, Polynomial, _core

WIDTH = 3
KERNELS = [Gaussian(0.7), Linear(), Laplacian(0.5), Normalized(Polynomial(2)) + 0.5 * Gaussian(1.0)]
PROBES = np.random.default_rng(1).normal(size=(4, WIDTH))


class ListTwin:
    """The same operations on plain lists; slots are filled as the core fills them."""

    def __init__(self, kernel, outputs):
        self.kernel, self.outputs = naive_kernel(kernel), outputs
        self.points, self.coef, self.past = [], [], []

    def score(self, x, points=None, coef=None):
        points, coef = (self.points, self.coef) if points is None else (points, coef)
        return self.kernel(points, x) @ np.array(coef) if points else np.zeros(self.outputs)

    def gram(self):
        return np.array([self.kernel(self.points, p) for p in self.points]).reshape(len(self.points), -1)

    def norm2(self):
        if not self.points:
            return 0.0
        coef = np.array(self.coef)
        return float(np.sum(coef * (self.gram() @ coef)))

    def terms(self):
        """Sum of the absolute terms of the norm: what its rounding is measured against."""
        return float(np.sum(np.abs(self.gram()) * (np.abs(self.coef) @ np.abs(self.coef).T))) if self.points else 0.0

    def add(self, x, coefs):
        self.points.append(x)
        self.coef.append(np.array(coefs))

    def replace(self, slot, x, coefs):
        self.points[slot], self.coef[slot] = x, np.array(coefs)

    def remove(self, slot):
        for items in (self.points, self.coef):
            items[slot] = items[-1]
            items.pop()

    def shrink(self, factor):
        if factor == 0:
            self.points, self.coef = [], []
        self.coef = [factor * row for row in self.coef]

    def stay_inside(self, radius):
        if self.norm2() > radius**2:
            self.shrink(radius / np.sqrt(self.norm2()))

    def tick(self):
        self.past.append((list(self.points), [row.copy() for row in self.coef]))

    def average(self, x):
        return np.mean([self.score(x, *then) for then in self.past], axis=0) if self.past else np.zeros(self.outputs)


numbers = st.floats(-2, 2, allow_subnormal=False)
points = st.lists(st.integers(-8, 8), min_size=WIDTH, max_size=WIDTH).map(lambda v: np.array(v) / 4)
factors = st.sampled_from([0.0, 1e-30, 1e-3, 0.5, 0.9, 1.0, 1.1, -0.7, 30.0])


def steps(with_removals):
    kinds = [
        st.tuples(st.just("add"), points, st.lists(numbers, min_size=3, max_size=3)),
        st.tuples(st.just("shrink"), factors),
        st.tuples(st.just("tick")),
    ]
    if with_removals:
        kinds += [
            st.tuples(st.just("replace"), st.integers(0, 30), points, st.lists(numbers, min_size=3, max_size=3)),
            st.tuples(st.just("remove"), st.integers(0, 30)),
            st.tuples(st.just("stay_inside"), st.floats(0.1, 3)),
            st.tuples(st.just("repair_norm")),
        ]
    return st.lists(st.one_of(kinds), min_size=1, max_size=40)


def run(kernel, outputs, average, operations):
    f, twin = (
        _core.Expansion(kernel.kernel_program(), WIDTH, outputs, not average, average),
        ListTwin(kernel, outputs),
    )
    largest = 0.0  # of the terms that ever were in the norm: what its drift is measured against
    for number, (name, *rest) in enumerate(operations):
        if name in ("replace", "remove"):
            if not twin.points:
                continue
            rest[0] %= len(twin.points)
        if name == "shrink" and rest[0] == 0 and average:
            rest[0] = 0.5  # with an average the points stay; shrinking to nothing has a test of its own
        if name == "add":
            f.add(rest[0][None, :], rest[1][:outputs], number, None)
            twin.add(rest[0], rest[1][:outputs])
        elif name == "replace":
            f.add(rest[1][None, :], rest[2][:outputs], number, rest[0])
            twin.replace(rest[0], rest[1], rest[2][:outputs])
        elif name == "repair_norm":
            f.repair_norm()
        else:
            getattr(f, name)(*rest)
            getattr(twin, name)(*rest)
        largest = max(largest, twin.terms())
    return f, twin, largest


def check_scores(found, wanted, size):
    assert np.abs(np.array(found) - wanted).max() <= 1e-9 * max(1e-6, size)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.sampled_from(KERNELS), st.integers(1, 3), steps(with_removals=True))
def test_scores_and_norm_after_any_sequence(kernel, outputs, operations):
    f, twin, largest = run(kernel, outputs, False, operations)
    assert f.size == len(twin.points)
    size = max([float(np.abs(row).max()) for row in twin.coef], default=0.0) * 10
    for x in PROBES:
        check_scores(f.score(x[None, :], False), twin.score(x), size)
    assert abs(f.norm2 - max(twin.norm2(), 0.0)) <= 1e-9 * max(largest, 1e-12)
    f.repair_norm()
    assert abs(f.norm2 - max(twin.norm2(), 0.0)) <= 1e-9 * max(largest, 1e-12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(KERNELS), st.integers(1, 2), steps(with_removals=False))
def test_the_average_after_any_sequence(kernel, outputs, operations):
    f, twin, _ = run(kernel, outputs, True, operations)
    past = [float(np.abs(np.array(coef)).max(initial=0.0)) for _, coef in twin.past]
    for x in PROBES:
        check_scores(f.score(x[None, :], True), twin.average(x), 100 * max(past, default=0.0))


@pytest.mark.parametrize("factor", [0.9, -0.9, 1.1, 0.5])
def test_the_scale_is_renormalised_unseen(factor):
    """Thousands of shrinkings take the scale far beyond what a double holds; f never sees it."""
    f = _core.Expansion(Gaussian(1.0).kernel_program(), 1, 1, True, False)
    x, wanted = np.zeros((1, 1)), []  # all points are the same, so f(x) is the sum of the coefficients
    for step in range(8000):
        f.shrink(factor)
        wanted = [factor * c for c in wanted]
        if step % 3 == 0:
            c, slot = 1.0 + np.sin(step), step % 4
            f.add(x, [c], step, None if len(wanted) < 4 else slot)
            wanted = [*wanted, c] if len(wanted) < 4 else [*wanted[:slot], c, *wanted[slot + 1 :]]
        assert f.score(x, False)[0] == pytest.approx(sum(wanted), rel=1e-9, abs=1e-12)
        f.repair_norm()
        assert f.norm2 == pytest.approx(sum(wanted) ** 2, rel=1e-8, abs=1e-12)


def test_shrinking_to_nothing_keeps_the_average():
    f = _core.Expansion(Linear().kernel_program(), 1, 1, False, True)
    x = np.ones((1, 1))
    f.add(x, [4.0], 0, None)
    f.tick()
    f.shrink(0.0)
    f.tick()
    assert f.score(x, False) == [0.0]
    assert f.score(x, True) == [2.0]


def test_removing_everything_leaves_nothing():
    f = _core.Expansion(Gaussian(1.0).kernel_program(), 2, 1, True, False)
    rng = np.random.default_rng(0)
    for i in range(40):
        f.add(rng.normal(size=(1, 2)), [rng.normal()], i, None)
    for _ in range(40):
        f.remove(int(rng.integers(f.size)))
    assert f.size == 0
    assert f.score(np.zeros((1, 2)), False) == [0.0]
    f.repair_norm()
    assert f.norm2 == pytest.approx(0.0, abs=1e-12)
