"""Thesis, sections 2.2.2 and 4.1: landmarks beside similarity matrices with a changed spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.svm import LinearSVC

from gristmill.similarity import LandmarkClassifier, LandmarkPairClassifier, SpectrumLandmarks

from . import Outcome, fewer
from .landmark_classes import matrix_task
from .thesis import among_best, mean_and_spread, steps

_SETS = ("aural-sonar", "protein")
_SPECTRA = ("clip", "flip", "shift", "square")
_SIZES = (10, 30, 300)
_RUNS = 20
_C = tuple(10.0**power for power in range(-1, 5))
_VALIDATION = 1 / 8  # of training and validation together: 10 % of all objects

Values = npt.NDArray[np.float64]
#: (data set, landmarks, method) -> accuracies, one a run
Found = dict[tuple[str, int, str], list[float]]


class Tuned:
    """Features by `SpectrumLandmarks`, divided by their mean norm, and a linear SVM whose C is chosen by validation."""

    def __init__(self, spectrum: str, landmarks: int, seed: int) -> None:
        self.spectrum, self.landmarks, self.seed = spectrum, landmarks, seed

    def fit(self, X: Values, y: Any) -> Tuned:
        order = np.random.default_rng(self.seed).permutation(len(X))
        held = order[: round(_VALIDATION * len(X))]
        rest = order[len(held) :]
        accuracies = []
        for C in _C:
            chosen = self._fitted(X, y, rest, C)
            accuracies.append(chosen[1].score(self._features(chosen, X[held]), y[held]))
        self._model = self._fitted(X, y, order, _C[int(np.argmax(accuracies))])
        return self

    def _fitted(self, X: Values, y: Any, rows: npt.NDArray[np.int64], C: float) -> tuple[Any, Any, float]:
        landmarks = np.random.default_rng(self.seed).permutation(rows)[: self.landmarks]
        own = X[np.ix_(landmarks, landmarks)]
        positions = np.arange(len(landmarks))
        spectrum = SpectrumLandmarks("precomputed", len(landmarks), positions, self.spectrum).fit(own)
        chosen = (spectrum, landmarks)
        Z = spectrum.transform(X[np.ix_(rows, landmarks)])
        scale = float(np.linalg.norm(Z, axis=1).mean())
        machine = LinearSVC(C=C, random_state=0, max_iter=100_000).fit(Z / scale, y[rows])
        return chosen, machine, scale

    def _features(self, model: tuple[Any, Any, float], X: Values) -> Values:
        (spectrum, landmarks), _, scale = model
        return np.asarray(spectrum.transform(X[:, landmarks]) / scale)

    def score(self, X: Values, y: Any) -> float:
        return float(self._model[1].score(self._features(self._model, X), y))


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Both data sets; all methods see the same split."""
    sets, runs, sizes = (_SETS[:1], 2, _SIZES[1:2]) if quick else (_SETS, _RUNS, _SIZES)
    found: Found = {}
    negative: dict[str, list[float]] = {}
    tasks = {data: matrix_task(data) for data in sets}
    for data, repeat in steps([(data, repeat) for data in sets for repeat in range(runs)], name):
        _, X, y, new, truth = tasks[data](seed + repeat)
        negative.setdefault(data, []).append(negative_share(X))
        for size in sizes:
            for method, model in methods(min(size, len(X)), seed + repeat).items():
                found.setdefault((data, size, method), []).append(float(model.fit(X, y).score(new, truth)))
    outcome = Outcome(
        "Thesis, sections 2.2.2 and 4.1: landmarks beside a changed spectrum",
        f"{runs} random splits, 70 % to train, 10 % to validate, 20 % to test, as for table 4.1. clip, flip, shift and "
        "square change the eigenvalues of the similarities of random landmarks, and Nystroem's formula extends them to "
        "new objects; on their features a linear SVM, with C (0.1 to 10,000) by validation. BBS and FTUNE-S take the "
        "similarities as they are, with C and slope (1 to 1000) by validation. 300 landmarks are all objects to learn from.",
    )
    heads = ["data set", "method", *(f"{size} landmarks" for size in sizes)]
    names = list(dict.fromkeys(method for _, _, method in found))
    rows = [[data, m, *(mean_and_spread(found[data, s, m], ".3f") for s in sizes)] for data in sets for m in names]
    outcome.tables.append(("accuracy (deviation)", heads, rows))
    shares = [[data, mean_and_spread(values, ".3f")] for data, values in negative.items()]
    outcome.tables.append(
        ("negative eigenvalues: share of the sum of all |eigenvalues|", ["data set", "share"], shares)
    )
    for data in sets:
        for size in sizes:
            right = {key[2]: np.array(values) for key, values in found.items() if key[:2] == (data, size)}
            where = f"{data}, {size} landmarks"
            spectra = {spectrum: right[spectrum] for spectrum in _SPECTRA}
            for ours in ("BBS", "FTUNE-S"):
                says = f"{where}: {ours} is one of the best beside changed spectra"
                outcome.claims.append(among_best(says, right[ours], spectra))
            for spectrum, theirs in spectra.items():
                says = f"{where}: BBS errs less than {spectrum}"
                outcome.claims.append(fewer(says, 1 - right["BBS"], 1 - theirs))
    outcome.figures.append((_picture(found, sets, sizes, names), "accuracy, mean and two standard errors over runs"))
    return outcome


def methods(landmarks: int, seed: int) -> dict[str, Any]:
    """The classifiers compared, by name."""
    shared: dict[str, Any] = {"n_landmarks": landmarks, "validation": _VALIDATION, "random_state": seed}
    by_landmarks = {
        "BBS": LandmarkClassifier("precomputed", C="tune", **shared),
        "FTUNE-S": LandmarkPairClassifier("precomputed", **shared),
    }
    return {**by_landmarks, **{spectrum: Tuned(spectrum, landmarks, seed) for spectrum in _SPECTRA}}


def negative_share(similarities: Values) -> float:
    """How far a matrix is from a kernel: the share of its negative eigenvalues in the sum of all |eigenvalues|."""
    eigenvalues = np.linalg.eigvalsh((similarities + similarities.T) / 2)
    return float(-eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum())


def _picture(found: Found, sets: tuple[str, ...], sizes: tuple[int, ...], names: list[str]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(1, len(sets), figsize=(5.2 * len(sets), 4.4), layout="constrained", squeeze=False)
    for ax, data in zip(axes[0], sets, strict=True):
        for place, (colour, method) in enumerate(zip(COLOURS, names, strict=False)):
            for group, size in enumerate(sizes):
                values = np.array(found[data, size, method])
                error = 2 * values.std(ddof=1) / np.sqrt(len(values))
                at = group + (place - len(names) / 2) * 0.1
                ax.errorbar(at, values.mean(), error, fmt="o", color=colour, capsize=3)
        ax.set(title=data, ylabel="accuracy" if data == sets[0] else None)
        ax.set_xticks(range(len(sizes)), [f"{size} landmarks" for size in sizes])
        ax.set_xlim(-0.6, len(sizes) - 0.4)
        tidy(ax)
    lines = [axes[0][0].plot([], [], "o", color=colour, label=m)[0] for colour, m in zip(COLOURS, names, strict=False)]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False)
    return figure
