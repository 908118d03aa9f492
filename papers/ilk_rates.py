"""ILK and SILK, figure 4 again: what its verdict depends on. Error against the rate, for three sizes of the buffer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import Claim, Outcome, fewer
from .ilk_digits import DECAY, digits
from .mistakes import follow
from .search import Axis, Best, search
from .thesis import steps

#: t is the cosine of two images; the paper prints the degree and not the scale
KERNELS = {"((1 + t)/2)^9": "Polynomial(9, 0.5, 0.5)", "t^9": "Polynomial(9, 1.0, 0.0)"}
_SIZES = (128, 512, 1500)
_SMALL = 1.0  # up to it a step of NORMA does not swamp its margin of 1
_RATES = Axis((0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0))
_TAME = Axis(_RATES.values[:4], most=_SMALL)
#: learner -> text by kernel, rate and size; the rate of SILK is C, the largest coefficient it may give
_LEARNERS = {
    "NORMA": "norma_classifier({k}, rate={rate}, reg={reg}, size={size})",
    "SILK": f"ilk_classifier({{k}}, C={{rate}}, reg={DECAY!r}, size={{size}})",
}
_PERCEPTRON = "KernelClassifier({k}, Perceptron(), DropOldest({size}))"

#: (kernel, size, learner) -> (permutation, rate): shares of mistakes
Found = dict[tuple[str, int, str], npt.NDArray[np.float64]]
#: (kernel, size, line) -> the rate that is best on a permutation that is not counted; NORMA has a line up to `_SMALL`
Chosen = dict[tuple[str, int, str], Best]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """The first permutation chooses rates; both learners run at every rate and size on the others."""
    count, repeats, sizes = (120, 3, (20, 40, 60)) if quick else (20_000, 4, _SIZES)
    X, digit = digits("mnist", 300 if quick else None)
    y = digit < 5
    jobs = [(repeat, kernel, size) for repeat in range(repeats) for kernel in KERNELS for size in sizes]
    chosen: Chosen = {}
    rows: dict[tuple[str, int, str], list[list[float]]] = {}
    rates = _RATES.values
    for repeat, kernel, size in steps(jobs, "error against the rate"):
        order = np.random.default_rng(seed + repeat).permutation(len(y))[:count]
        learn = _Learn(KERNELS[kernel], size, X[order], y[order])
        if repeat == 0:
            chosen |= {(kernel, size, line): best for line, best in _choose(learn).items()}
            rates = tuple(sorted({*rates, *(r for best in chosen.values() for r in best.grid["rate"])}))
            continue
        for learner in (*_LEARNERS, "Perceptron"):
            rows.setdefault((kernel, size, learner), []).append([learn(learner, rate) for rate in rates])
    found = {key: np.array(errors) for key, errors in rows.items()}
    outcome = Outcome(
        "ILK and SILK, figure 4: error against the rate, and what the verdict depends on",
        f"0-4 against 5-9 of MNIST, {count:,} random digits in each of {repeats - 1} runs, and in one more that chooses the "
        "rates and is not counted; average error of one pass. Both forget 0.00005 in a step, as printed for SILK. "
        "NORMA drops the oldest point and SILK the one of the smallest coefficient. The rate of SILK is its C, the largest "
        "coefficient that it may give a point. Perceptron: without margin, dropping the oldest point.",
    )
    for kernel in KERNELS:
        table = [
            [str(size), learner, *(f"{100 * error:.2f} %" for error in found[kernel, size, learner].mean(axis=0))]
            for size in sizes
            for learner in (*_LEARNERS, "Perceptron")
        ]
        outcome.tables.append(
            (f"average error, {kernel}", ["points", "learner", *(f"rate {r:g}" for r in rates)], table)
        )
    outcome.claims = [c for kernel in KERNELS for size in sizes for c in _claims(kernel, size, found, chosen, rates)]
    outcome.figures.append((_picture(found, sizes, rates), "average error of one pass against the rate"))
    return outcome


@dataclass
class _Learn:
    """Shares of mistakes on one stream, by learner and rate; each is run once."""

    kernel: str
    size: int
    X: Any
    y: Any
    known: dict[str, float] = field(default_factory=dict)

    def __call__(self, learner: str, rate: float) -> float:
        text = _LEARNERS.get(learner, _PERCEPTRON)
        filled = text.format(k=self.kernel, rate=rate, reg=f"{DECAY / rate:.6g}", size=self.size)
        if filled not in self.known:
            self.known[filled] = float(follow(filled, self.X, self.y)[0].mean())
        return self.known[filled]


def _choose(learn: _Learn) -> dict[str, Best]:
    """The best rate of each learner, and of NORMA also the best among the small ones."""
    return {
        "SILK": search({"rate": _RATES}, lambda rate: learn("SILK", rate)),
        "NORMA": search({"rate": _RATES}, lambda rate: learn("NORMA", rate)),
        "NORMA, small": search({"rate": _TAME}, lambda rate: learn("NORMA", rate)),
    }


def _claims(kernel: str, size: int, found: Found, chosen: Chosen, rates: tuple[float, ...]) -> list[Claim]:
    """SILK at its best rate against NORMA at its best among small ones, and among all."""

    def at(line: str) -> tuple[float, Any]:
        rate = chosen[kernel, size, line].values["rate"]
        return rate, found[kernel, size, line.removesuffix(", small")][:, rates.index(rate)]

    claims = []
    C, ours = at("SILK")
    for words, line in ((f"a rate of at most {_SMALL:g}", "NORMA, small"), ("any rate", "NORMA")):
        rate, theirs = at(line)
        says = f"{kernel}, {size} points: SILK (C = {C:g}) errs less than NORMA with {words} ({rate:g})"
        claims.append(fewer(says, ours, theirs))
    return claims


def _picture(found: Found, sizes: tuple[int, ...], rates: tuple[float, ...]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(1, len(KERNELS), figsize=(10.4, 4.2), layout="constrained", sharey=True)
    looks = {"NORMA": "o-", "SILK": "s--", "Perceptron": ":"}
    for ax, kernel in zip(axes, KERNELS, strict=True):
        for colour, size in zip(COLOURS, sizes, strict=False):
            for learner, style in looks.items():
                ax.plot(rates, 100 * found[kernel, size, learner].mean(axis=0), style, color=colour, markersize=4)
        ax.axvline(_SMALL, color="0.8", linewidth=1, zorder=0)
        ax.set(title=kernel, xscale="log", xlabel="rate of NORMA, C of SILK", ylim=(0, None))
        tidy(ax)
    axes[0].set_ylabel("average error, %")
    handles = [
        axes[0].plot([], [], color=c, label=f"{size} points")[0] for c, size in zip(COLOURS, sizes, strict=False)
    ]
    handles += [axes[0].plot([], [], style, color="black", label=learner)[0] for learner, style in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure
