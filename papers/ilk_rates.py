"""ILK and SILK, figure 4 again: what its verdict depends on. Error against the rate, for three sizes of the buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import Claim, Outcome, fewer
from .ilk_digits import DECAY, digits
from .mistakes import follow
from .thesis import steps

#: t is the cosine of two images; the paper prints the degree and not the scale
KERNELS = {"((1 + t)/2)^9": "Polynomial(9, 0.5, 0.5)", "t^9": "Polynomial(9, 1.0, 0.0)"}
_SIZES = (128, 512, 1500)
_RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_SMALL = 1.0  # up to it a step of NORMA does not swamp its margin of 1
#: learner -> text by kernel, rate and size; the rate of SILK is C, the largest coefficient it may give
_LEARNERS = {
    "NORMA": "norma_classifier({k}, rate={rate}, reg={reg}, size={size})",
    "SILK": f"ilk_classifier({{k}}, C={{rate}}, reg={DECAY!r}, size={{size}})",
}
_PERCEPTRON = "KernelClassifier({k}, Perceptron(), DropOldest({size}))"

#: (kernel, size, learner) -> (permutation, rate): shares of mistakes
Found = dict[tuple[str, int, str], npt.NDArray[np.float64]]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Both learners at every rate and size; the first permutation chooses rates, the others are counted."""
    count, repeats, sizes = (120, 3, (20, 40, 60)) if quick else (20_000, 4, _SIZES)
    X, digit = digits("mnist", 300 if quick else None)
    y = digit < 5
    jobs = [(repeat, kernel, size) for repeat in range(repeats) for kernel in KERNELS for size in sizes]
    rows: dict[tuple[str, int, str], list[list[float]]] = {}
    for repeat, kernel, size in steps(jobs, "error against the rate"):
        order = np.random.default_rng(seed + repeat).permutation(len(y))[:count]
        for learner, errors in _errors(KERNELS[kernel], size, X[order], y[order]).items():
            rows.setdefault((kernel, size, learner), []).append(errors)
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
            [str(size), learner, *(f"{100 * error:.2f} %" for error in _shown(found[kernel, size, learner]))]
            for size in sizes
            for learner in (*_LEARNERS, "Perceptron")
        ]
        heads = ["points", "learner", *(f"rate {rate:g}" for rate in _RATES)]
        outcome.tables.append((f"average error, {kernel}", heads, table))
    outcome.claims = [claim for kernel in KERNELS for size in sizes for claim in _claims(kernel, size, found)]
    outcome.figures.append((_picture(found, sizes), "average error of one pass against the rate"))
    return outcome


def _errors(kernel: str, size: int, X: Any, y: Any) -> dict[str, list[float]]:
    def error(text: str, rate: float) -> float:
        filled = text.format(k=kernel, rate=rate, reg=f"{DECAY / rate:.6g}", size=size)
        return float(follow(filled, X, y)[0].mean())

    found = {learner: [error(text, rate) for rate in _RATES] for learner, text in _LEARNERS.items()}
    return found | {"Perceptron": [error(_PERCEPTRON, 1.0)] * len(_RATES)}


def _shown(errors: npt.NDArray[np.float64]) -> Any:
    return errors[1:].mean(axis=0)


def _claims(kernel: str, size: int, found: Found) -> list[Claim]:
    """SILK at its best rate against NORMA at its best among small ones, and among all."""
    claims = []
    silk, norma = (found[kernel, size, learner] for learner in ("SILK", "NORMA"))
    ours = int(np.argmin(silk[0]))
    for words, allowed in (
        (f"a rate of at most {_SMALL:g}", np.array(_RATES) <= _SMALL),
        ("any rate", np.array(_RATES) > 0),
    ):
        theirs = int(np.argmin(np.where(allowed, norma[0], np.inf)))
        says = f"{kernel}, {size} points: SILK (C = {_RATES[ours]:g}) errs less than NORMA with {words} ({_RATES[theirs]:g})"
        claims.append(fewer(says, silk[1:, ours], norma[1:, theirs]))
    return claims


def _picture(found: Found, sizes: tuple[int, ...]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(1, len(KERNELS), figsize=(10.4, 4.2), layout="constrained", sharey=True)
    looks = {"NORMA": "o-", "SILK": "s--", "Perceptron": ":"}
    for ax, kernel in zip(axes, KERNELS, strict=True):
        for colour, size in zip(COLOURS, sizes, strict=False):
            for learner, style in looks.items():
                ax.plot(_RATES, 100 * _shown(found[kernel, size, learner]), style, color=colour, markersize=4)
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
