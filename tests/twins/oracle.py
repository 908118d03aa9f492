"""The naive twin: every online learner again, in plain NumPy, as the formulas read.

Nothing here is fast and nothing is cached. All points sit in a list, scores are direct sums, norms come from
the Gram matrix, coefficients are always at their true scale. A rule is a function from a trial to a move,
found by the name of its class, so that any object of that name with the right attributes will do.

    twin = Twin(Gaussian(0.5), SGD(Hinge(), rate=0.1, reg=0.01), DropOldest(50))
    scores = [twin.step(x, y) for x, y in zip(X, Y)]    # each before the update
    twin.points, twin.ids, twin.coef, twin.intercept, twin.margin, twin.norm2()
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from oracle_kernels import naive_kernel, naive_matrix

__all__ = ["Move", "Trial", "Twin", "naive_kernel", "naive_matrix"]

SIGMA_FLOOR = 1e-6  # Huber's adaptive width never falls below
DEPENDENT = 1e-10  # a squared residual under this share of k(x, x) counts as 0
PARALLEL = 1e-12  # ROMMA: k(x,x) ||w||^2 - f^2 under this share of its first term counts as 0
RATE_CAP = 0.99  # SVMD: a step forgets at most this share of f

# ---- losses --------------------------------------------------------------------------------------


def logistic_share(z: float) -> float:
    """1/(1 + e^z) without overflow."""
    return math.exp(-z) / (1 + math.exp(-z)) if z > 0 else 1 / (1 + math.exp(z))


def push(loss: Any, width: float, score: float, y: float, novelty: bool) -> tuple[float, float, bool]:
    """-l', l'', and whether the event lies on the wrong side of the margin, tube or width."""
    name, gap = type(loss).__name__, y - score
    if name == "Hinge":
        wrong = score < width if novelty else y * score <= width
        return (y if wrong else 0.0), 0.0, wrong
    if name == "Logistic":
        share = logistic_share(y * score)
        return y * share, share * (1 - share), False
    if name == "Squared":
        return gap, 1.0, False
    wrong = abs(gap) > width
    if name == "EpsilonInsensitive":
        return (math.copysign(1.0, gap) if wrong else 0.0), 0.0, wrong
    if name == "Huber":
        return (math.copysign(1.0, gap), 0.0, wrong) if wrong else (gap / width, 1 / width, wrong)
    if name == "Pinball":
        return (width if gap > 0 else width - 1 if gap < 0 else 0.0), 0.0, False
    raise ValueError(f"no loss called {name}")


def start_width(rule: Any) -> float:
    """rho, epsilon or sigma before the first event."""
    loss = getattr(rule, "loss", None)
    for name in ("margin", "epsilon", "sigma", "quantile"):
        if hasattr(loss, name):
            return float(getattr(loss, name))
    return 1.0 if type(rule).__name__ == "PassiveAggressive" else 0.0


# ---- rules: a trial in, a move out ---------------------------------------------------------------


@dataclass
class Trial:
    """One event as a rule sees it; more than two classes come as the margin f_y - f_r with label +1."""

    x: Any
    index: int  # position in the stream
    score: float  # before the update, intercept included
    y: float
    kxx: float  # k(x, x); 2 k(x, x) with more than two classes
    direction: np.ndarray  # which outputs the new point enters, and with which sign
    weight: float


@dataclass
class Move:
    """What a rule wants done: shrink first, then the new term, then the ball."""

    coefficient: float = 0.0
    shrink: float = 1.0  # 0 clears
    intercept: float = 0.0
    radius: float = math.inf
    fold: bool = False  # only the projection enters, nothing is stored
    tangent: float = 0.0  # SVMD: the new point's coefficient in v


def perceptron(twin: Twin, trial: Trial) -> Move:
    return Move(trial.y * trial.weight) if trial.y * trial.score <= 0 else Move()


