"""The papers again: each target redraws a figure or table with gristmill and says whether the claim holds.

An application of the library, outside the package: run it from the checkout, `python -m papers --list`.
"""

from __future__ import annotations

import difflib
import warnings
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from .search import edges, watched

#: target -> (module, paper, what it shows, data sets it needs)
TARGETS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "norma-2": ("norma_mistakes", "NORMA, figure 2", "mistakes on drifting and switching data", ()),
    "norma-3": ("norma_usps", "NORMA, figure 3", "novel digits of USPS", ("usps", "usps.t")),
    "ilk-1": ("ilk_drift", "ILK and SILK, figure 1", "errors on a drifting sequence", ()),
    "ilk-2": ("ilk_video", "ILK and SILK, figure 2", "SILK and NORMA a pixel, on another clip", ("waving-trees",)),
    "ilk-3": ("ilk_video", "ILK and SILK, figure 3", "masks beside OpenCV's, on another clip", ("waving-trees",)),
    "ilk-4": ("ilk_digits", "ILK and SILK, figure 4", "average error on MNIST", ("mnist",)),
    "ilk-4-rates": ("ilk_rates", "ILK and SILK, figure 4", "its verdict by rate and buffer size", ("mnist",)),
    "projectron-6": ("projectron_curves", "Projectron, figure 6", "error and size on a9a", ("a9a",)),
    "projectron-7": ("projectron_curves", "Projectron, figure 7", "error and size on the synthetic set", ()),
    "projectron-8": ("projectron_tradeoff", "Projectron, figure 8 a, b", "error against size", ("a9a", "ijcnn1")),
    "projectron-8cd": (
        "projectron_standins",
        "Projectron, figure 8 c, d",
        "error against size, on stand-ins for its data",
        ("spambase", "cod-rna"),
    ),
    "projectron-9": ("projectron_digits", "Projectron, figure 9", "error against size on digits", ("usps", "mnist")),
    "thesis-table-3.1": (
        "maclaurin_table",
        "Kar's thesis, table 3.1",
        "exact kernels, random features and H0/1",
        ("nursery", "spambase", "cod-rna", "a9a", "a9a.t", "ijcnn1", "ijcnn1.t"),
    ),
    "thesis-figure-3.1": ("maclaurin_error", "Kar's thesis, figure 3.1", "error of random features", ()),
    "thesis-figure-3.2": (
        "maclaurin_growth",
        "Kar's thesis, figure 3.2",
        "accuracy and time of RF and H0/1 against their number",
        ("spambase", "nursery", "ijcnn1", "ijcnn1.t", "cod-rna"),
    ),
    "thesis-table-4.1": (
        "landmark_classes",
        "Kar's thesis, table 4.1",
        "landmarks on similarity matrices",
        ("aural-sonar", "voting", "protein"),
    ),
    "thesis-spectrum": (
        "landmark_spectrum",
        "Kar's thesis, sections 2.2.2 and 4.1",
        "landmarks beside clipped, flipped, shifted and squared spectra",
        ("aural-sonar", "protein"),
    ),
    "thesis-table-4.2": (
        "landmark_classes",
        "Kar's thesis, table 4.2",
        "landmarks with a Gaussian similarity",
        ("cod-rna", "nursery"),
    ),
    "thesis-figure-4.1": (
        "landmark_growth",
        "Kar's thesis, figure 4.1",
        "accuracy on similarity matrices against the number of landmarks",
        ("aural-sonar", "voting", "protein"),
    ),
    "thesis-figure-4.2": (
        "landmark_growth",
        "Kar's thesis, figure 4.2",
        "accuracy with a Gaussian similarity against the number of landmarks",
        ("cod-rna", "nursery"),
    ),
    "thesis-table-5.1": (
        "landmark_numbers",
        "Kar's thesis, table 5.1",
        "numbers and ordered labels by 50 landmarks",
        ("abalone", "bodyfat", "cadata", "cpusmall", "puma8nh", "winequality-red", "winequality-white"),
    ),
    "thesis-figure-5.2": (
        "landmark_curves",
        "Kar's thesis, figure 5.2",
        "error against the number of landmarks",
        ("abalone", "bodyfat", "cadata", "cpusmall", "puma8nh", "winequality-red", "winequality-white"),
    ),
    "thesis-figure-5.3": (
        "landmark_curves",
        "Kar's thesis, figure 5.3",
        "numbers by landmarks, Gaussian and Euclidean similarity",
        ("abalone", "bodyfat", "cadata", "cpusmall", "puma8nh"),
    ),
    "thesis-figure-5.4": (
        "landmark_curves",
        "Kar's thesis, figure 5.4",
        "ordered labels by landmarks, Manhattan and Gaussian similarity",
        ("winequality-red", "winequality-white"),
    ),
    "thesis-figure-6": (
        "pairwise_auc",
        "Kar's thesis, figures 6.1 to 6.3",
        "AUC against buffer size, all sets",
        (
            "fourclass", "heart", "diabetes", "breast-cancer", "ionosphere", "german", "svmguide1", "cod-rna", "a9a",
            "ijcnn1", "spambase",
        ),
    ),
    "thesis-figure-6.2": (
        "pairwise_auc",
        "Kar's thesis, figure 6.2",
        "AUC against buffer size",
        ("fourclass", "heart", "diabetes", "breast-cancer", "ionosphere", "german"),
    ),
    "thesis-figure-6.3": (
        "pairwise_auc",
        "Kar's thesis, figure 6.3",
        "AUC against buffer size",
        ("svmguide1", "cod-rna", "a9a"),
    ),
    "pairwise-metric": (
        "pairwise_metric",
        "Kar's thesis, section 6.6.3",
        "nearest neighbours before and after metric learning",
        ("usps", "usps.t"),
    ),
    "pairwise-kernels": (
        "pairwise_kernels",
        "Kar's thesis, section 6.6.4",
        "a learned mixture of kernels beside single ones",
        ("ionosphere", "german", "spambase", "a9a"),
    ),
}  # fmt: skip


