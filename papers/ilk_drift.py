"""ILK and SILK, figure 1: errors on two classes that drift together along a path."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.streams import silk_sequence

from . import Claim, Outcome, fewer
from .search import Axis, few, fixed, mistakes, tuned

Curves = dict[str, npt.NDArray[np.int64]]  # line -> (trial, event): the errors so far

#: The paper shows its sequence and prints no numbers, but says that forgetting is crucial on it. That needs places
#: that change their class, which only the second of ours has.
_SEQUENCES: dict[str, dict[str, float]] = {"along a path": {}, "turning": {"speed": 2.0, "turns": 1.0}}
_RATES = Axis((0.03, 0.1, 0.3, 1.0))
_DECAYS = Axis((0.001, 0.003, 0.01, 0.03), most=0.5)  # about the share forgotten in a step
_WIDTHS = Axis((2.0, 4.0))
_SIZE = 40  # points of SILK and of truncated NORMA; the paper prints none for this figure
_EXCHANGED = ("ILK that drops the oldest", "NORMA that drops the smallest")


def _ilk(gamma: float, rate: float, decay: float, extra: str = "") -> str:
    return f"ilk_classifier(Gaussian({gamma}), C={rate}, rate=1.0, reg={decay}{extra})"


def _norma(gamma: float, rate: float, decay: float, extra: str = "") -> str:
    return f"norma_classifier(Gaussian({gamma}), rate={rate}, reg={decay / rate:.6g}{extra})"


def _oldest(gamma: float, rate: float, decay: float) -> str:
    return f"KernelClassifier(Gaussian({gamma}), Implicit(Hinge(), {rate}, 1.0, {decay}), DropOldest({_SIZE}))"


def _smallest(gamma: float, rate: float, decay: float) -> str:
    return f"KernelClassifier(Gaussian({gamma}), SGD(Hinge(), {rate}, {decay / rate:.6g}), DropSmallest({_SIZE}))"


def _lines(quick: bool) -> dict[str, tuple[Callable[..., str], dict[str, Axis]]]:
    """The paper tunes each algorithm by itself: the same grid for all. NORMA drops the oldest, SILK the smallest."""
    axes = {"gamma": _WIDTHS, "rate": _RATES, "decay": _DECAYS}
    if quick:
        axes = {name: few(axis) for name, axis in axes.items()}
    never = {**axes, "decay": fixed(0.0, why="learners that forget nothing")}
    size = f", size={_SIZE}"
    return {
        "ILK": (_ilk, axes),
        "SILK": (partial(_ilk, extra=size), axes),
        "NORMA": (_norma, axes),
        "truncated NORMA": (partial(_norma, extra=size), axes),
        "ILK(0)": (_ilk, never),
        "NORMA(0)": (_norma, never),
        # Not in the paper: each step with the other's way to drop, to see which of the two makes the difference.
        _EXCHANGED[0]: (_oldest, axes),
        _EXCHANGED[1]: (_smallest, axes),
    }


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Tune each line on sequences of their own, count its errors on a hundred others, as many as in the paper."""
    trials, others = (5, 2) if quick else (100, 20)
    outcome = Outcome(
        "ILK and SILK, figure 1: errors on drifting sequences",
        f"2,000 events a sequence, {trials} sequences; hinge loss with margin 1; parameters and kernel width of every "
        f"line chosen on {others} others, by a grid that widens itself; SILK and truncated NORMA keep {_SIZE} points, as "
        f"do two lines that are not in the paper and exchange what is dropped. The sequences are ours: along a "
        f"path, where no place changes its class, and turning once. Best possible error: "
        f"{silk_sequence().bayes_error:.3f}.",
    )
    shown = {}
    for kind, options in _SEQUENCES.items():
        tuning = [_sequence(seed + 10_000 + place, options) for place in range(others)]
        tests = [_sequence(seed + place, options) for place in range(trials)]
        curves: Curves = {}
        rows = []
        for line, (text, axes) in _lines(quick).items():
            best, found = tuned(text, axes, tuning)
            curves[line] = np.array([mistakes(best, *data) for data in tests])
            ends = curves[line][:, -1]
            rows.append([line, f"{ends.mean():.1f}", f"{ends.std(ddof=1):.1f}", best, found.remark()])
        heads = ["line", "errors", "s.d.", "chosen", "grid"]
        outcome.tables.append((f"errors in 2,000 events, {kind}", heads, rows))
        outcome.claims += _claims(kind, curves)
        shown[kind] = curves
    outcome.figures.append(
        (_picture(shown), "left: errors so far beyond those of NORMA, mean; right: ILK against NORMA, a dot a trial")
    )
    return outcome


def _sequence(seed: int, options: dict[str, float]) -> tuple[Any, Any]:
    return silk_sequence(2000, random_state=seed, **options).arrays()


def _claims(kind: str, curves: Curves) -> list[Claim]:
    pairs = [("ILK", "NORMA"), ("SILK", "truncated NORMA"), ("ILK", "ILK(0)"), ("NORMA", "NORMA(0)")]
    pairs.append(("SILK", _EXCHANGED[0]))  # section 2.1: to drop the smallest is more effective than the oldest
    return [
        fewer(f"{kind}: {less} errs less than {more}", curves[less][:, -1], curves[more][:, -1]) for less, more in pairs
    ]


def _picture(shown: dict[str, Curves]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(len(shown), 2, figsize=(10.0, 3.8 * len(shown)), layout="constrained")
    for (left, right), (kind, curves) in zip(axes, shown.items(), strict=True):
        plain = curves["NORMA"]
        for colour, (line, counts) in zip(COLOURS, curves.items(), strict=False):
            if line not in ("NORMA", *_EXCHANGED):
                left.plot((counts - plain).mean(axis=0), color=colour, label=line)
        left.axhline(0.0, color=COLOURS[2], label="NORMA")
        left.set(xlabel="event", ylabel="errors so far, beyond NORMA's", title=kind)
        left.legend(frameon=False)
        pair = plain[:, -1], curves["ILK"][:, -1]
        right.plot(*pair, ".", color=COLOURS[0])
        ends = np.min(pair), np.max(pair)
        right.plot(ends, ends, color="0.6", linewidth=1.0)
        right.set(xlabel="errors of NORMA", ylabel="errors of ILK", title=kind)
        tidy(left)
        tidy(right)
    return figure