def sgd(twin: Twin, trial: Trial) -> Move:
    rule, loss = twin.rule, twin.rule.loss
    rate = rule.rate / math.sqrt(twin.t) if rule.schedule == "inv_sqrt" else rule.rate  # eta_t
    slope, _, wrong = push(loss, twin.width, trial.score, trial.y, twin.task == "novelty")
    step = rate * trial.weight
    nu = getattr(loss, "nu", None)
    if nu is not None:
        outward = nu - wrong if type(loss).__name__ == "Hinge" else wrong - nu
        twin.width += step * outward
        if type(loss).__name__ == "Huber":
            twin.width = max(twin.width, SIGMA_FLOOR)
    return Move(step * slope, 1 - rate * rule.reg, step * slope if rule.intercept else 0.0)


def shortfall(twin: Twin, trial: Trial, epsilon: float) -> tuple[float, float]:
    """The loss with margin 1 or tube epsilon, and the sign of the step that lowers it."""
    if twin.task == "regression":
        gap = trial.y - trial.score
        return max(0.0, abs(gap) - epsilon), math.copysign(1.0, gap)
    return max(0.0, 1 - trial.y * trial.score), trial.y


def passive_aggressive(twin: Twin, trial: Trial) -> Move:
    rule = twin.rule
    loss, sign = shortfall(twin, trial, rule.epsilon)
    C = rule.C * trial.weight
    below = trial.kxx + (1 / (2 * C) if rule.variant == 2 else 0.0)
    if loss == 0 or trial.kxx < 0 or below <= 0:
        return Move()
    return Move(sign * (min(C, loss / below) if rule.variant == 1 else loss / below))


def feasible_set(twin: Twin, trial: Trial) -> Move:
    loss, sign = shortfall(twin, trial, twin.rule.epsilon or 0.0)
    if loss == 0 or trial.kxx <= 0:
        return Move()
    return Move(sign * loss / trial.kxx, radius=twin.rule.radius or math.inf)


def implicit(twin: Twin, trial: Trial) -> Move:
    rule, y, k = twin.rule, trial.y, trial.kxx
    rate = rule.rate / math.sqrt(twin.t) if getattr(rule, "schedule", "") == "inv_sqrt" else rule.rate  # eta_t
    shrink = 1 / (1 + rate * rule.reg)  # 1 - tau
    cap = shrink * rate * rule.C * trial.weight  # c
    kept = shrink * trial.score  # m
    name = type(rule.loss).__name__
    if name == "Squared":
        below = 1 / cap + k
        return Move((y - kept) / below if k >= 0 and below > 0 else 0.0, shrink)
    if name == "Hinge":
        return Move(y * min(max((twin.width - y * kept) / k, 0.0), cap) if k > 0 else 0.0, shrink)
    if k < 0:
        return Move(0.0, shrink)
    low, high = 0.0, cap  # u - c/(1 + exp(y m + u k)) rises from below 0 to above 0 between them
    for _ in range(200):
        middle = (low + high) / 2
        below_root = middle < cap * logistic_share(y * kept + middle * k)
        low, high = (middle, high) if below_root else (low, middle)
    return Move(y * (low + high) / 2, shrink)


def alma(twin: Twin, trial: Trial) -> Move:
    rule, root = twin.rule, math.sqrt(twin.corrections + 1)
    B = math.sqrt(8) / rule.alpha if rule.B is None else rule.B
    C = math.sqrt(2) if rule.C is None else rule.C
    if trial.y * trial.score > (1 - rule.alpha) * B / root:
        return Move()
    twin.corrections += 1
    return Move(trial.y * trial.weight * C / root, radius=1.0)


def romma(twin: Twin, trial: Trial) -> Move:
    f, y, xx, ww = trial.score, trial.y, trial.kxx, twin.norm2()
    acts = y * f < 1 if twin.rule.aggressive else y * f <= 0
    if not acts or xx <= 0:
        return Move()
    below = xx * ww - f * f
    if ww == 0 or y * f >= xx * ww or below <= PARALLEL * xx * ww:
        return Move(y / xx, shrink=0.0)
    return Move(ww * (y - f) / below, shrink=(xx * ww - y * f) / below)