QUICK = "Quick run: fewer events and repetitions, to see that the target works; it judges no claim."


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, in our words, with its number and ours."""

    says: str
    paper: str  #: the paper's number, "-" where it prints none
    ours: str
    holds: bool | None  #: None: the difference is within two standard errors, or the run was too short to judge
    judged: bool = True  #: False after a quick run

    @property
    def verdict(self) -> str:
        if not self.judged:
            return "not judged"
        return {True: "holds", False: "DOES NOT HOLD", None: "cannot tell"}[self.holds]


def fewer(says: str, less: Any, more: Any, paper: str = "-") -> Claim:
    """The claim that one learner errs less than another, judged by paired runs and two standard errors."""
    less, more = np.asarray(less, dtype=float), np.asarray(more, dtype=float)
    gap = more - less
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else np.inf
    holds = None if abs(gap.mean()) <= 2 * error else bool(gap.mean() > 0)
    spread = f"difference {gap.mean():.3g} with standard error {error:.2g}"
    return Claim(says, paper, f"{less.mean():.4g} against {more.mean():.4g}, {spread}", holds)


@dataclass
class Outcome:
    """What a target found: tables, pictures, and its claims."""

    title: str
    setting: str  #: what was run, in a sentence or two
    claims: list[Claim] = field(default_factory=list)
    tables: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)
    figures: list[tuple[Any, str]] = field(default_factory=list)
    animations: list[tuple[bytes, str]] = field(default_factory=list)  #: as GIF
    missing: list[str] = field(default_factory=list)  #: learners of the paper that this version does not have
    searched: str = ""  #: how many grids were searched, widened, and left at an edge

    def text(self) -> str:
        """Everything but the pictures."""
        lines = [self.title, self.setting, ""]
        for name, heads, rows in self.tables:
            widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
            lines.append(name)
            lines += [
                "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]
            ]
            lines.append("")
        if self.searched:
            lines += [self.searched, ""]
        if self.missing:
            lines.append(f"not in this version, and so left out: {', '.join(self.missing)}")
        for claim in self.claims:
            lines.append(f"{claim.verdict}: {claim.says} (paper: {claim.paper}; ours: {claim.ours})")
        return "\n".join(lines)


def run(name: str, quick: bool = False, seed: int = 0) -> Outcome:
    """Run one target.

    Parameters
    ----------
    name : str
        One of `TARGETS`.
    quick : bool
        Fewer events and repetitions, to see that it works: no claim is judged, and the text says so.
    seed : int

    Examples
    --------
    >>> import papers
    >>> papers.run("norma-1")
    Traceback (most recent call last):
    ...
    ValueError: there is no target 'norma-1'; did you mean 'norma-3'?
    """
    if name not in TARGETS:
        near = difflib.get_close_matches(name, TARGETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(TARGETS)}"
        raise ValueError(f"there is no target {name!r}; {hint}")
    module = import_module(f".{TARGETS[name][0]}", __name__)
    with warnings.catch_warnings():
        # Rows are as the papers have them, on purpose not scaled column by column.
        warnings.filterwarnings("ignore", ".* in the first 100 events, but (distances|steps) need", UserWarning)
        with watched() as found:
            outcome: Outcome = module.run(name, quick, seed)
    outcome.searched = edges(found) if found else ""
    if quick:
        outcome.setting += f" {QUICK}"
        outcome.claims = [replace(claim, holds=None, judged=False) for claim in outcome.claims]
    return outcome
