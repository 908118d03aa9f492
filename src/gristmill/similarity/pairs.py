"""Classification by pairs of landmarks and a transfer function of the difference (FTUNE)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from .. import persist
from .._common.ranges import Range, count, flag, one_of, optional
from .._common.types import Fields, FileFields, Fitted, Labels, RandomState, Table
from . import transfer
from .classifiers import VALIDATION
from .labels import LabelMixin, class_codes
from .model import OTHERS, SHARED, LandmarkModel, all_or_nothing, largest
from .solvers import linear
from .solvers.boost import adaboost, boosted_pairs
from .solvers.selection import choose, diverse_landmarks

Function = Callable[[Any], Any]
Pairs = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class LandmarkPairClassifier(LabelMixin, ClassifierMixin, LandmarkModel):
    __doc__ = f"""A linear classifier over f(K(x, x+) - K(x, x-)) for landmark pairs, with f tuned.

    The identity for f gives the criterion of Balcan and Blum, the sign that of Wang, Yang and Feng; the
    ramps between are chosen by validation (FTUNE). With more than two classes each is held against all
    others, with pairs of its own.

    Parameters
    ----------
    {SHARED}
    n_landmarks : int >= 1, default=100
        How many pairs each problem has (d in the thesis). Random pairs take up to twice as many objects a
        problem; diverse ones share at most n_landmarks objects.
    transfer : {{"tune", "identity", "sign", "boost"}}, function or list of functions, default="tune"
        "tune" chooses among ramps of the given slopes. "boost" is DBOOST: the sign, with AdaBoost's weights. Any
        other function maps an array of differences to one of the same shape and must be antisymmetric.
    per_class : bool, default=False
        One transfer function and C for each class (FTUNE-M) instead of one for all (FTUNE-S).
    selection : {{"random", "diverse"}}, default="random"
        "diverse" (FTUNE+D) draws the pairs from floor(n_landmarks / classes) diverse objects of each class.
    slopes : sequence of floats > 0
    C : float > 0, list or "tune", default="tune"
        Weight of the loss; the best of 1, 10, 100, 1000 together with the transfer function.
    solver : {{"liblinear", "sgd", "boost"}}, default="liblinear"
        "boost" gives the pairs AdaBoost's weights, without a C; transfer="boost" means it, and "sign".
    validation : float in (0, 1), default=0.2
        The part of each class that is held out while tuning; the final fit uses all objects. No landmark is
        held out.
    candidates : int >= 1, optional
        With transfer="boost": each of n_landmarks rounds draws so many fresh pairs by the boosting weights and takes
        the best of them. Without it, the rounds choose among n_landmarks pairs that are drawn beforehand. Fresh
        pairs are far better for the same number of landmarks, and cost up to objects x objects similarities.
    {OTHERS}

    Attributes
    ----------
    landmarks_, landmark_indices_ : the distinct landmarks and their positions in the training set
    pairs_ : (problems, n_landmarks, 2) places in `landmarks_` of the positive and the negative object of
    each pair
    transfer_, C_ : the choice of each problem
    validation_scores_ : (transfer functions, Cs), or (problems, ...) with `per_class`; absent where nothing
    was tuned
    coef_, intercept_ : a row and a number a problem

    References
    ----------
    P. Kar, P. Jain, Similarity-based Learning via Data Driven Embeddings, NIPS 2011.
    L. Wang, C. Yang, J. Feng, On Learning with Dissimilarity Functions, ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from gristmill import LandmarkPairClassifier, Manhattan
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = LandmarkPairClassifier(Manhattan(), n_landmarks=30, random_state=0).fit(X[:400], y[:400])
    >>> print(f"{{model.score(X[400:], y[400:]):.2f}} right with {{model.transfer_[0]}}")
    0.95 right with Ramp(slope=1.0)
    >>> model = LandmarkPairClassifier(Manhattan(), 30, transfer="boost", candidates=200, random_state=0)
    >>> print(f"{{model.fit(X[:400], y[:400]).score(X[400:], y[400:]):.2f}} right, boosted")
    0.96 right, boosted
    """

    _ranges: ClassVar[dict[str, Range]] = {
        "per_class": flag,
        "solver": one_of(*linear.SOLVERS, "boost"),
        "validation": VALIDATION,
        "candidates": optional(count),
    }
    _numbers: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "pairs_", "C_")

    coef_: Values
    intercept_: Values
    pairs_: Pairs
    C_: Values

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        transfer: object = "tune",
        per_class: bool = False,
        selection: object = "random",
        slopes: object = transfer.SLOPES,
        C: object = "tune",
        solver: str = "liblinear",
        validation: float = 0.2,
        candidates: int | None = None,
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.transfer = transfer
        self.per_class = per_class
        self.selection = selection
        self.slopes = slopes
        self.C = C
        self.solver = solver
        self.validation = validation
        self.candidates = candidates
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    # ---- fitting -------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: Labels) -> Self:
        """Draw the pairs, choose transfer function and C, and learn the weights."""
        rng, X = self._reset(X)
        functions = transfer.family("sign" if self._is_dboost() else self.transfer, self.slopes)
        costs = (1.0,) if self._boosts() else linear.c_values(self.C)
        self.classes_, codes = class_codes(type(self).__name__, X, y)
        if self._chosen_beforehand(X):
            raise ValueError(
                "landmark pairs need the labels of the landmarks: a precomputed matrix must be square; "
                f"got {X.shape[0]} x {X.shape[1]}"
            )
        tuned = len(functions) * len(costs) > 1
        held = linear.hold_out(codes, self.validation, rng) if tuned else np.zeros(len(codes), dtype=bool)
        block = self.begin_core(X)
        sides = self._sides(block, codes, held, rng)
        if self.candidates is not None:
            drawn = self._boost_fresh(block, codes, functions[0], sides, rng)
        else:
            drawn = np.array([np.stack([rng.choice(side, self.n_landmarks) for side in two], axis=1) for two in sides])
        positions, places = np.unique(drawn, return_inverse=True)
        self.pairs_ = places.reshape(drawn.shape).astype(np.int64)
        values = block.columns(positions)
        scale = largest(values)
        if self.candidates is None:
            self._settle(values / scale, codes, held, functions, costs, int(rng.integers(2**31)))
        self._keep(X, positions, scale)
        return self

    def check_parameters(self) -> np.random.Generator:
        rng = super().check_parameters()
        transfer.family("sign" if self._is_dboost() else self.transfer, self.slopes)
        if not self._boosts():
            linear.c_values(self.C)
        if self.candidates is not None and not self._is_dboost():
            raise ValueError(
                f"candidates={self.candidates} are fresh pairs for boosting and go with transfer='boost', "
                f"got transfer={self.transfer!r}"
            )
        if self._is_dboost() and self.solver == "sgd":
            raise ValueError("transfer='boost' has AdaBoost's weights, and so no use for solver='sgd'")
        return rng

    def _is_dboost(self) -> bool:
        return isinstance(self.transfer, str) and self.transfer == "boost"

    def _boosts(self) -> bool:
        return self.solver == "boost" or self._is_dboost()

    def _sides(self, block: object, codes: Any, held: Any, rng: np.random.Generator) -> list[tuple[Any, Any]]:
        """Of each problem the positions that positive and negative landmarks are drawn from; none is held out."""
        allowed = np.flatnonzero(~held)
        if not (isinstance(self.selection, str) and self.selection == "random"):
            allowed = self._diverse(block, codes, allowed, rng)
        sides = []
        for p in range(linear.problems(len(self.classes_))):
            signs = linear.signs_of(codes[allowed], p, len(self.classes_))
            sides.append((allowed[signs > 0], allowed[signs < 0]))
            if min(map(len, sides[-1])) == 0:
                raise ValueError(
                    f"the landmarks of selection={self.selection!r} are all of one class, so no pair exists"
                )
        return sides

    def _boost_fresh(self, block: Any, codes: Any, sign: Function, sides: Any, rng: np.random.Generator) -> Pairs:
        """The pairs that boosting took, a problem a row, with their weights as the machine."""
        fits = [
            boosted_pairs(
                partial(block.columns, keep=False),
                linear.signs_of(codes, p, len(self.classes_)),
                two,
                self.n_landmarks,
                int(self.candidates or 0),
                rng,
            )
            for p, two in enumerate(sides)
        ]
        self.transfer_, self.C_ = [sign] * len(fits), np.ones(len(fits))
        self.coef_ = np.array([weights for _, weights, _ in fits])
        self.intercept_ = np.array([offset for _, _, offset in fits])
        return np.array([pairs for pairs, _, _ in fits])

    def _diverse(self, block: Any, codes: Any, allowed: Any, rng: np.random.Generator) -> Any:
        """The objects that pairs are drawn from: diverse ones of each class, or those given."""
        if isinstance(self.selection, str) and self.selection == "diverse":
            share = max(1, self.n_landmarks // len(self.classes_))
            groups = [allowed[codes[allowed] == code] for code in range(len(self.classes_))]
            return np.concatenate([diverse_landmarks(block, g, min(share, len(g)), rng) for g in groups])
        return choose(block, self.selection, self.n_landmarks, rng)

    def _settle(self, values: Any, codes: object, held: object, functions: Any, costs: Any, seed: int) -> None:
        """Try every candidate on the held-out objects, keep the best, and fit it on all objects."""
        count = linear.problems(len(self.classes_))
        differences = [self._differences(values, p) for p in range(count)]
        for function in functions:
            transfer.check_antisymmetric(function, differences[0])
        chosen = [(0, 0)] * count
        if len(functions) * len(costs) > 1:
            chosen = self._tune(differences, codes, held, functions, costs, seed)
        self.transfer_ = [functions[f] for f, _ in chosen]
        self.C_ = np.array([costs[c] for _, c in chosen])
        fits = [
            self._train(transfer.apply(self.transfer_[p], differences[p]), codes, p, self.C_[p], seed)
            for p in range(count)
        ]
        self.coef_ = np.array([w for w, _ in fits])
        self.intercept_ = np.array([b for _, b in fits])

    def _tune(
        self, differences: Any, codes: Any, held: Any, functions: Any, costs: Any, seed: int
    ) -> list[tuple[int, int]]:
        """The best (function, C) on held-out objects; ties go to the earlier function, then the smaller C."""
        count = len(differences)
        scores = np.empty((len(functions), len(costs), int(held.sum()), count))
        for f, function in enumerate(functions):
            for p in range(count):
                features = transfer.apply(function, differences[p])
                for c, C in enumerate(costs):
                    w, b = linear.quietly(self._train, features[~held], codes[~held], p, C, seed)
                    scores[f, c, :, p] = features[held] @ w + b
        truth = codes[held]
        if not self.per_class:
            right = np.array([[np.mean(linear.answers(s) == truth) for s in row] for row in scores])
            self.validation_scores_ = right
            return [_first_best(right)] * count
        wanted = np.stack([linear.signs_of(truth, p, len(self.classes_)) for p in range(count)], axis=1)
        right = np.mean(np.where(scores >= 0, 1.0, -1.0) == wanted, axis=2)
        self.validation_scores_ = np.moveaxis(right, 2, 0)
        return [_first_best(table) for table in self.validation_scores_]

    def _train(self, features: Values, codes: Any, problem: int, C: float, seed: int) -> tuple[Values, float]:
        signs = linear.signs_of(codes, problem, len(self.classes_))
        if self._boosts():
            # A constant stump as well, for classes of unequal size: its weight is the offset.
            stumps = np.column_stack([features, np.ones(len(features))])
            weights = adaboost(stumps, signs, rounds=self.n_landmarks)
            return weights[:-1], float(weights[-1])
        return linear.train(features, signs, C, self.solver, seed)

    def _differences(self, values: Values, problem: int) -> Values:
        pairs = self.pairs_[problem]
        return values[:, pairs[:, 0]] - values[:, pairs[:, 1]]

    # ---- answers -------------------------------------------------------------------------------------------

    def decision_function(self, X: Table) -> npt.NDArray[np.float64]:
        """One number an object for two classes (positive: classes_[1]), else one a class."""
        values = self._similarities(X)
        scores = np.stack(
            [
                transfer.apply(self.transfer_[p], self._differences(values, p)) @ self.coef_[p] + self.intercept_[p]
                for p in range(len(self.pairs_))
            ],
            axis=1,
        )
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Table) -> npt.NDArray[np.generic]:
        """The class of each object."""
        scores = self.decision_function(X)
        return self.classes_[linear.answers(scores.reshape(len(scores), -1))]

    # ---- saving --------------------------------------------------------------------------------------------

    def saved_fields(self) -> FileFields:
        arrays, fitted = super().saved_fields()
        return arrays, {**fitted, "transfer": [persist.encode(f, "transfer") for f in self.transfer_]}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        self.transfer_ = [persist.decode(f) for f in fitted["transfer"]]
        super().restore_fields(arrays, fitted)

    def _check_shapes(self) -> None:
        count = linear.problems(len(self.classes_))
        shape = self.coef_.shape
        fits = (
            self.coef_.ndim == 2
            and shape[0] == count == len(self.transfer_)
            and self.intercept_.shape == self.C_.shape == (count,)
            and self.pairs_.shape == (*shape, 2)
            and self.pairs_.dtype == np.int64
            and self.pairs_.min() >= 0
            and self.pairs_.max() < self.n_landmarks_
            and all(isinstance(f, transfer.Transfer) for f in self.transfer_)
        )
        if not fits:
            raise persist.ModelFileError("its pairs do not fit its landmarks")


def _first_best(table: Values) -> tuple[int, int]:
    f, c = np.unravel_index(int(np.argmax(table)), table.shape)
    return int(f), int(c)
