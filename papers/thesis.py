"""What the tables and figures of Kar's thesis share: data as the chapters use them, splits, scaling, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import datasets
from gristmill.evaluate.progress import live, wanted

from . import Claim

Values = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


def arrays(*names: str) -> tuple[Values, Any]:
    """Data sets below each other as dense rows, and their labels."""
    parts = [datasets.load(name).arrays() for name in names]
    X = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part, _ in parts]
    return np.concatenate(X).astype(np.float64), np.concatenate([y for _, y in parts])


def without_repeats(X: Values, y: Any) -> tuple[Values, Any]:
    """Each row once: a row that occurs twice (one in six of cod-rna) would be in training and test."""
    kept, first = np.unique(X, axis=0, return_index=True)
    return kept, y[first]


def shares(total: int, part: float, seed: int, most: int | None = None) -> tuple[Rows, Rows]:
    """Positions to train on, at most so many, and those of the rest; at random."""
    order = np.random.default_rng(seed).permutation(total)
    cut = int(part * total)
    return order[: cut if most is None else min(cut, most)], order[cut:]


def z_scores(X: Values, train: Rows) -> Values:
    """Mean 0 and deviation 1 on the training rows; a column that is constant there stays where it is."""
    spread = X[train].std(axis=0)
    return np.asarray((X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def split(X: Values, y: Any, seed: int, most: int, scaled: bool = True) -> tuple[Values, Any, Values, Any]:
    """Chapter 6: 60 % to train, at most so many, in random order, the rest to test; as z-scores, or as they are."""
    train, test = shares(len(X), 0.6, seed, most)
    Z = z_scores(X, train) if scaled else X
    return Z[train], y[train], Z[test], y[test]


def hold_out(count: int) -> int:
    """Where the training part is cut: the last fifth chooses the parameters."""
    return int(0.8 * count)


def unit_norms(X: Values, train: Rows) -> Values:
    """Columns to [0, 1], then divided by the largest norm, all learnt on the training rows."""
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    Z = (X - low) / np.where(high > low, high - low, 1.0)
    return np.asarray(Z / np.linalg.norm(Z[train], axis=1).max())


def mean_distance(X: Values, most: int = 1500) -> float:
    """The width heuristic of the thesis: the mean distance of pairs, here of the first rows of a random order."""
    from scipy.spatial.distance import pdist

    return float(pdist(X[:most]).mean())


def steps(items: Sequence[Any], title: str) -> Iterator[Any]:
    """The items one by one, under a bar where there is a terminal."""
    with live([], len(items), title, wanted(None)) as tick:
        for done, item in enumerate(items):
            yield item
            tick(done + 1)


def standard_error(values: Any) -> float:
    values = np.asarray(values, dtype=float)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf


def among_best(says: str, ours: Any, rivals: Mapping[str, Any], paper: str = "-") -> Claim:
    """ "One of the best", as the thesis means it: no rival is better by more than two standard errors."""
    leads = {rival: np.asarray(theirs) - np.asarray(ours) for rival, theirs in rivals.items()}
    above = [rival for rival, lead in leads.items() if lead.mean() > 2 * standard_error(lead)]
    others = ", ".join(f"{rival} {np.mean(theirs):.3f}" for rival, theirs in rivals.items())
    better = f"; better: {', '.join(above)}" if above else ""
    holds = not above if len(np.atleast_1d(ours)) > 1 else None
    return Claim(says, paper, f"{np.mean(ours):.3f} beside {others}{better}", holds)


def within(says: str, gap: Any, bound: float, paper: str, ours: str, error: float) -> Claim:
    """The claim that a gap is at most a bound; undecided within two standard errors of it."""
    holds = None if abs(gap - bound) <= 2 * error else bool(gap < bound)
    return Claim(says, paper, ours, holds)


def as_printed(says: str, ours: Any, printed: tuple[float, float], runs: int, bound: float) -> Claim:
    """The claim that our mean is the printed one (mean, deviation over so many runs), up to a bound."""
    ours, (mean, deviation) = np.asarray(ours, dtype=float), printed
    error = float(np.hypot(standard_error(ours), deviation / np.sqrt(runs)))
    shown = f"{ours.mean():.3g} ({ours.std():.2g}), difference {ours.mean() - mean:.2g} with standard error {error:.2g}"
    return within(says, abs(ours.mean() - mean), bound, f"{mean:.2g} ({deviation:.2g})", shown, error)


def mean_and_spread(values: Iterable[float], digits: str = ".2f") -> str:
    """Mean and, in brackets, the standard deviation over runs, as the thesis prints them."""
    values = np.array(list(values))
    return f"{values.mean():{digits}} ({values.std():{digits}})"
