"""ILK and SILK, figure 4: average error on MNIST along one pass, two classes and ten."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import datasets

from . import Claim, Outcome, fewer
from .mistakes import follow
from .search import Axis, Best, fixed, search

Curves = dict[str, npt.NDArray[np.float64]]  # line -> (permutation, event): the mistakes so far per event

_SIZE = 128  # omega in the paper
_SIZES = (64, 128, 256, 512)  # of panels b and d; the paper's own are in its legends only
_TAU = 0.00005
DECAY = _TAU / (1 - _TAU)  # tau = eta lambda / (1 + eta lambda) with eta = 1
_POLYNOMIAL = "Polynomial(9, 0.5, 0.5)"
_TUNED = "tuned SILK"  # the paper tunes its own parameters too, for kernels whose scale it does not print
_TAME = "NORMA, rate at most 1"  # larger rates swamp the margin of 1: what is left is a truncated Perceptron
_DECAYS = Axis((1e-5, 1e-4, 1e-3), most=0.5)  # the share forgotten in a step


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Learners are tuned on a whole permutation that is not counted; SILK has the paper's parameters as well."""
    repeats = 2 if quick else 3
    X, digit = digits("mnist", 300 if quick else None)
    outcome = Outcome(
        "ILK and SILK, figure 4: average error on MNIST",
        f"{len(digit):,} digits, {repeats} permutations (the paper: one run). SILK with tau = 0.00005 and C = 100 as "
        "printed. The parameters of NORMA and SVMD stand in another paper; ours, and tuned SILK's, are the best on "
        "one more permutation, as long and not counted, by grids that widen themselves; SVMD forgets as NORMA does, and "
        "for ten classes takes a step of own class and strongest rival. The Gaussian kernel has the width that is best "
        "for NORMA. The scale of the polynomial kernel is not printed: ours is "
        f"((1 + t)/2)^9 with t the cosine of two images. {_SIZE} points for all; NORMA and SVMD drop the oldest. The buffer "
        f"sizes of panels b and d are ours.",
    )
    panels: dict[str, Curves] = {}
    rows = []
    for task, (y, letters) in {"two classes": (digit < 5, "ab"), "ten classes": (digit, "cd")}.items():
        order = np.random.default_rng(seed + 10_000).permutation(len(y))
        lines, remarks = _lines(task, X[order], y[order])
        curves = _curves(lines, X, y, repeats, seed)
        ends = {line: 100 * runs[:, -1] for line, runs in curves.items()}
        rows += [
            [task, line, f"{e.mean():.2f} %", f"{e.std(ddof=1):.2f}", lines[line].text, remarks.get(line, "")]
            for line, e in ends.items()
        ]
        rivals = [_with(_SIZE), *(line for line in curves if not line.startswith("SILK"))]
        panels[f"{letters[0]}: {task}"] = {line: curves[line] for line in rivals}
        panels[f"{letters[1]}: {task}, buffer sizes"] = {_with(size): curves[_with(size)] for size in _SIZES}
        outcome.claims += _claims(task, curves)
    heads = ["task", "learner", "error", "s.d.", "parameters", "grid"]
    outcome.tables.append(("average error after one pass", heads, rows))
    outcome.figures.append((_picture(panels), "mistakes so far per event, means of permutations"))
    return outcome


def _silk(kernel: str, C: float = 100.0, decay: float = DECAY, size: int = _SIZE) -> str:
    return f"ilk_classifier({kernel}, C={C}, reg={decay!r}, size={size})"


def _norma(kernel: str, rate: float, decay: float) -> str:
    return f"norma_classifier({kernel}, rate={rate}, reg={decay / rate:.6g}, size={_SIZE})"


def _svmd(kernel: str, share: float, rate: float, meta: float, memory: float) -> str:
    return f"svmd({kernel}, rate={rate}, reg={share / rate:.6g}, meta_rate={meta}, decay={memory}, size={_SIZE})"


@dataclass(frozen=True)
class _Line:
    """A learner as the library writes it."""

    text: str

    def wrong(self, X: Any, y: Any, seed: int = 0) -> Any:
        """Whether each event was a mistake."""
        return follow(self.text, X, y, seed)[0]


