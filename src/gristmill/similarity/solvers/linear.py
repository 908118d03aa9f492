"""The linear machine beneath the landmark classifiers, and the choice of its C on held-out objects."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._common.ranges import is_real

Values = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

#: the grid of the thesis (section 4.3)
C_GRID = (1.0, 10.0, 100.0, 1000.0)
SOLVERS = ("liblinear", "sgd")


def c_values(C: object) -> tuple[float, ...]:
    """The candidates that a parameter C means, ascending."""
    if isinstance(C, str) and C == "tune":
        return C_GRID
    values = (C,) if isinstance(C, numbers.Real) else tuple(C) if isinstance(C, Sequence | np.ndarray) else ()
    if not values or isinstance(C, str) or not all(is_real(v) and v > 0 for v in values):
        raise ValueError(f"C must be a number > 0, a list of such numbers to choose from, or 'tune', got {C!r}")
    return tuple(sorted(float(v) for v in values))


def train(features: Values, signs: Values, C: float, solver: str, seed: int) -> tuple[Values, float]:
    """Weights and offset of a two-class machine; signs are -1 and +1."""
    if solver == "liblinear":
        from sklearn.svm import LinearSVC

        # The primal solver: fast and sure to converge for the many objects and few landmarks met here.
        model: Any = LinearSVC(C=C, dual=False, random_state=seed)
    else:
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(loss="hinge", alpha=1.0 / (C * len(signs)), random_state=seed)
    model.fit(features, signs)
    return model.coef_[0], float(model.intercept_[0])


def signs_of(codes: Codes, problem: int, classes: int) -> Values:
    """+1 for the problem's class: class 1 of two, else one class against all others."""
    positive = 1 if classes == 2 else problem
    return np.where(codes == positive, 1.0, -1.0)


def problems(classes: int) -> int:
    return 1 if classes == 2 else classes


def answers(scores: Values) -> Codes:
    """The class of each row of decision values."""
    return (scores[:, 0] >= 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def hold_out(codes: Codes, fraction: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which objects are for validation: a fraction of each class, never all of one."""
    held = np.zeros(len(codes), dtype=bool)
    for label in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == label))
        held[members[: min(int(np.ceil(fraction * len(members))), len(members) - 1)]] = True
    if not held.any():
        raise ValueError(
            "there are too few objects to hold any out for validation: every class has a single one; "
            "give one value of C (and one transfer function)"
        )
    return held


def one_vs_all(
    features: Callable[[int], Values], codes: Codes, classes: int, C: float, solver: str, seed: int
) -> tuple[list[Values], list[float]]:
    """One machine a problem, each over its own features."""
    fits = [train(features(p), signs_of(codes, p, classes), C, solver, seed) for p in range(problems(classes))]
    return [w for w, _ in fits], [b for _, b in fits]


def quietly(function: Callable[..., Any], *args: object) -> Any:
    """A trial fit: whether it converged is of interest only for the candidate that is kept."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*args)