def margin_projection(twin: Twin, trial: Trial) -> Move:
    agreement, tolerance = trial.y * trial.score, twin.budget.tolerance
    if agreement <= 0:
        return Move(trial.y * trial.weight)
    if agreement > 1:
        return Move()
    residual, length2, _ = twin.projection(trial.x, trial.direction)
    ratio = 0.0 if residual == 0 else residual / tolerance if tolerance > 0 else math.inf  # delta/eta
    if twin.rule.squared:
        ratio = ratio**2
    loss = 1 - agreement
    if loss < ratio or length2 <= 0:
        return Move()
    tau = min(loss / length2, 2 * (loss - ratio) / length2, trial.weight)
    twin.progress += tau * (2 * loss - tau * length2 - 2 * ratio)
    return Move(trial.y * tau, fold=True)


def step_size_adaptation(twin: Twin, trial: Trial) -> Move:
    rule, reg = twin.rule, twin.rule.reg
    slope, curvature, _ = push(rule.loss, twin.width, trial.score, trial.y, twin.task == "novelty")
    slope, curvature = -slope * trial.weight, curvature * trial.weight  # l' and l''
    here = float(trial.direction @ twin.expand(trial.x, twin.tangent))  # v(x)
    along = reg * twin.inner(twin.coef, twin.tangent) + slope * here  # <g, v>
    linear_form = getattr(rule, "form", "exponential") == "linear"
    factor = max(0.5, 1 - rule.meta_rate * along) if linear_form else math.exp(-rule.meta_rate * along)
    rate = twin.rate * factor
    twin.rate = rate = min(rate, RATE_CAP / reg) if reg > 0 else rate
    keep = rule.decay * (1 - rate * reg)
    twin.tangent = [keep * b - rate * reg * a for a, b in zip(twin.coef, twin.tangent, strict=True)]
    return Move(-rate * slope, 1 - rate * reg, tangent=-rate * (slope + rule.decay * curvature * here))


def adatron(twin: Twin, trial: Trial) -> Move:
    """The change of the point's own coefficient; a point seen in an earlier pass keeps its index."""
    rule = twin.rule
    old = abs(twin.coef[twin.ids.index(trial.index)][0]) if trial.index in twin.ids else 0.0
    if trial.kxx <= 0:
        return Move()
    new = min(max(old + rule.rate * (1 - trial.y * trial.score), 0.0), rule.C * trial.weight)
    return Move(trial.y * (new - old))


def density(twin: Twin, trial: Trial) -> Move:
    """f is the mean of k(x, .) over what is stored, by weight; `total` is that weight."""
    mass = float(np.sum(twin.coef))
    kept = (1 - twin.rule.decay) * twin.total * mass if mass > 0 else 0.0
    twin.total = kept + trial.weight
    twin.recent = [*twin.recent, trial.score][-1000:]
    twin.width = float(np.quantile(twin.recent, twin.rule.nu, method="weibull")) if len(twin.recent) >= 50 else 0.0
    return Move(trial.weight / twin.total, kept / twin.total / mass if mass > 0 else 1.0)


RULES: dict[str, Callable[[Twin, Trial], Move]] = {
    "Perceptron": perceptron,
    "SGD": sgd,
    "PassiveAggressive": passive_aggressive,
    "FeasibleSet": feasible_set,
    "Implicit": implicit,
    "Alma": alma,
    "Romma": romma,
    "MarginProjection": margin_projection,
    "StepSizeAdaptation": step_size_adaptation,
    "Adatron": adatron,
    "Density": density,
}

# ---- the learner ---------------------------------------------------------------------------------


