"""The loop over samples: which of them are stored, and the statistics that are kept of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from .._common.types import Fields
from ..budgets import Budget, Project
from ..kernels import Kernel
from .span import DEPENDENT, Floats, Span, moved


class Settings(NamedTuple):
    """The parameters as they were when the learner began."""

    kernel: Kernel
    budget: Budget
    size: int | None  #: most stored points
    decay: float
    number: int  #: components or clusters
    seed: int

    @property
    def least(self) -> float:
        """Squared distance from the span above which a sample is stored while the budget is not full."""
        return float(self.budget.tolerance) ** 2 if isinstance(self.budget, Project) else 0.0


class Statistics:
    """What is kept of all samples, as coefficients over the stored points. Methods make a new one and change none."""

    def __init__(self, arrays: dict[str, Floats]) -> None:
        self.arrays = arrays

    @classmethod
    def empty(cls) -> Self:
        raise NotImplementedError

    def faded(self, decay: float) -> Self:
        return self if decay == 1 else type(self)({name: decay * array for name, array in self.arrays.items()})

    def taken(self, span: Span, row: Floats, coefficients: Floats, self_value: float) -> Self:
        """With one sample more, by its kernel values and the coefficients of its projection."""
        raise NotImplementedError

    def grown(self) -> Self:
        """With zeros for a point that enters at the end."""
        raise NotImplementedError

    def moved(self, span: Span, place: int, onto: Floats) -> Self:
        """After a point has left and another one has entered; `span` is the one before."""
        raise NotImplementedError

    def importance(self, span: Span) -> Floats:
        """For each stored point the sum of squared distances that would be lost without it."""
        raise NotImplementedError

    def fits(self, size: int) -> bool:
        """Whether the shapes are those for so many points."""
        raise NotImplementedError


class Learned(NamedTuple):
    """Everything that is learned."""

    span: Span
    statistics: Statistics
    seen: int


class UnsupervisedCore:
    """The verbs of the compiled learners over a span and statistics."""

    is_plain = is_sparse = is_single = False
    classes = 0
    outputs = 1

    def __init__(self, settings: Settings, width: int, statistics: type[Statistics]) -> None:
        self.settings, self.width = settings, width
        self.learned = Learned(Span.empty(width), statistics.empty(), 0)
        self.found: tuple[Learned, Any] | None = None  #: what was computed from a state, and that state

    @property
    def seen(self) -> int:
        return self.learned.seen

    @property
    def memory_bytes(self) -> int:
        """Bytes of the numbers that are kept."""
        statistics = sum(array.nbytes for array in self.learned.statistics.arrays.values())
        return self.learned.span.nbytes() + statistics

    def check(self, rows: Floats) -> None:
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            row, column = bad[0]
            kind = "NaN" if np.isnan(rows[row, column]) else "infinity"
            raise ValueError(f"Input X contains {kind}: row {row}, column {column} is {rows[row, column]}")
        self.settings.kernel.diagonal(rows)  # refuses rows that are too large

    def learn(
        self, rows: Floats, labels: object, weights: object, want_scores: bool, classes: int = 0
    ) -> Floats | None:
        """One pass in order, kept only when all of it went well; scores: squared distances from the span before."""
        self.check(rows)
        now, distances = self.learned, np.empty(len(rows))
        for i, x in enumerate(rows):
            now, distances[i] = self._after(now, x, i)
        self.learned = now
        return distances if want_scores else None

    def values(self, span: Span, rows: Floats, first: int) -> tuple[Floats, Floats]:
        """Kernel values of rows at the stored points and at themselves."""
        kernel = self.settings.kernel
        values = kernel(rows, span.points) if len(span) else np.empty((len(rows), 0))
        selves = kernel.diagonal(rows)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1) | ~np.isfinite(selves))
        if len(bad):
            raise ValueError(f"row {first + int(bad[0])}: a kernel value is not finite; scale the inputs")
        return values, selves

    def _after(self, now: Learned, x: Floats, i: int) -> tuple[Learned, float]:
        """The state after a sample, and the sample's squared distance from the span."""
        span, settings = now.span, self.settings
        rows, selves = self.values(span, x[None], i)
        row, self_value = rows[0], float(selves[0])
        statistics = now.statistics.faded(settings.decay)
        coefficients = span.coefficients(row)
        rest = max(self_value - float(row @ coefficients), 0.0)
        if rest > max(settings.least, DEPENDENT * self_value):
            if settings.size is None or len(span) < settings.size:
                span, statistics = span.grown(x, now.seen, row, self_value, coefficients, rest), statistics.grown()
            elif not isinstance(settings.budget, Project):
                span, statistics = self._replaced(span, statistics, x, now.seen, row, self_value, rest)
            if span is not now.span:
                row = np.ascontiguousarray(span.gram[-1]) if span.ids[-1] == now.seen else row
                coefficients = np.zeros(len(span))
                coefficients[-1] = 1.0
        return Learned(span, statistics.taken(span, row, coefficients, self_value), now.seen + 1), rest

    def _replaced(
        self, span: Span, statistics: Statistics, x: Floats, at: int, row: Floats, self_value: float, rest: float
    ) -> tuple[Span, Statistics]:
        """The least important point leaves, projected onto the others, where it matters less than the new one."""
        importance = statistics.importance(span)
        place = int(importance.argmin())
        if importance[place] >= rest:
            return span, statistics
        fewer, beside = span.without(place), np.delete(row, place)
        coefficients = fewer.coefficients(beside)
        distance = max(self_value - float(beside @ coefficients), rest)
        fresh = fewer.grown(x, at, beside, self_value, coefficients, distance)
        onto = fresh.coefficients(np.append(np.delete(span.gram[place], place), row[place]))
        return fresh, statistics.moved(span, place, onto)

    # ---- saving --------------------------------------------------------------------------------------------------

    def state(self) -> Fields:
        span, statistics, seen = self.learned
        return {
            **{f"statistics_{name}": array for name, array in statistics.arrays.items()},
            "points": span.points,
            "ids": span.ids,
            "gram": span.gram,
            "inverse": span.inverse,
            "counters": np.array([seen, span.changes], dtype=np.int64),
            "classes": np.zeros(1, dtype=np.int64),
        }

    def restore(self, state: Mapping[str, object]) -> None:
        """Take a saved state; raises ValueError where the arrays do not fit together."""
        kind = type(self.learned.statistics)
        names = kind.empty().arrays
        statistics = kind({name: np.array(state[f"statistics_{name}"]) for name in names})
        points, ids, gram, inverse, counters = (
            np.array(state[name]) for name in ("points", "ids", "gram", "inverse", "counters")
        )
        m = len(ids)
        floats = [points, gram, inverse, *statistics.arrays.values()]
        fits = (
            all(a.dtype == np.float64 and bool(np.isfinite(a).all()) for a in floats)
            and ids.dtype == counters.dtype == np.int64
            and ids.ndim == 1
            and counters.shape == (2,)
            and counters.min() >= 0
            and points.shape == (m, self.width)
            and gram.shape == inverse.shape == (m, m)
            and (self.settings.size is None or m <= self.settings.size)
            and bool(np.all(np.diff(ids) > 0))
            and (m == 0 or (ids[0] >= 0 and ids[-1] < counters[0]))
            and statistics.fits(m)
            and bool(np.all(np.diag(inverse) > 0))
        )
        if not fits:
            raise ValueError("the saved arrays do not fit together")
        self.learned = Learned(Span(points, ids, gram, inverse, int(counters[1])), statistics, int(counters[0]))


