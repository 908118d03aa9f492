"""ILK and SILK, figure 1: errors on two classes that drift together along a path."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from ..streams import silk_sequence
from . import Claim, Outcome, fewer
from .tune import mistakes, tuned

_RATES = (0.1, 0.3, 1.0)
_DECAYS = (0.003, 0.01, 0.03, 0.1)  # about the share forgotten in a step
_SIZE = 40  # points of SILK and of truncated NORMA; the paper prints none for this figure


def _ilk(extra: str, decays: tuple[float, ...] = _DECAYS) -> list[str]:
    return [
        f"ilk_classifier({{k}}, C={C}, rate=1.0, reg={decay}{extra})" for C, decay in itertools.product(_RATES, decays)
    ]


def _norma(extra: str, decays: tuple[float, ...] = _DECAYS) -> list[str]:
    return [
        f"norma_classifier({{k}}, rate={rate}, reg={decay / rate:.6g}{extra})"
        for rate, decay in itertools.product(_RATES, decays)
    ]


_LINES = {
    "ILK": _ilk(""),
    "SILK": _ilk(f", size={_SIZE}"),
    "NORMA": _norma(""),
    "truncated NORMA": _norma(f", size={_SIZE}"),
    "ILK(0)": _ilk("", (0.0,)),
    "NORMA(0)": _norma("", (0.0,)),
}
_KERNELS = ("Gaussian(1.0)", "Gaussian(2.0)", "Gaussian(4.0)")


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Tune each line on five sequences, count its errors on a hundred others, as many as in the paper."""
    trials = 5 if quick else 100
    tuning = [silk_sequence(2000, random_state=seed + 10_000 + place).arrays() for place in range(5)]
    tests = [silk_sequence(2000, random_state=seed + place).arrays() for place in range(trials)]
    outcome = Outcome(
        "ILK and SILK, figure 1: errors on a drifting sequence",
        f"2,000 events a sequence, {trials} sequences; margin 1; SILK and truncated NORMA keep {_SIZE} "
        f"points. Best possible error: {silk_sequence().bayes_error:.3f}.",
    )
    totals: dict[str, npt.NDArray[np.int64]] = {}
    curves: dict[str, npt.NDArray[np.float64]] = {}
    rows = []
    for line, texts in _LINES.items():
        best = tuned(texts, _KERNELS, tuning)
        runs = np.array([mistakes(best, *data) for data in tests])
        totals[line], curves[line] = runs[:, -1], runs.mean(axis=0)
        rows.append([line, f"{totals[line].mean():.1f}", f"{totals[line].std(ddof=1):.1f}", best])
    outcome.tables.append(("errors in 2,000 events", ["line", "errors", "s.d.", "chosen"], rows))
    outcome.figures.append(
        (_picture(curves, totals), "left: errors so far, mean; right: ILK against NORMA, a dot a trial")
    )
    outcome.claims = _claims(totals)
    return outcome


def _claims(totals: dict[str, npt.NDArray[np.int64]]) -> list[Claim]:
    pairs = [("ILK", "NORMA"), ("SILK", "truncated NORMA"), ("ILK", "ILK(0)"), ("NORMA", "NORMA(0)")]
    return [fewer(f"{less} errs less than {more}", totals[less], totals[more]) for less, more in pairs]


def _picture(curves: dict[str, Any], totals: dict[str, Any]) -> Any:
    from ..evaluate.displays import COLOURS, _tidy, pyplot

    figure, (left, right) = pyplot().subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
    for colour, (line, counts) in zip(COLOURS, curves.items(), strict=False):
        left.plot(counts, color=colour, label=line)
    left.set(xlabel="event", ylabel="errors so far")
    left.legend(frameon=False)
    right.plot(totals["NORMA"], totals["ILK"], ".", color=COLOURS[0])
    low, high = (
        min(map(min, (totals["NORMA"], totals["ILK"]))),
        max(map(max, (totals["NORMA"], totals["ILK"]))),
    )
    right.plot([low, high], [low, high], color="0.6", linewidth=1.0)
    right.set(xlabel="errors of NORMA", ylabel="errors of ILK")
    _tidy(left)
    _tidy(right)
    return figure
