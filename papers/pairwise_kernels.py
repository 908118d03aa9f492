"""Two-stage multiple kernel learning: a mixture learned from pairs beside single kernels, thesis, section 6.6.4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gristmill.kernels import Gaussian, Kernel, Linear, Normalized, Polynomial
from gristmill.pairwise import OnColumns, TwoStageMKL

from . import Claim, Outcome, fewer
from .search import Axis, search
from .thesis import arrays, hold_out, split

#: lengths of the runs of columns that belong together; () where the data have no such views
_VIEWS: dict[str, tuple[int, ...]] = {
    "ionosphere": (),
    "german": (),
    "spambase": (48, 6, 3),  # words, characters, runs of capitals
    "a9a": (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41),  # the fourteen attributes of Adult, one column a value
}
_COSTS = Axis((0.1, 1.0, 10.0, 100.0))
_RATES = Axis((0.01, 0.1, 1.0))
_CONSTRAINTS = ("simplex", "l2")
_MOST, _TEST = 1000, 3000

_HELD, _HINDSIGHT, _UNIFORM = "best single kernel (hold-out)", "best single kernel (hindsight)", "uniform mixture"
_LEARNED, _CENTRED = "TwoStageMKL", "TwoStageMKL, centred kernels"
_SAMPLE = 100  # the first points of the stream, by which kernels are centred

_SETTING = (
    "{splits} random splits, 60 % to train (at most {most:,}), at most {test:,} to test; z-scores, a9a as it is. "
    "ionosphere, german: five Gaussians, the normalised linear kernel and normalised polynomials of degree 2 and 3. "
    "spambase (words, characters, capitals) and a9a (the 14 attributes of Adult): Gaussians of three widths on "
    "each view "
    "and on all columns. Every kernel goes to an SVC; its C, the single kernel, and the constraint and rate of "
    "TwoStageMKL "
    "(averaged, one pass) by a hold-out fifth; grids widen themselves. Centred: the kernels that it weighs have "
    "the mean of the stream's first 100 "
    "points as origin and 1 as mean diagonal. Hindsight: the kernel that the test part chooses. The thesis has "
    "bounds but "
    "no experiment for mixtures."
)


def run(name: str, quick: bool, seed: int) -> Outcome:
    """The same SVC over every kernel, so that only the kernel differs."""
    splits, most, test = (2, 90, 60) if quick else (10, _MOST, _TEST)
    outcome = Outcome("Two-stage multiple kernel learning", _SETTING.format(splits=splits, most=most, test=test))
    found: dict[str, dict[str, list[float]]] = {}
    counts: dict[str, int] = {}
    for data, views in _VIEWS.items():
        X, y = arrays(data)
        for repeat in range(splits):
            parts = split(X, y, seed + repeat, most, scaled=data != "a9a")
            kernels = _kernels(parts[0], views[: 2 if quick else None])
            for line, error in _errors(parts, kernels, test, seed + repeat):
                found.setdefault(data, {}).setdefault(line, []).append(error)
        counts[data] = len(kernels)
    heads = ["kernel", *(f"{data} ({counts[data]} kernels)" for data in found)]
    lines = [[line, *(_shown(table[line]) for table in found.values())] for line in next(iter(found.values()))]
    outcome.tables.append(("Test error of an SVC", heads, lines))
    outcome.claims = [claim for data, table in found.items() for claim in _claims(data, table)]
    outcome.figures.append((_picture(found), "test error of an SVC, mean and standard deviation over the splits"))
    return outcome


def _kernels(X: Any, views: tuple[int, ...]) -> list[Kernel]:
    """The base kernels; gamma is a power of two by the mean squared distance of what the kernel sees."""
    if not views:
        spread = _spread(X)
        base: list[Kernel] = [Gaussian(2.0**k / spread) for k in (-3, -1, 1, 3, 5)]
        polynomials = [Normalized(Polynomial(degree, 1 / X.shape[1])) for degree in (2, 3)]
        return [*base, Normalized(Linear()), *polynomials]
    ends = np.cumsum([0, *views]).tolist()
    seen = [tuple(range(a, b)) for a, b in pairwise(ends)] + [tuple(range(X.shape[1]))]
    return [OnColumns(Gaussian(2.0**k / _spread(X[:, columns])), columns) for columns in seen for k in (-1, 1, 3)]


def _spread(X: Any) -> float:
    """The mean squared distance of two rows, or 1 where there is only one value."""
    return float(2 * X.var(axis=0).sum()) or 1.0


class _Judge:
    """An SVC over any mixture of the kernels, with C from the hold-out."""

    def __init__(self, parts: tuple[Any, Any, Any, Any], kernels: list[Kernel], most: int) -> None:
        self.X, self.y, test, test_y = parts
        self.cut, self.test_y = hold_out(len(self.X)), test_y[:most]
        self.grams = np.array([kernel(self.X) for kernel in kernels])
        self.cross = np.array([kernel(test[:most], self.X) for kernel in kernels])

    def __call__(self, before: Any, after: Any) -> tuple[float, float]:
        """Error on the hold-out with weights that have not seen it, and on the test part with the final ones."""
        from sklearn.svm import SVC

        cut, y = self.cut, self.y
        gram = _mixed(before, self.grams[:, :, :cut])

        def held(C: float) -> float:
            return 1 - SVC(kernel="precomputed", C=C).fit(gram[:cut], y[:cut]).score(gram[cut:], y[cut:])

        best = search({"C": _COSTS}, held)
        model = SVC(kernel="precomputed", C=best.values["C"]).fit(_mixed(after, self.grams), y)
        return best.cost, 1 - model.score(_mixed(after, self.cross), self.test_y)


def _mixed(weights: Any, matrices: Any) -> Any:
    """The weighted sum, without those of no weight: most are single kernels."""
    return sum(weight * matrix for weight, matrix in zip(weights, matrices, strict=True) if weight > 0)


@dataclass(frozen=True, eq=False)
class _Centred(Kernel):
    """A kernel with the mean of a sample as its origin, and a mean of 1 on the diagonal.

    The loss asks whether a kernel is above or below 0, and a Gaussian never is; with unequal classes the
    flattest one then looks best. To an SVC, which has an intercept, the origin makes no difference.
    """

    base: Kernel
    sample: Any

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.base,)

    @property
    def is_native(self) -> bool:
        return False

    @cached_property
    def level(self) -> float:
        return float(self.base(self.sample).mean())

    @cached_property
    def scale(self) -> float:
        own = self.base.diagonal(self.sample).mean() - self.level
        return float(own) if own > 0 else 1.0

    def __call__(self, X: Any, Y: Any = None) -> Any:
        other = X if Y is None else Y
        left, right = (self.base(rows, self.sample).mean(axis=1) for rows in (X, other))
        return (self.base(X, other) - left[:, None] - right + self.level) / self.scale


def _errors(
    parts: tuple[Any, Any, Any, Any], kernels: list[Kernel], most: int, seed: int
) -> Iterator[tuple[str, float]]:
    """Test errors of the single kernels and the mixtures."""
    judge = _Judge(parts, kernels, most)
    singles = [judge(mu, mu) for mu in np.eye(len(kernels))]
    yield _HELD, _chosen(singles)
    yield _HINDSIGHT, min(error for _, error in singles)
    uniform = np.full(len(kernels), 1 / len(kernels))
    yield _UNIFORM, judge(uniform, uniform)[1]
    every = []
    for constraint in _CONSTRAINTS:
        every.append(_learned(judge, kernels, constraint, seed))
        yield f"{_LEARNED}, {constraint}", every[-1][1]
    yield _LEARNED, _chosen(every)
    centred: list[Kernel] = [_Centred(kernel, judge.X[:_SAMPLE]) for kernel in kernels]
    yield _CENTRED, _chosen([_learned(judge, centred, how, seed) for how in _CONSTRAINTS])


def _learned(judge: _Judge, kernels: list[Kernel], constraint: str, seed: int) -> tuple[float, float]:
    """Errors of a learned mixture on the hold-out and the test part, at the rate that is best on the hold-out."""
    scales = np.array([kernel.scale if isinstance(kernel, _Centred) else 1.0 for kernel in kernels])
    errors: dict[float, tuple[float, float]] = {}

    def held(rate: float) -> float:
        model = TwoStageMKL(kernels, constraint=constraint, rate=rate, average=True, random_state=seed)
        before = model.fit(judge.X[: judge.cut], judge.y[: judge.cut]).weights_ / scales
        errors[rate] = judge(before, model.fit(judge.X, judge.y).weights_ / scales)
        return errors[rate][0]

    return errors[search({"rate": _RATES}, held).values["rate"]]


def _chosen(pairs: list[tuple[float, float]]) -> float:
    """The test error of the first that is best on the hold-out; the test part has no say in a tie."""
    return min(pairs, key=lambda pair: pair[0])[1]


def _claims(data: str, table: dict[str, list[float]]) -> list[Claim]:
    return [
        fewer(f"{data}: {line} errs less than the {rival}", table[line], table[rival])
        for line in (_LEARNED, _CENTRED)
        for rival in (_HELD, _UNIFORM)
    ]


def _shown(errors: list[float]) -> str:
    return f"{np.mean(errors):.4f} +- {np.std(errors):.4f}"


def _picture(found: dict[str, dict[str, list[float]]]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    lines = list(next(iter(found.values())))
    figure, axes = pyplot().subplots(
        1, len(found), figsize=(2.6 * len(found) + 2.4, 3.2), layout="constrained", sharey=True
    )
    for ax, (data, table) in zip(axes, found.items(), strict=True):
        for place, line in enumerate(lines):
            colour = COLOURS[0] if line.startswith(_LEARNED) else COLOURS[1]
            ax.errorbar(np.mean(table[line]), -place, xerr=np.std(table[line]), marker="o", capsize=3, color=colour)
        ax.set_yticks(-np.arange(len(lines)), lines)
        ax.set(title=data, xlabel="test error")
        ax.locator_params(axis="x", nbins=4)
        tidy(ax)
    return figure