class Moments(Statistics):
    """Number, sum and sum of squares of the projections: `weight`, `sum` s = sum c, `products` M = sum c c^T."""

    @classmethod
    def empty(cls) -> Self:
        return cls({"weight": np.zeros(2), "sum": np.empty(0), "products": np.empty((0, 0))})

    def taken(self, span: Span, row: Floats, coefficients: Floats, self_value: float) -> Self:
        a = self.arrays
        return type(self)(
            {
                "weight": a["weight"] + [1.0, self_value],  # and the sum of k(x, x)
                "sum": a["sum"] + coefficients,
                "products": a["products"] + np.outer(coefficients, coefficients),
            }
        )

    def grown(self) -> Self:
        a = self.arrays
        return type(self)({**a, "sum": np.append(a["sum"], 0.0), "products": np.pad(a["products"], (0, 1))})

    def moved(self, span: Span, place: int, onto: Floats) -> Self:
        a = self.arrays
        columns = moved(a["products"], place, onto)
        products = moved(np.ascontiguousarray(columns.T), place, onto)
        return type(self)({**a, "sum": moved(a["sum"], place, onto), "products": products})

    def importance(self, span: Span) -> Floats:
        return np.asarray(np.diag(self.arrays["products"]) * span.distances())

    def fits(self, size: int) -> bool:
        a = self.arrays
        return a["weight"].shape == (2,) and a["sum"].shape == (size,) and a["products"].shape == (size, size)


class Groups(Statistics):
    """Number and sum of the projections of the samples nearest to each stored point: `weight`, `counts`, `sums`."""

    @classmethod
    def empty(cls) -> Self:
        return cls({"weight": np.zeros(2), "counts": np.empty(0), "sums": np.empty((0, 0))})

    def taken(self, span: Span, row: Floats, coefficients: Floats, self_value: float) -> Self:
        a = self.arrays
        if not len(span):
            return self
        nearest = int((np.diag(span.gram) - 2 * row).argmin())
        counts, sums = a["counts"].copy(), a["sums"].copy()
        counts[nearest] += 1.0
        sums[nearest] += coefficients
        return type(self)({"weight": a["weight"] + [1.0, self_value], "counts": counts, "sums": sums})

    def grown(self) -> Self:
        a = self.arrays
        return type(self)({**a, "counts": np.append(a["counts"], 0.0), "sums": np.pad(a["sums"], (0, 1))})

    def moved(self, span: Span, place: int, onto: Floats) -> Self:
        a = self.arrays
        apart = np.diag(span.gram) - 2 * span.gram[place]
        apart[place] = np.inf
        heir = int(apart.argmin())  # the nearest stored point takes the samples of the one that leaves
        counts, sums = a["counts"].copy(), a["sums"].copy()
        counts[heir] += counts[place]
        sums[heir] += sums[place]
        counts = np.append(np.delete(counts, place), 0.0)
        sums = moved(np.vstack([np.delete(sums, place, axis=0), np.zeros(len(span))]), place, onto)
        return type(self)({**a, "counts": counts, "sums": sums})

    def importance(self, span: Span) -> Floats:
        return np.asarray(self.arrays["counts"] * span.distances())

    def fits(self, size: int) -> bool:
        a = self.arrays
        return a["weight"].shape == (2,) and a["counts"].shape == (size,) and a["sums"].shape == (size, size)