class Twin:
    """A learner that can be stepped through a stream and looked into.

    Parameters
    ----------
    kernel : a kernel object, or a function k(x, y)
    rule, budget : value objects, or anything whose class has the same name and attributes
    task : "classification" (labels -1/+1, or 0..C-1 with `n_classes`), "regression", "novelty"
    n_classes : None for one output; otherwise so many outputs, one a class
    replay : the stream ids that DropRandom evicts, in order, or a function that picks one of the ids given; None refuses
    average : keep every hypothesis, for `average(x)`
    """

    def __init__(self, kernel, rule, budget=None, task="classification", n_classes=None, replay=None, average=False):
        self.kernel, self.rule, self.task = naive_kernel(kernel), rule, task
        self.budget = type("Unbounded", (SimpleNamespace,), {})() if budget is None else budget
        self.n_classes, self.outputs = n_classes, n_classes or 1
        self.replay = replay if callable(replay) or replay is None else iter(list(replay))
        self.points: list[Any] = []
        self.ids: list[int] = []
        self.coef: list[np.ndarray] = []
        self.tangent: list[np.ndarray] = []  # SVMD's v, on the same points
        self.member: list[np.ndarray] = []  # Project: in which class's span a point is
        self.intercept = np.zeros(self.outputs)
        self.width = start_width(rule)
        self.rate = getattr(rule, "rate", None)  # SVMD's current eta
        self.seen = self.t = 0
        self.mistakes = self.corrections = 0
        self.progress = self.damage = 0.0  # B of Projectron++; Q of the Forgetron
        self.total, self.recent = 0.0, []  # Density: total weight in f, and the last scores
        self.evicted: list[int] = []
        self.history: list[tuple] | None = [] if average else None

    # one number under the name that fits the loss
    margin = property(lambda self: self.width)
    epsilon = property(lambda self: self.width)
    sigma = property(lambda self: self.width)

    # -- looking

    def expand(self, x, coef):
        """sum_i coef_i k(x_i, x), one number an output."""
        return self.kernel(self.points, x) @ np.array(coef) if self.points else np.zeros(self.outputs)

    def inner(self, left, right):
        """<f, g> in the RKHS for two rows of coefficients on the stored points."""
        if not self.points:
            return 0.0
        gram = np.array([self.kernel(self.points, p) for p in self.points])
        return float(np.sum(np.array(left) * (gram @ np.array(right))))

    def norm2(self):
        return self.inner(self.coef, self.coef)

    def outputs_at(self, x):
        values = self.expand(x, self.coef) + self.intercept
        return values - self.width if self.task == "novelty" else values

    def score(self, x):
        values = self.outputs_at(x)
        return values if self.n_classes else float(values[0])

    def average(self, x):
        """The score of the mean of f_1 .. f_T, the hypothesis after the last step left out."""
        values = [
            (self.kernel(points, x) @ np.array(coef) if points else 0.0) + offset
            for points, coef, offset in self.history
        ]
        mean = np.mean(values, axis=0)
        return mean if self.n_classes else float(mean[0])

    def projection(self, x, direction):
        """Residual, squared length and coefficients of k(x, .) on the span of the stored points.

        With classes, each has a span of its own and the spans are orthogonal.
        """
        kxx, rests, length2, pieces = float(self.kernel([x], x)[0]), 0.0, 0.0, {}
        for c in np.flatnonzero(direction):
            inside = [i for i, member in enumerate(self.member) if member[c]]
            points = [self.points[i] for i in inside]
            row = self.kernel(points, x) if points else np.zeros(0)
            gram = np.array([self.kernel(points, p) for p in points]).reshape(len(points), len(points))
            weights = np.linalg.solve(gram, row)
            rest2 = max(0.0, kxx - float(row @ weights))
            rest2 = 0.0 if rest2 <= DEPENDENT * kxx else rest2
            rests, length2 = rests + rest2, length2 + float(row @ weights)
            pieces[c] = (inside, weights, rest2)
        return math.sqrt(rests), length2, pieces

    # -- learning

    def step(self, x, y=1.0, weight=1.0, index=None):
        """Learn one event; returns the score before it. `index` names an earlier event again (Adatron)."""
        before = self.score(x)
        index, self.seen = (self.seen if index is None else index), self.seen + (index is None)
        if weight == 0:
            self.expire()
            return before
        self.t += 1
        if self.history is not None:
            offset = self.intercept - (self.width if self.task == "novelty" else 0.0)
            self.history.append((list(self.points), [row.copy() for row in self.coef], offset))
        trial = self.trial(x, index, y, weight)
        self.mistakes += self.task == "classification" and trial.y * trial.score <= 0
        self.apply(RULES[type(self.rule).__name__](self, trial), trial)
        return before

    def trial(self, x, index, y, weight):
        values, kxx = self.expand(x, self.coef) + self.intercept, float(self.kernel([x], x)[0])
        direction = np.zeros(self.outputs)
        if self.n_classes:
            rival = min((c for c in range(self.outputs) if c != y), key=lambda c: (-values[c], c))
            direction[int(y)], direction[rival], y = 1.0, -1.0, 1.0
        else:
            direction[0], y = 1.0, 1.0 if self.task == "novelty" else float(y)
        score = float(values @ direction) if self.n_classes else float(values[0])
        return Trial(x, index, score, y, kxx * float(direction @ direction), direction, weight)

    def apply(self, move, trial):
        if move.shrink == 0:
            self.keep([])
        self.scale(move.shrink, tangent=False)
        self.intercept = self.intercept + move.intercept * trial.direction
        if move.coefficient != 0 or move.tangent != 0:
            self.enter(move, trial)
        if move.radius < math.inf and self.norm2() > move.radius**2:
            self.scale(move.radius / math.sqrt(self.norm2()))
        self.expire()

    def expire(self):
        """Window: what the score of the next event, number `seen` from 0, may no longer use."""
        if type(self.budget).__name__ == "Window":
            b = self.budget
            steps = math.ceil((self.seen + 1) ** (0.5 + b.growth)) if b.steps is None else b.steps
            self.keep([i for i, event in enumerate(self.ids) if event >= self.seen - steps])

    def enter(self, move, trial):
        """The budget's part: how the new term enters, and what leaves. Ages are those of ids, in later passes too."""
        self.take_in(move, trial)
        order = np.argsort(self.ids, kind="stable")
        if np.any(np.diff(order) < 0):
            self.reorder(order)

    def take_in(self, move, trial):
        name, size = type(self.budget).__name__, getattr(self.budget, "size", None)
        if name == "Project":
            return self.project(move, trial)
        if trial.index in self.ids:  # a later pass over the same points
            at = self.ids.index(trial.index)
            self.coef[at] = self.coef[at] + move.coefficient * trial.direction
            self.tangent[at] = self.tangent[at] + move.tangent * trial.direction
            return self.keep([i for i in range(len(self.ids)) if np.any(self.coef[i] != 0)])
        if name == "Merge" and len(self.ids) == size:
            return self.merge(move, trial)
        if name == "DropRandom" and len(self.ids) == size:
            victim = self.replay(list(self.ids)) if callable(self.replay) else next(self.replay)
            if victim is None:
                return None
            self.drop(self.ids.index(victim))
        self.append(move, trial, trial.direction != 0)
        if name == "DropOldest" and len(self.ids) > size:
            self.drop(0)
        if name == "DropSmallest" and len(self.ids) > size:
            self.drop(int(np.argmin([np.abs(row).max() for row in self.coef])))  # the oldest on ties
        if name == "Forget" and len(self.ids) > size:
            self.forget(size)

    def project(self, move, trial):
        residual, _, pieces = self.projection(trial.x, trial.direction)
        known = trial.index in self.ids  # a later pass, and a point already for the sake of a class
        full = getattr(self.budget, "size", None) is not None and len(self.ids) >= self.budget.size and not known
        fold_all = move.fold or residual <= self.budget.tolerance or full
        stays = np.zeros(self.outputs, dtype=bool)
        for c, (inside, weights, rest2) in pieces.items():
            stays[c] = not fold_all and rest2 > 0
            if not stays[c]:
                for i, share in zip(inside, weights, strict=True):
                    self.coef[i][c] += move.coefficient * trial.direction[c] * share
        if stays.any() and known:
            at = self.ids.index(trial.index)
            self.coef[at] = self.coef[at] + np.where(stays, move.coefficient * trial.direction, 0.0)
            self.member[at] = self.member[at] | stays
        elif stays.any():
            self.append(move, trial, stays)

    def merge(self, move, trial):
        """Fold the point for which that changes f least onto the stored one most like it, be it the newcomer."""
        self.append(move, trial, trial.direction != 0)
        gram = np.array([self.kernel(self.points, p) for p in self.points])
        new, folds = len(self.ids) - 1, []
        for v in range(len(self.ids)):
            partners = [u for u in range(new) if u != v and gram[u, u] > 0]  # the new point is not a candidate yet
            likeness = [gram[v, u] ** 2 / gram[u, u] for u in partners]
            best = int(np.argmax(likeness)) if partners else 0
            u = partners[best] if partners and likeness[best] > 0 else None
            cost = float(self.coef[v] @ self.coef[v]) * max(
                gram[v, v] - (likeness[best] if u is not None else 0.0), 0.0
            )
            folds.append((cost, v, u))
        _, v, u = min(folds, key=lambda fold: (fold[0], fold[1]))  # the oldest on ties
        tied = [fold for fold in folds if fold[0] <= folds[v][0] * (1 + 1e-9)]
        if len(tied) > 1 and self.replay is not None:  # coefficients that are equal but for rounding: rounding chooses
            victim = self.replay(list(self.ids))
            wanted = trial.index if victim is None else victim
            _, v, u = next(fold for fold in tied if self.ids[fold[1]] == wanted)
        if u is not None:
            share = gram[v, u] / gram[u, u]
            self.coef[u] = self.coef[u] + share * self.coef[v]
            self.tangent[u] = self.tangent[u] + share * self.tangent[v]
        self.drop(v)

    def forget(self, size):
        """Shrink so that dropping the oldest costs little: f is f' with the new point already in it."""
        oldest = float(self.coef[0][0])
        sigma, mu = abs(oldest), math.copysign(1.0, oldest) * float(self.expand(self.points[0], self.coef)[0])
        if self.budget.basic:
            U = math.sqrt((size + 1) / math.log(size + 1)) / 4
            phi = min((size + 1) ** (-1 / (2 * (size + 1))), U / math.sqrt(self.norm2()))
        else:  # the largest phi <= 1 with A phi^2 + b phi <= slack
            slack = 15 / 32 * self.mistakes - self.damage
            A, b = sigma**2 - 2 * sigma * mu, 2 * sigma
            phi = 1.0 if A + b <= slack else 2 * slack / (b + math.sqrt(b * b + 4 * A * slack))
        self.damage += (phi * sigma) ** 2 + 2 * phi * sigma - 2 * phi * sigma * phi * mu
        self.scale(phi)
        self.drop(0)

    # -- the list of points

    def append(self, move, trial, member):
        self.points.append(trial.x)
        self.ids.append(trial.index)
        self.coef.append(np.where(member, move.coefficient * trial.direction, 0.0))
        self.tangent.append(np.where(member, move.tangent * trial.direction, 0.0))
        self.member.append(np.array(member))

    def scale(self, factor, tangent=True):
        self.coef = [row * factor for row in self.coef]
        self.tangent = [row * factor for row in self.tangent] if tangent else self.tangent

    def drop(self, at):
        self.keep([i for i in range(len(self.ids)) if i != at])

    def keep(self, which):
        self.evicted += [event for i, event in enumerate(self.ids) if i not in set(which)]
        self.reorder(which)

    def reorder(self, which):
        for name in ("points", "ids", "coef", "tangent", "member"):
            setattr(self, name, [getattr(self, name)[i] for i in which])
