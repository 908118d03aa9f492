"""Structured outputs: a joint kernel over (input, label), and a search for a label in place of a sign."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, validate_data

from . import _input, _joint, _joint_files, persist
from ._base import _generator
from ._joint import Ahead, Hypothesis, PairSight, SharedSight, Sight, Vector, values_at
from ._joint_steps import Event, Search, check_label, plain
from .budgets import DropOldest, DropRandom, DropSmallest, Project, Unbounded
from .composition import check_composition
from .kernels import Kernel
from .losses import Hinge
from .rules import Implicit, MarginProjection, Perceptron

_BLOCK = 64  # rows of the look-ahead


class StructuredLearner(BaseEstimator):
    """Online learner of f(x, label) for labels of any kind: classes, sequences, trees.

    The answer for x is the label with the highest f(x, label). With the rule `Perceptron` a mistake adds
    k((x, y), .) and takes off k((x, r), .), r the best rival; `MarginProjection` and `Project` make it the
    structured Projectron++; `Implicit` is the structured ILK step (SILK with `DropSmallest`), whose rival r
    is the label with the highest cost(y, r) + f(x, r).

    Parameters
    ----------
    kernel : callable or kernel
        A function k(x, label, x2, label2) on any objects; or a kernel of gristmill on inputs, which stands
        for the joint kernel k(x, x2) if the labels are equal, else 0, and runs through whole kernel matrices.
    labels : list, optional
        All labels there are; each must be hashable. Needed where there is no `argmax`.
    argmax : callable, optional
        Your own search, `argmax(score, x, exclude)`: the label with the highest score(label), other than
        `exclude` (the true label while learning, None while predicting). score(label) is f(x, label), plus
        cost(y, label) for the rival of an `Implicit` step.
    cost : callable, optional
        Delta of the paper, `cost(true, other)` >= 0; 1 for a wrong label if not given. Only for `Implicit`.
    rule : Perceptron(), MarginProjection() or Implicit(), default=Implicit()
        An `Implicit` rule has the loss `Hinge()`, whose margin the cost replaces.
    budget : budget, default=DropSmallest(1000)
        `Unbounded`, `DropOldest`, `DropSmallest`, `DropRandom` or `Project`. A size counts events: both
        functions of an event leave together. `Project` goes with `Perceptron` and `MarginProjection`.
    average : bool, default=False
        Predict with the mean of all hypotheses so far; needs `Unbounded` or `Project`.
    random_state : int, Generator, RandomState or None
        Seeds `DropRandom`.

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009, section 5;
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels,
    NIPS 2006.

    Examples
    --------
    Words are tagged letter by letter; the kernel counts positions where letter and tag agree.

    >>> from gristmill import MarginProjection, Project, StructuredLearner
    >>> def joint(word, tags, word2, tags2):
    ...     return sum(a == c and b == d for a, b in zip(word, tags) for c, d in zip(word2, tags2)) / 10
    >>> def best(score, word, exclude):
    ...     found = ""  # letter by letter, because this kernel is a sum over letters
    ...     for i in range(len(word)):
    ...         found += max("CV", key=lambda tag: score("?" * i + tag + "?" * (len(word) - i - 1)))
    ...     flip = found[:-1] + ("C" if found[-1] == "V" else "V")
    ...     return found if found != exclude else flip
    >>> model = StructuredLearner(joint, argmax=best, rule=MarginProjection(), budget=Project(0.1))
    >>> words, tags = ["grist", "mill", "rig", "slim"] * 5, ["CCVCC", "CVCC", "CVC", "CCVC"] * 5
    >>> model.fit(words, tags).predict(["grill", "strim"]), model.n_support_
    (['CCVCC', 'CCCVC'], 6)
    """

    _rules: ClassVar[tuple[type, ...]] = (Perceptron, MarginProjection, Implicit)
    _budgets: ClassVar[tuple[type, ...]] = (Unbounded, DropOldest, DropSmallest, DropRandom, Project)

    def __init__(
        self,
        kernel: Any,
        labels: Any = None,
        argmax: Any = None,
        cost: Any = None,
        rule: Any = None,
        budget: Any = None,
        average: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.labels = labels
        self.argmax = argmax
        self.cost = cost
        self.rule = rule
        self.budget = budget
        self.average = average
        self.random_state = random_state

    # ---- composition ---------------------------------------------------------------------------------------

    def _parts(self) -> tuple[Any, Any]:
        """Rule and budget as they will run; what makes no sense is refused here."""
        rule = Implicit() if self.rule is None else self.rule
        budget = DropSmallest(1000) if self.budget is None else self.budget
        if isinstance(self.kernel, type) or not (isinstance(self.kernel, Kernel) or callable(self.kernel)):
            raise TypeError(f"kernel must be a function k(x, label, x2, label2) or a kernel, got {self.kernel!r}")
        for name in ("argmax", "cost"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"{name} must be callable or None, got {value!r}")
        if not isinstance(rule, self._rules):
            raise ValueError(f"StructuredLearner: rule must be Perceptron, MarginProjection or Implicit, got {rule!r}")
        if not isinstance(budget, self._budgets):
            names = ", ".join(kind.__name__ for kind in self._budgets)
            raise ValueError(f"StructuredLearner: budget must be one of {names}, got {budget!r}")
        check_composition(rule, budget, bool(self.average))
        if isinstance(rule, Implicit):
            if isinstance(budget, Project):
                raise ValueError(f"{budget!r} works with Perceptron and MarginProjection here, not with {rule!r}")
            if rule.loss != Hinge():
                raise ValueError(
                    f"StructuredLearner: Implicit needs the loss Hinge(), whose margin is the cost, got {rule.loss!r}"
                )
        elif self.cost is not None:
            raise ValueError(f"cost belongs to the rule Implicit(), and {rule!r} has no use for it; leave it out")
        self._label_list()
        return rule, budget

    def _label_list(self) -> list[Any] | None:
        if self.labels is None:
            if self.argmax is None:
                raise ValueError("give labels, a list of all labels, or argmax, a search for the best one")
            return None
        if isinstance(self.labels, str | bytes) or not hasattr(self.labels, "__len__"):
            raise TypeError(f"labels must be a list of labels, got {self.labels!r}")
        labels = plain(self.labels)
        for label in labels:
            check_label(label, "labels")
        if len(labels) < 2 or len(set(labels)) != len(labels):
            raise ValueError(f"labels must be at least two different labels, got {labels!r}")
        return labels

    # ---- input ---------------------------------------------------------------------------------------------

    def _rows(self, X: Any, first: bool) -> Any:
        """X as a list of objects, or as a checked table of the stored points' own type."""
        if not isinstance(self.kernel, Kernel) or not self.kernel.is_native:
            return _input.objects(X)
        if not first and _is_event(X, self.n_features_in_):
            rows = X[0][None]  # the short way: scikit-learn's checks cost more than learning one event
        else:
            rows = validate_data(
                self,
                X,
                reset=first,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
            )
        values = rows.tocoo() if _input.is_sparse(rows) else rows
        flat = values.data if _input.is_sparse(rows) else rows
        bad = np.argwhere(~np.isfinite(flat))
        if len(bad):
            at = tuple(bad[0])
            row, column = (values.row[at], values.col[at]) if _input.is_sparse(rows) else at
            raise ValueError(f"Input X contains NaN or infinity: row {row}, column {column} is {flat[at]}")
        self.kernel.diagonal(rows)  # refuses rows that the kernel cannot take, by their number in the whole chunk
        if first:
            return rows
        points = self._hypothesis.points
        if _input.is_sparse(points) and not _input.is_sparse(rows):
            from scipy.sparse import csr_array

            rows = csr_array(rows)
        elif _input.is_sparse(rows) and not _input.is_sparse(points):
            rows = rows.toarray()
        return rows.astype(points.dtype, copy=False)

    def _targets(self, y: Any, count: int, known: dict[Any, int] | None) -> list[Any]:
        if y is None or isinstance(y, str | bytes) or not hasattr(y, "__len__"):
            raise ValueError(f"StructuredLearner requires y, one label an event, got {y!r}")
        labels = plain(y)
        if len(labels) != count:
            raise ValueError(f"X has {count} events and y {len(labels)} labels")
        for row, label in enumerate(labels):
            check_label(label, f"y, row {row}")
            if known is not None and label not in known:
                raise ValueError(f"row {row}: the label {label!r} is not in labels")
        return labels

    def _fresh(self, rows: Any, budget: Any) -> Hypothesis:
        empty = () if isinstance(rows, list) else rows[:0].copy()
        seed = int(_generator(self.random_state).integers(2**63))
        return Hypothesis.empty(empty, self._label_list(), isinstance(budget, Project), seed)

    def _sights(self, f: Callable[[], Hypothesis], rows: Any) -> Iterator[Sight]:
        """Each event as the hypothesis of its moment sees it."""
        shared, objects = isinstance(self.kernel, Kernel), isinstance(rows, list)
        count, block = _joint.row_count(rows), 1 if objects else _BLOCK
        for first in range(0, count, block):
            if not shared:
                yield PairSight(f(), self.kernel, rows[first], f"row {first}")
                continue
            piece = rows[first : first + block]
            ahead = Ahead(self.kernel, f(), piece, first)
            for i in range(_joint.row_count(piece)):
                yield ahead.sight(f(), i)

    # ---- learning ------------------------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, sample_weight: Any, want: bool, fresh: bool = False) -> Any:
        """One pass in order; kept only when all of it went well."""
        if "_search" in self.__dict__:
            raise RuntimeError("the model is learning: a kernel or a search must not call the model that calls it")
        before = dict(self.__dict__)
        try:
            rule, budget = self._parts()
            self._search = Search(rule, budget, self.argmax, self.cost, bool(self.average))
            first = fresh or "_hypothesis" not in self.__dict__
            f, answers = self._pass(X, y, sample_weight, want, first)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        del self._search
        self._hypothesis = f
        return answers

    def _pass(self, X: Any, y: Any, sample_weight: Any, want: bool, first: bool) -> tuple[Hypothesis, list[Any]]:
        rows = self._rows(X, first)
        count = _joint.row_count(rows)
        f = self._fresh(rows, self._search.budget) if first else self._hypothesis
        targets = self._targets(y, count, f.numbers if f.closed else None)
        weights = np.ones(count)
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((count, 1)), dtype=np.float64, ensure_non_negative=True
            )
        answers: list[Any] = []
        sights = self._sights(lambda: f, rows)
        for i, label in enumerate(targets):
            event = Event(next(sights), rows[i : i + 1], f"row {i}")
            if want:
                answers.append(self._search.answer(f, event, scores=True))
            if weights[i] > 0:
                f = self._search.learned(f, event, label, float(weights[i]))
            f = f.having(seen=f.seen + 1)
        if first:
            self._warn_if_nothing_is_stored(f)
        return f, answers

    def _warn_if_nothing_is_stored(self, f: Hypothesis) -> None:
        budget = self._search.budget
        if isinstance(budget, Project) and len(f.ids) == 0:
            # The first event is a mistake always, because every score is 0: it was folded into nothing.
            warnings.warn(
                f"Project: tolerance={budget.tolerance!r} is not below the norm of any difference "
                "k((x, y), .) - k((x, r), .) of the first chunk, so nothing is stored; use a smaller one",
                UserWarning,
                stacklevel=5,
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order.

        Parameters
        ----------
        X : table of rows (kernel of gristmill), or sequence of objects
        y : sequence of labels
        sample_weight : array of numbers >= 0, optional
            Multiplies the loss of an event; an event of weight 0 is passed over.
        """
        self._learn(X, y, sample_weight, want=False, fresh=True)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning from X, y, in order; however the stream is cut, the model is the same."""
        self._learn(X, y, sample_weight, want=False)
        return self

    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> None:
        """Learn one event."""
        self._learn(_single(x), [y], None if sample_weight == 1.0 else [sample_weight], want=False)

    def prequential(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn as `partial_fit` does, and return what was said of each event before it was learned.

        With a label list these are the scores of `decision_function`, a column a label; without one, the list
        of labels that `predict` would have given.
        """
        answers = self._learn(X, y, sample_weight, want=True)
        return np.array(answers) if self._hypothesis.closed else answers

    # ---- answers -------------------------------------------------------------------------------------------

    def _answers(self, X: Any, scores: bool) -> list[Any]:
        f = self._fitted()
        search = Search(None, None, self.argmax, None, bool(self.average))
        rows = self._rows(X, first=False)
        answers = []
        for first in range(0, _joint.row_count(rows), _BLOCK):
            piece = rows[first : first + _BLOCK]
            values = values_at(self.kernel, f, piece, first) if isinstance(self.kernel, Kernel) else None
            for i in range(_joint.row_count(piece)):
                place = f"row {first + i}"
                sight = (
                    PairSight(f, self.kernel, piece[i], place)
                    if values is None
                    else SharedSight(f, values[i], math.nan)  # k(x, x) is not asked for here
                )
                answers.append(search.answer(f, Event(sight, piece[i : i + 1], place), scores))
        return answers

    def decision_function(self, X: Any) -> Vector:
        """f(x, label): a row an event, a column a label. Needs a label list."""
        self._need_labels("decision_function")
        return np.array(self._answers(X, scores=True), dtype=np.float64)

    def score_one(self, x: Any) -> Vector:
        """`decision_function` of one event; zeros before anything was learned."""
        self._need_labels("score_one")
        if "_hypothesis" not in self.__dict__:
            return np.zeros(len(self._label_list() or ()))
        return np.array(self._answers(_single(x), scores=True)[0], dtype=np.float64)

    def _need_labels(self, what: str) -> None:
        if self.labels is None:
            raise TypeError(f"{what} needs the list of all labels; without one, use predict")

    def predict(self, X: Any) -> list[Any]:
        """The label with the highest score for each event, as a list."""
        return self._answers(X, scores=False)

    def predict_one(self, x: Any) -> Any:
        """The label of one event; None before anything was learned."""
        return self._answers(_single(x), scores=False)[0] if "_hypothesis" in self.__dict__ else None

    # ---- fitted attributes ---------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_hypothesis" in self.__dict__

    def _fitted(self) -> Hypothesis:
        if "_hypothesis" not in self.__dict__:
            raise NotFittedError(
                "This StructuredLearner instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        found: Hypothesis = self.__dict__["_hypothesis"]
        return found

    @property
    def classes_(self) -> list[Any]:
        """The label list; without one, the labels of the stored functions."""
        return list(self._fitted().numbers)

    @property
    def support_vectors_(self) -> Any:
        """The stored inputs, oldest first: a table, a CSR array, or a list of objects."""
        points = self._fitted().points
        return list(points) if isinstance(points, tuple) else points

    @property
    def support_ids_(self) -> npt.NDArray[np.int64]:
        """Position in the stream of each stored input, from 0; oldest first."""
        return self._fitted().ids

    @property
    def dual_coef_(self) -> Vector:
        """Coefficients: a row a stored input, a column a label of `classes_`."""
        f = self._fitted()
        table = np.zeros((len(f.ids), len(f.numbers)))
        table[f.of, f.labels] = f.weights(bool(self.average))
        return table

    @property
    def n_support_(self) -> int:
        """How many inputs are stored."""
        return len(self._fitted().ids)

    @property
    def n_seen_(self) -> int:
        """How many events have come."""
        return self._fitted().seen

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the model keeps (of objects, the references to them)."""
        return self._fitted().bytes()

    # ---- saving --------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to a file without code.

        Needs a kernel of gristmill, a list of plain labels, no argmax and no cost; else it is refused.
        """
        persist.save(self, path)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        f = self._fitted()
        for name in ("kernel", "argmax", "cost"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Kernel) and value.is_native):
                raise TypeError(f"{name}={value!r} is Python code, and a model file holds no code; pickle the model")
        for label in f.numbers:
            if not isinstance(label, str | int | float | bool):
                raise TypeError(
                    f"the label {label!r} is not a plain value, and a file holds no others; pickle the model"
                )
        return _joint_files.to_arrays(f), {"n_features_in": int(self.n_features_in_)}

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        _, budget = self._parts()
        width = int(fitted["n_features_in"])
        self._hypothesis = _joint_files.from_arrays(arrays, self._label_list(), isinstance(budget, Project), width)
        self.n_features_in_ = width


def _is_event(X: Any, width: int) -> bool:
    return (
        type(X) is list and len(X) == 1 and type(X[0]) is np.ndarray and X[0].dtype == np.float64
        and X[0].shape == (width,)
    )  # fmt: skip


def _single(x: Any) -> Any:
    return x if hasattr(x, "tocsr") else [x]
