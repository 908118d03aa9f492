"""Classification by similarities to landmarks, as Balcan and Blum propose."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from .. import persist
from .._common.ranges import Range, count, one_of, optional
from .._common.types import Fields, FileFields, Fitted, Labels, RandomState, Table
from .labels import LabelMixin, class_codes
from .model import OTHERS, SHARED, LinearLandmarkModel, all_or_nothing
from .solvers import linear
from .solvers.greedy import greedy_classes

VALIDATION = Range("a number in (0, 1)", lambda v: 0 < v < 1)


class LandmarkClassifier(LabelMixin, ClassifierMixin, LinearLandmarkModel):
    __doc__ = f"""A linear classifier over similarities to landmarks, positive definite or not.

    Two classes give one machine, more give one against all others for each. Probabilities come from
    scikit-learn's `CalibratedClassifierCV`.

    Parameters
    ----------
    {SHARED}
    n_landmarks : int >= 1, default=100
        d in the thesis; where there are fewer objects, each of them becomes a landmark.
    selection : {{"random", "diverse"}} or positions, default="random"
        "diverse" (BBS+D in the thesis) takes floor(n_landmarks / classes), at least one, from each class.
    C : float > 0, list or "tune", default=1.0
        Weight of the loss; of several values ("tune": 1, 10, 100, 1000) the best on held-out objects is
        taken.
    n_nonzero : int, optional
        Keep only so many of the landmarks: those that forward greedy selection takes, shared by all classes.
    solver : {{"liblinear", "sgd"}}, default="liblinear"
    validation : float in (0, 1), default=0.2
        The part of each class that is held out while C is chosen; the final fit uses all objects.
    {OTHERS}

    Attributes
    ----------
    landmarks_, landmark_indices_ : the landmarks and their positions in the training set, ascending
    coef_, intercept_ : a row and a number a problem, over similarities divided by `scale_`
    C_ : the value taken
    n_evaluations_ : how often the similarity was evaluated in `fit`

    References
    ----------
    M.-F. Balcan, A. Blum, On a Theory of Learning with Similarity Functions, ICML 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gristmill import LandmarkClassifier, Sigmoid
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LandmarkClassifier(Sigmoid(gamma=0.001, coef0=-1.0), n_landmarks=60, C=100.0, random_state=0)
    >>> print(f"{{model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]):.2f}} right")
    0.91 right
    """

    _ranges: ClassVar[dict[str, Range]] = {
        "n_nonzero": optional(count),
        "solver": one_of(*linear.SOLVERS),
        "validation": VALIDATION,
    }

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        selection: object = "random",
        C: object = 1.0,
        n_nonzero: int | None = None,
        solver: str = "liblinear",
        validation: float = 0.2,
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.C = C
        self.n_nonzero = n_nonzero
        self.solver = solver
        self.validation = validation
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def check_parameters(self) -> np.random.Generator:
        rng = super().check_parameters()
        linear.c_values(self.C)
        return rng

    @all_or_nothing
    def fit(self, X: Table, y: Labels) -> Self:
        """Choose the landmarks and learn the weights; what was learned before is forgotten."""
        rng, X = self._reset(X)
        candidates = linear.c_values(self.C)
        self.classes_, codes = class_codes(type(self).__name__, X, y)
        positions, values, scale = self._compared(X, rng, codes)
        seed = int(rng.integers(2**31))
        self.C_ = self._best(values, codes, candidates, rng, seed)
        if self.n_nonzero is not None and self.n_nonzero < len(positions):
            kept = greedy_classes(values, codes, len(self.classes_), self.n_nonzero, self._trainer(seed))
            positions, values = positions[kept], values[:, kept]
        self.coef_, self.intercept_ = self._trainer(seed)(values, codes, self.C_)
        self._keep(X, positions, scale)
        return self

    def _trainer(self, seed: int) -> Any:
        classes = len(self.classes_)

        def train(values: Any, codes: Any, C: float | None = None) -> Any:
            weights, offsets = linear.one_vs_all(
                lambda _: values, codes, classes, self.C_ if C is None else C, self.solver, seed
            )
            return np.array(weights), np.array(offsets)

        return train

    def _best(self, values: Any, codes: Any, candidates: tuple[float, ...], rng: Any, seed: int) -> float:
        """C by accuracy on held-out objects; ties go to the smallest."""
        if len(candidates) == 1:
            return candidates[0]
        held = linear.hold_out(codes, self.validation, rng)
        accuracies = []
        for C in candidates:
            w, b = linear.quietly(self._trainer(seed), values[~held], codes[~held], C)
            accuracies.append(float(np.mean(linear.answers(values[held] @ w.T + b) == codes[held])))
        self.validation_scores_ = np.array(accuracies)
        return candidates[int(np.argmax(accuracies))]

    def decision_function(self, X: Table) -> npt.NDArray[np.float64]:
        """One number an object for two classes (positive: classes_[1]), else one a class."""
        return self._linear(X)

    def predict(self, X: Table) -> npt.NDArray[np.generic]:
        """The class of each object."""
        scores = self.decision_function(X)
        return self.classes_[linear.answers(scores.reshape(len(scores), -1))]

    def saved_fields(self) -> FileFields:
        arrays, fitted = super().saved_fields()
        return arrays, {**fitted, "C": float(self.C_)}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        super().restore_fields(arrays, fitted)
        self.C_ = float(fitted["C"])
        if len(self.intercept_) != linear.problems(len(self.classes_)):
            raise persist.ModelFileError("its machines do not fit its classes")