def _lines(task: str, X: Any, y: Any) -> tuple[dict[str, _Line], dict[str, str]]:
    """The learners, and what is to be said of their grids."""

    def best(make: Callable[..., _Line], **axes: Axis) -> tuple[_Line, Best]:
        found = search(axes, lambda **values: _mistakes(make(**values), X, y))
        return make(**found.values), found

    def texts(of: Callable[..., str]) -> Callable[..., _Line]:
        return lambda **values: _Line(of(**values))

    two, kernel = task == "two classes", _POLYNOMIAL
    if not two:
        wide = best(texts(lambda gamma: _norma(f"Gaussian({gamma})", 1.0, 1e-4)), gamma=Axis((4.0, 8.0, 16.0)))[1]
        kernel = f"Gaussian({wide.values['gamma']})"
    norma, silk = texts(partial(_norma, kernel)), texts(partial(_silk, kernel))
    found = {
        _TAME: best(norma, rate=Axis((0.1, 0.3, 1.0), most=1.0), decay=_DECAYS),
        "NORMA": best(norma, rate=Axis((1.0, 3.0, 10.0)), decay=_DECAYS),
        _TUNED: best(silk, C=Axis((0.3, 1.0, 3.0)), decay=_DECAYS),
    }
    share = found["NORMA"][1].values["decay"]
    adaptive = texts(partial(_svmd, kernel, share))
    memories = fixed(0.0, 0.99, 1.0, why="both ends, and the usual value")
    if not two:
        memories = fixed(0.99, why="what is best for two classes: ten are slow")
    found["SVMD"] = best(adaptive, rate=Axis((3.0, 10.0)), meta=Axis((0.01, 0.1)), memory=memories)
    printed = {_with(size): _Line(_silk(kernel, size=size)) for size in _SIZES}
    lines = {line: chosen for line, (chosen, _) in found.items()}
    return lines | printed, {line: one.remark() for line, (_, one) in found.items()}


def _with(size: int) -> str:
    return f"SILK, {size} points"


def digits(part: str, count: int | None) -> tuple[Any, Any]:
    """Images as rows of unit length, in single precision, which halves the time."""
    X, y = datasets.load(part).arrays()
    X, y = X[:count], y[:count]
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)).astype(np.float32), y


def _mistakes(line: _Line, X: Any, y: Any) -> int:
    """All events for a learner whose rate runs away, as SVMD's does at some entries of the grid."""
    try:
        return int(line.wrong(X, y).sum())
    except ValueError:
        return len(y)


def _curves(lines: dict[str, _Line], X: Any, y: Any, repeats: int, seed: int) -> Curves:
    curves: dict[str, list[Any]] = {line: [] for line in lines}
    for repeat in range(repeats):
        order = np.random.default_rng(seed + repeat).permutation(len(y))
        for name, line in lines.items():
            wrong = line.wrong(X[order], y[order], seed + repeat)
            curves[name].append(np.cumsum(wrong) / np.arange(1, len(wrong) + 1))
    return {name: np.array(runs) for name, runs in curves.items()}


def _claims(task: str, curves: Curves) -> list[Claim]:
    claims = []
    for who, silk in (("SILK", curves[_with(_SIZE)]), (_TUNED, curves[_TUNED])):
        for rival in (line for line in (_TAME, "NORMA", "SVMD") if line in curves):
            says = f"{task}: {who} errs less than {rival} after one pass"
            claims.append(fewer(says, silk[:, -1], curves[rival][:, -1]))
            claims.append(_stays_below(f"{task}: {who} stays below {rival}", silk, curves[rival]))
    for small, large in itertools.pairwise(_SIZES):
        says = f"{task}: SILK with {large} points errs less than with {small}"
        claims.append(fewer(says, curves[_with(large)][:, -1], curves[_with(small)][:, -1]))
    return claims


def _stays_below(says: str, less: npt.NDArray[np.float64], more: npt.NDArray[np.float64]) -> Claim:
    """The paper's "consistently, once the oscillations have died out", taken as the last nine tenths of the pass."""
    start = less.shape[1] // 10
    share = float((less.mean(axis=0) < more.mean(axis=0))[start:].mean())
    return Claim(f"{says} from event {start:,} on (means)", "-", f"at {share:.1%} of the events", share == 1.0)


def _picture(panels: dict[str, Curves]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(2, 2, figsize=(10.4, 7.4), layout="constrained")
    for ax, (title, curves) in zip(axes.ravel(), panels.items(), strict=True):
        for colour, (line, runs) in zip(COLOURS, curves.items(), strict=False):
            mean = runs.mean(axis=0)
            start = len(mean) // 120  # before that the average swings
            events = np.arange(start, len(mean), max(1, len(mean) // 600))
            ax.plot(events + 1, mean[events], color=colour, label=line)
        ax.set(xlabel="events", ylabel="average error", title=title, ylim=(0, None))
        ax.legend(frameon=False, loc="lower right", ncols=2)
        tidy(ax)
    return figure
