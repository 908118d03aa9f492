"""Which degrees a random Maclaurin map draws, how often, and what the choice does to its variance.

With P[N = n] = q_n a feature of degree n has the squared weight a_n / (q_n D). The second moment of one
feature's product for a pair (x, y) is sum_n a_n^2 m_n / q_n, where m_n = E[Z_n(x)^2 Z_n(y)^2] of a product of
n unweighted projections; it is least at q_n ~ a_n sqrt(m_n). Only degrees with a_n > 0 are ever drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .series import LONGEST, Series

Reals = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]

_BITS = 64  # a degree law is followed until less than 2^-64 of its mass is left: below what a double can draw


@dataclass(frozen=True)
class Law:
    """Degrees that can be drawn, their probabilities and the logarithms of their coefficients."""

    degrees: Wholes
    probabilities: Reals
    logs: Reals  # log a_n of those degrees
    rate: float  # lim q_(n+1) / q_n of an infinite series; 0 where it is finite

    def without(self, position: int) -> Law:
        keep = np.arange(len(self.degrees)) != position
        rest = self.probabilities[keep]
        return Law(self.degrees[keep], rest / rest.sum(), self.logs[keep], self.rate)


def support(series: Series, first: int, last: int | None, count: int) -> tuple[Wholes, Reals]:
    """Degrees n >= first (and <= last) among the first `count` with a_n > 0, and log a_n."""
    logs = series.log_coefficients(count if last is None else min(count, last + 1))
    degrees = np.flatnonzero(np.isfinite(logs))
    degrees = degrees[degrees >= first]
    return degrees, logs[degrees]


def geometric(series: Series, p: float, first: int, last: int | None) -> Law | None:
    """q_n ~ p^-n on the degrees that the series has; None if it has no term of degree >= first."""
    reach = math.ceil(_BITS * math.log(2) / math.log(p))
    lowest = _lowest(series, first, last)
    if lowest is None:
        return None
    degrees, logs = support(series, first, last, lowest + reach + 1)
    weights = np.exp(-(degrees - degrees[0]) * math.log(p))
    endless = series.degree is None and last is None
    return Law(degrees, weights / weights.sum(), logs, 1 / p if endless else 0.0)


def _lowest(series: Series, first: int, last: int | None) -> int | None:
    count = first + 64
    while True:
        degrees, _ = support(series, first, last, count)
        if len(degrees):
            return int(degrees[0])
        ended = (series.degree is not None and count > series.degree) or (last is not None and count > last)
        if ended or count > LONGEST:
            return None
        count *= 2


def optimal(series: Series, moments: Moments, first: int, last: int | None, stratified: bool) -> Law | None:
    """q_n ~ a_n sqrt(m_n), m_n a mean over pairs of the data (of the variance, if stratified)."""
    lowest = _lowest(series, first, last)
    if lowest is None:
        return None
    endless = series.degree is None and last is None
    rate = math.sqrt(moments.largest) / series.radius if endless and math.isfinite(series.radius) else 0.0
    if rate > 1.0:  # of the terms in the end: no need to write them out
        raise _diverges(series, moments)
    count = lowest + 64
    while True:
        degrees, logs = support(series, first, last, count)
        score = logs + 0.5 * (moments.log_variance(degrees) if stratified else moments.log_second(degrees))
        ended = (series.degree is not None and count > series.degree) or (last is not None and count > last)
        # Two tails are too light to matter: one that is nowhere near the largest term, one that is empty.
        if ended or (len(score) > 8 and score[-8:].max() < score.max() - _BITS * math.log(2)):
            break
        if count > LONGEST:
            raise _diverges(series, moments)
        count *= 2
    if not np.isfinite(score).any():  # every pair is exact already (for one, all-zero data)
        score = np.where(np.isfinite(logs), -degrees * math.log(2), -np.inf)
    weights = np.exp(score - score.max())
    # A degree whose variance vanishes on the sample still has to be drawn, or the map would be biased
    # elsewhere.
    weights = np.maximum(weights, weights.max() * 1e-9)
    return Law(degrees, weights / weights.sum(), logs, rate)


def _diverges(series: Series, moments: Moments) -> ValueError:
    return ValueError(
        f"measure='optimal': sum_n a_n m^(n/2) does not converge for this data (m = {moments.largest:g}, radius of "
        f"convergence {series.radius:g}); multiply the inputs by less than "
        f"{(series.radius**2 / moments.largest) ** 0.25:g} or set max_degree"
    )


class Moments:
    """Means over pairs of rows of the moments of a product of n projections.

    With A = |x|^2 |y|^2, c = <x, y>, s = sum x_i^2 y_i^2 and D columns, a real sketch of degree n has
    variance ((A + 2c^2 - 2s)^n - c^2n) / D and a complex one ((A + c^2 - s)^n + (2c^2 - s)^n - 2c^2n) / D.
    """

    def __init__(self, X: Any, complex_signs: bool) -> None:
        """X: a few dense rows."""
        squares = X * X
        left, right = np.triu_indices(len(X), k=1 if len(X) > 1 else 0)
        norms = squares.sum(axis=1)
        c2 = (X @ X.T)[left, right] ** 2
        s = (squares @ squares.T)[left, right]
        A = norms[left] * norms[right]
        self._c2 = c2
        self._parts: tuple[Any, ...]
        if complex_signs:
            self._parts = (np.maximum(A + c2 - s, 0), 2 * c2 - s)
        else:
            self._parts = (np.maximum(A + 2 * c2 - 2 * s, 0),)
        self.largest = float(max(part.max() for part in self._parts))

    def log_second(self, degrees: Wholes) -> Reals:
        return self._log_mean(degrees, 0.0)

    def log_variance(self, degrees: Wholes) -> Reals:
        return self._log_mean(degrees, float(len(self._parts)))

    def _log_mean(self, degrees: Wholes, exact_share: float) -> Reals:
        """log of the mean over pairs of sum of parts^n - share c^2n, scaled so that no power overflows."""
        top = max(self.largest, np.finfo(float).tiny)
        scaled = [part / top for part in self._parts]
        exact = self._c2 / top
        out = np.empty(len(degrees))
        for i, n in enumerate(degrees):
            value = sum(part ** int(n) for part in scaled) - exact_share * exact ** int(n)
            mean = float(np.mean(np.maximum(value, 0.0))) / len(scaled)
            out[i] = (math.log(mean) if mean > 0 else -np.inf) + int(n) * math.log(top)
        return out


# ---- from a law to features --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """Degrees and squared weights of single columns, and of pairs of columns (real and imaginary part)."""

    degrees: Wholes
    log_weights: Reals
    pair_degrees: Wholes
    pair_log_weights: Reals


def draw(law: Law, columns: int, paired: bool, stratified: bool, rng: np.random.Generator) -> Draw:
    """Features for `columns` columns; unbiased for every draw."""
    out: list[tuple[int, float, bool]] = []
    if stratified:
        law, columns = _exact_constant(law, columns, out)
        counts, rest, rest_columns = _allocate(law, columns)
        for i, count in counts:
            n, weight = int(law.degrees[i]), float(law.logs[i]) - math.log(count)
            twos = count // 2 if paired and n > 1 else 0  # at degree 1 both sketches have the same variance
            out += [(n, weight + math.log(2), True)] * twos + [(n, weight, False)] * (count - 2 * twos)
        if rest_columns:
            share = law.probabilities[rest]
            _draw_some(law.degrees[rest], share / share.sum(), law.logs[rest], rest_columns, paired, True, rng, out)
    else:
        _draw_some(law.degrees, law.probabilities, law.logs, columns, paired, False, rng, out)
    out.sort(key=lambda feature: -feature[0])
    single, pairs = [f for f in out if not f[2]], [f for f in out if f[2]]
    return Draw(
        np.array([f[0] for f in single], dtype=np.int64),
        np.array([f[1] for f in single], dtype=np.float64),
        np.array([f[0] for f in pairs], dtype=np.int64),
        np.array([f[1] for f in pairs], dtype=np.float64),
    )


def _exact_constant(law: Law, columns: int, out: list[tuple[int, float, bool]]) -> tuple[Law, int]:
    """One column holds the term of degree 0 exactly; more would be wasted on it."""
    if law.degrees[0] != 0 or len(law.degrees) == 1 or columns < 2:
        return law, columns
    out.append((0, float(law.logs[0]), False))
    return law.without(0), columns - 1


def _allocate(law: Law, columns: int) -> tuple[list[tuple[int, int]], Wholes, int]:
    """Columns of each degree that earns at least one; the other degrees share what is left and are drawn."""
    order = np.argsort(-law.probabilities, kind="stable")
    wanted = columns * law.probabilities[order]
    head = int(np.sum(wanted >= 1))
    if head < len(order):
        head = min(head, columns - 1)
    shares = np.append(wanted[:head], wanted[head:].sum()) if head < len(order) else wanted
    counts = np.maximum(np.floor(shares), 1).astype(int)
    # Largest remainders; a share that was lifted to 1 is paid for by the largest ones.
    while counts.sum() < columns:
        counts[np.argmax(shares - counts)] += 1
    while counts.sum() > columns:
        counts[np.argmax(np.where(counts > 1, counts - shares, -np.inf))] -= 1
    fixed = [(int(order[i]), int(counts[i])) for i in range(head)]
    return fixed, np.sort(order[head:]), int(counts[head]) if head < len(order) else 0


def _draw_some(
    degrees: Wholes,
    probabilities: Reals,
    logs: Reals,
    columns: int,
    paired: bool,
    evenly: bool,
    rng: np.random.Generator,
    out: list[tuple[int, float, bool]],
) -> None:
    """Draw degrees for some columns; `evenly` spreads one uniform number over all of them."""
    twos = columns // 2 if paired else 0
    features = twos + columns - 2 * twos
    edges = np.cumsum(probabilities)
    uniform = (np.arange(features) + rng.random()) / features if evenly else rng.random(features)
    picked = np.minimum(np.searchsorted(edges, uniform * edges[-1], side="right"), len(degrees) - 1)
    rng.shuffle(picked)  # the single column must not always come from one end
    for position, i in enumerate(picked):
        pair = position < twos
        weight = float(logs[i] - math.log(probabilities[i]) - math.log(columns) + (math.log(2) if pair else 0.0))
        out.append((int(degrees[i]), weight, pair))
