"""Kernels as nodes of a graph: a matrix of rows against stored points, from dot products and distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._common.types import Json
from .._plain import AdditiveExpansion, Expansion, Floats, FourierFeatures, MaclaurinFeatures, Neighbours, Node
from .graph import Graph, Value

#: points times columns up to which distances are computed in one go; beyond, column after column
BROADCAST = 4096
_LEAST, _TOUCHING = 1e-290, 1e-3  # of neighbours.hpp
_LEAST_SINGLE, _FARTHEST = 1e-37, 1e4
_EQUAL = {"float64": 1e-12, "float32": 1e-6}  # rounding: points that are equally far count as neighbours together


class Pairs:
    """Numbers of all pairs of rows and stored points, each made where a kernel first asks for it.

    Distances are taken from the middle of the points: a common offset would cost all digits of single precision.
    """

    def __init__(self, graph: Graph, x: Value, points: Floats) -> None:
        self.graph, self.x, self.points = graph, x, points
        self._made: Json = {}

    def _once(self, name: str, make: Any) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    @property
    def centre(self) -> Floats:
        return np.asarray(
            self._once("centre", lambda: self.points.mean(axis=0).astype(self.graph.number)), dtype=np.float64
        )

    @property
    def _centred(self) -> Value:
        found: Value = self._once("centred", lambda: self.x - self.centre)
        return found

    def dot(self, factor: float) -> Value:
        """factor <x, y>. The factor goes into the points: onnxruntime would fuse it into the product in single precision."""
        found: Value = self._once(f"dot {factor!r}", lambda: self.x @ (factor * self.points).T)
        return found

    @property
    def square(self) -> Value:
        def make() -> Value:
            x, y = self._centred, self.points - self.centre
            own = (x * x).sum()
            return ((own + (y * y).sum(axis=1)[None, :]) - 2.0 * (x @ y.T)).at_least(0.0)

        found: Value = self._once("square", make)
        return found

    @property
    def l1(self) -> Value:
        def make() -> Value:
            x, y = self._centred, self.points - self.centre
            if y.size > BROADCAST:
                return self.graph.sum_over_columns(x, y, y.shape[1])
            lone = self.graph.op("Unsqueeze", x, self.graph.whole([1]))
            apart = self.graph.abs(lone - y[None])
            return self.graph.op("ReduceSum", apart, self.graph.whole([2]), keepdims=0)

        found: Value = self._once("l1", make)
        return found

    @property
    def x_norm2(self) -> Value:
        found: Value = self._once("x_norm2", lambda: (self.x * self.x).sum())
        return found


def matrix(graph: Graph, program: tuple[Node, ...], x: Value, points: Floats) -> Value:
    """k(x, y) of each row and each stored point: (events, points)."""
    return _pairs(graph, program, len(program) - 1, Pairs(graph, x, points))


def _pairs(graph: Graph, program: tuple[Node, ...], at: int, pairs: Pairs) -> Value:
    op, left, right, n, a, b = program[at]
    if op in ("gaussian", "squared_euclidean"):
        return graph.exp(pairs.square * -a) if op == "gaussian" else -pairs.square
    if op in ("laplacian", "manhattan"):
        return graph.exp(pairs.l1 * -a) if op == "laplacian" else -pairs.l1
    if left < 0:
        return _of_dot(graph, op, n, b, pairs.dot(a if op in _SCALED else 1.0))
    value = _pairs(graph, program, left, pairs)
    if op == "multiple":
        return value * a
    if op == "normalized":
        mine = _selves(graph, program, left, pairs.x_norm2)
        theirs = self_values(program, left, (pairs.points * pairs.points).sum(axis=1))[None, :]
        scale = mine * theirs
        return graph.where(scale > 0.0, value / graph.sqrt(graph.where(scale > 0.0, scale, 1.0)), 0.0)
    other = _pairs(graph, program, right, pairs)
    return value + other if op == "sum" else value * other


#: kernels of a multiple of the dot product
_SCALED = ("polynomial", "exponential", "sigmoid")


def _of_dot(graph: Graph, op: str, n: int, b: float, t: Value) -> Value:
    """t: the dot product, times a where the kernel has such a factor."""
    if op == "linear":
        return t
    if op == "polynomial":
        return graph.power(t + b, n)
    if op == "exponential":
        return graph.exp(t)
    if op == "sigmoid":
        return graph.op("Tanh", t + b)
    assert op == "vovk"
    return graph.geometric(t, n) if n > 0 else 1.0 / (1.0 - t)


def _selves(graph: Graph, program: tuple[Node, ...], at: int, norm2: Value) -> Value:
    """k(x, x) of each row, from <x, x>: (events, 1)."""
    op, left, right, n, a, b = program[at]
    if op in ("gaussian", "laplacian"):
        return norm2 * 0.0 + 1.0
    if op in ("squared_euclidean", "manhattan"):
        return norm2 * 0.0
    if left < 0:
        return _of_dot(graph, op, n, b, norm2 * a if op in _SCALED else norm2)
    value = _selves(graph, program, left, norm2)
    if op == "multiple":
        return value * a
    if op == "normalized":
        return graph.where(value * value > 0.0, norm2 * 0.0 + 1.0, 0.0)
    other = _selves(graph, program, right, norm2)
    return value + other if op == "sum" else value * other


def self_values(program: tuple[Node, ...], at: int, norm2: Floats) -> Floats:
    """The same of stored points, in numbers."""
    op, left, right, n, a, b = program[at]
    if op in ("gaussian", "laplacian"):
        return np.ones(len(norm2))
    if op in ("squared_euclidean", "manhattan"):
        return np.zeros(len(norm2))
    if left < 0:
        with np.errstate(over="ignore", divide="ignore"):
            found: Any = {
                "linear": lambda: norm2,
                "polynomial": lambda: (a * norm2 + b) ** n,
                "exponential": lambda: np.exp(a * norm2),
                "sigmoid": lambda: np.tanh(a * norm2 + b),
                "vovk": lambda: sum(norm2**k for k in range(n)) if n > 0 else 1.0 / (1.0 - norm2),
            }[op]
            return np.asarray(found(), dtype=np.float64)
    value = self_values(program, left, norm2)
    if op == "multiple":
        return a * value
    if op == "normalized":
        return np.where(value * value > 0, 1.0, 0.0)
    other = self_values(program, right, norm2)
    return value + other if op == "sum" else value * other


# ---- functions of a row -------------------------------------------------------------------------------------------


def terms(graph: Graph, body: Expansion, x: Value) -> Value:
    if not len(body.points):
        return x @ np.zeros((body.points.shape[1], max(body.coefs.shape[1], 1)))
    return matrix(graph, body.program, x, body.points) @ body.coefs


def curves(graph: Graph, body: AdditiveExpansion, x: Value) -> Value:
    """Kernels of one coordinate, added up coordinate by coordinate."""
    if not len(body.points):
        return x @ np.zeros((body.points.shape[1], max(body.coefs.shape[1], 1)))
    total: Value | None = None
    for order, gamma, column, other, weight in body.coordinates:
        p, q = x.slice(column, column + 1), body.points[:, column]
        if other is not None:
            p, q = p * x.slice(other, other + 1), q * body.points[:, other]
        known = np.isfinite(q)
        part = _curve(graph, order, gamma, p, np.where(known, q, 0.0)[None, :]) * weight
        if body.skips_missing:
            part = graph.where(graph.op("IsNaN", p, dtype=np.bool_), 0.0, part * known.astype(np.float64)[None, :])
        total = part if total is None else total + part
    assert total is not None
    return total @ body.coefs


def _curve(graph: Graph, order: int, gamma: float, p: Value, q: Floats) -> Value:
    apart = graph.abs(p - q)
    if order < 0:
        return graph.exp(apart * -gamma)
    least, both = p.at_most(q), p * q
    total = both * 0.0 + 1.0
    for r in range(1, order + 1):
        total = total + graph.power(both, r)
    for r in range(order + 1):
        power = 2 * order - r + 1
        piece = graph.power(least, power) * (math.comb(order, r) / power)
        total = total + (piece if r == 0 else piece * graph.power(apart, r))
    return total


def products(graph: Graph, body: MaclaurinFeatures, x: Value) -> Value:
    parts: list[Value] = []
    width = body.width
    if body.constant > 0:
        parts.append(x @ np.zeros((width, 1)) + body.constant)
    if body.linear > 0:
        parts.append(x * body.linear)
    if len(body.real_weights):
        real = x @ np.zeros((width, len(body.real_weights))) + body.real_weights[None, :]
        for level in body.real_levels:
            count = level.real.shape[1]
            real = _head(graph, real, count, real.slice(0, count) * (x @ level.real), len(body.real_weights))
        parts.append(real)
    if len(body.pair_weights):
        re = x @ np.zeros((width, len(body.pair_weights))) + body.pair_weights[None, :]
        im = re * 0.0
        for level in body.pair_levels:
            count = level.real.shape[1]
            c, d = x @ level.real, x @ level.imaginary
            a, b = re.slice(0, count), im.slice(0, count)
            whole = len(body.pair_weights)
            re = _head(graph, re, count, a * c - b * d, whole)
            im = _head(graph, im, count, a * d + b * c, whole)
        parts += [re, im]
    return graph.concat(*parts) @ body.coefs


def _head(graph: Graph, values: Value, count: int, head: Value, whole: int) -> Value:
    """Other values in the first so many columns, the rest as they are."""
    return head if count == whole else graph.concat(head, values.slice(count, whole))


def waves(graph: Graph, body: FourierFeatures, x: Value) -> Value:
    # cos as a sine: some releases of onnxruntime have no cosine in double
    return graph.op("Sin", x @ body.frequencies + (body.phases + math.pi / 2)[None, :]) @ (body.factor * body.coefs)


def near(graph: Graph, body: Neighbours, x: Value) -> Value:
    """The geometric mean of how far the neighbours' neighbours are, over how far its own are."""
    if not len(body.points):
        return x @ np.zeros((body.points.shape[1], 1)) + 1.0
    pairs = Pairs(graph, x, body.points)
    row, is_log = _logarithms(graph, body.program, len(body.program) - 1, pairs), True
    if row is None:
        row, is_log = _pairs(graph, body.program, len(body.program) - 1, pairs), False
    elif graph.low is not None:  # smaller kernel values are 0, and equally far
        row = graph.where(row >= graph.low, row, -_FARTHEST)
    top = graph.op("TopK", row, graph.whole([body.count]), extra=1, axis=1)  # sorted, largest first
    last = top.slice(body.count - 1, body.count)
    known = np.isfinite(body.reaches)
    near_enough = row >= last - graph.abs(last) * _EQUAL[graph.number.name]
    inside = near_enough.cast(graph.number) * known.astype(np.float64)[None, :]
    count = inside.sum()
    mean = (inside @ np.where(known, body.reaches, 0.0)[:, None]) / count.at_least(1.0)
    least = _LEAST if graph.number == np.float64 else _LEAST_SINGLE
    size = -last if is_log else -graph.log(last.at_least(least))
    far = graph.log(graph.clip(size, 0.0, -math.log(_LEAST)) + _TOUCHING)
    return graph.where(count > 0.0, graph.exp(mean - far), 1.0)


def _logarithms(graph: Graph, program: tuple[Node, ...], at: int, pairs: Pairs) -> Value | None:
    """log k of each row and stored point, also where k is too small for a number; None: k is no product of exponentials."""
    op, left, right, _, a, _ = program[at]
    if op in ("gaussian", "laplacian"):
        return (pairs.square if op == "gaussian" else pairs.l1) * -a
    if op != "product":
        return None
    one, other = (_logarithms(graph, program, part, pairs) for part in (left, right))
    return None if one is None or other is None else one + other
