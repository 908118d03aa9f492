"""Structured outputs: a joint kernel over (input, label), and a search for a label in place of a sign."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import persist
from .._base.estimator import Run, WeightedStream
from .._common import inputs as _input
from .._common.labels import LabelTable, LabelView
from .._common.seeds import seed_of
from ..budgets import DropOldest, DropRandom, DropSmallest, Project, Unbounded, counted
from ..kernels import Kernel
from ..learners.composition import check_composition
from ..losses import Hinge
from ..rules import Implicit, MarginProjection, Perceptron
from . import files
from .core import JointCore
from .hypothesis import Hypothesis, Vector
from .steps import Search, check_label, plain


class StructuredLearner(WeightedStream):
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
    ...         found += max("CV", key=lambda tag: round(score("?" * i + tag + "?" * (len(word) - i - 1)), 9))
    ...     flip = found[:-1] + ("C" if found[-1] == "V" else "V")
    ...     return found if found != exclude else flip
    >>> model = StructuredLearner(joint, argmax=best, rule=MarginProjection(), budget=Project(0.1))
    >>> words, tags = ["grist", "mill", "rig", "slim"] * 5, ["CCVCC", "CVCC", "CVC", "CCVC"] * 5
    >>> model.fit(words, tags).predict(["grill", "strim"]), model.n_support_
    (['CCVCC', 'CCCVC'], 5)
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

    def _parts(self) -> Search:
        """Rule, budget and search as they will run; what makes no sense is refused here."""
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
        if isinstance(budget, Project):
            if budget.size is not None:
                raise ValueError(f"StructuredLearner: Project has no size here, got {budget!r}; leave size out")
        elif not isinstance(budget, Unbounded):
            counted(budget, "StructuredLearner")
        if isinstance(rule, Implicit):
            if isinstance(budget, Project):
                raise ValueError(f"{budget!r} works with Perceptron and MarginProjection here, not with {rule!r}")
            if rule.loss != Hinge():
                raise ValueError(
                    f"StructuredLearner: Implicit needs the loss Hinge(), whose margin is the cost, got {rule.loss!r}"
                )
            if rule.schedule != "constant":
                raise ValueError(f"StructuredLearner: Implicit needs schedule='constant', got {rule.schedule!r}")
        elif self.cost is not None:
            raise ValueError(f"cost belongs to the rule Implicit(), and {rule!r} has no use for it; leave it out")
        self._label_list()
        return Search(rule, budget, self.argmax, self.cost, bool(self.average))

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

    def _takes_objects(self) -> bool:
        return not isinstance(self.kernel, Kernel) or not self.kernel.is_native

    def _read(self, X: Any, first: bool) -> Any:
        """X as a list of objects, or as a checked table."""
        _input.check_sparse(X)
        rows = super()._read(X, first)
        if isinstance(rows, list):
            return rows
        values = rows.tocoo() if _input.is_sparse(rows) else rows
        flat = values.data if _input.is_sparse(rows) else rows
        bad = np.argwhere(~np.isfinite(flat))
        if len(bad):
            at = tuple(bad[0])
            row, column = (values.row[at], values.col[at]) if _input.is_sparse(rows) else at
            raise ValueError(f"Input X contains NaN or infinity: row {row}, column {column} is {flat[at]}")
        self.kernel.diagonal(rows)  # refuses rows that the kernel cannot take, by their number in the whole chunk
        return rows

    def _rows(self, core: JointCore, X: Any) -> Any:
        """A table of the stored points' own type."""
        points = core.f.points
        if isinstance(X, list):
            return X
        if _input.is_sparse(points) and not _input.is_sparse(X):
            from scipy.sparse import csr_array

            X = csr_array(X)
        elif _input.is_sparse(X) and not _input.is_sparse(points):
            X = X.toarray()
        return X.astype(points.dtype, copy=False)

    def _targets(self, run: Run, y: Any, count: int, classes: Any) -> tuple[LabelTable, Any, int]:
        if y is None or isinstance(y, str | bytes) or not hasattr(y, "__len__"):
            raise ValueError(f"StructuredLearner requires y, one label an event, got {y!r}")
        known, labels = self._label_list(), plain(y)
        if len(labels) != count:
            raise ValueError(f"X has {count} events and y {len(labels)} labels")
        for row, label in enumerate(labels):
            check_label(label, f"y, row {row}")
            if known is not None and label not in known:
                raise ValueError(f"row {row}: the label {label!r} is not in labels")
        return run.labels, labels, 0

    def _begin(self, run: Run, X: Any) -> JointCore:
        empty = () if isinstance(X, list) else X[:0].copy()
        projects = isinstance(run.parts.budget, Project)
        f = Hypothesis.empty(empty, self._label_list(), projects, seed_of(self.random_state))
        return JointCore(self.kernel, run.parts, f)

    def prequential(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn as `partial_fit` does, and return the prediction of each sample before it was learned.

        With a label list these are the scores of `decision_function`, a column a label; without one, the list
        of labels that `predict` would have given.
        """
        return self._learn(X, y, sample_weight, want_scores=True)

    def _shown(self, scores: Any, view: LabelView) -> Any:
        return scores

    # ---- answers -------------------------------------------------------------------------------------------

    def _answers(self, X: Any, scores: bool) -> list[Any]:
        core = self._engine
        found: list[Any] = core.answers(self._rows(core, self._read(X, first=False)), scores)
        return found

    def decision_function(self, X: Any) -> Vector:
        """f(x, label): a row an event, a column a label. Needs a label list."""
        self._need_labels("decision_function")
        return np.array(self._answers(X, scores=True), dtype=np.float64)

    def score_one(self, x: Any) -> Vector:
        """`decision_function` of one event; zeros before anything was learned."""
        self._need_labels("score_one")
        if self._run is None:
            return np.zeros(len(self._label_list() or ()))
        return np.array(self._answers(_input.single(x), scores=True)[0], dtype=np.float64)

    def _need_labels(self, what: str) -> None:
        if self.labels is None:
            raise TypeError(f"{what} needs the list of all labels; without one, use predict")

    def predict(self, X: Any) -> list[Any]:
        """The label with the highest score for each event, as a list."""
        return self._answers(X, scores=False)

    def predict_one(self, x: Any) -> Any:
        """The label of one event; None before anything was learned."""
        return None if self._run is None else self._answers(_input.single(x), scores=False)[0]

    # ---- fitted attributes ---------------------------------------------------------------------------------

    @property
    def _hypothesis(self) -> Hypothesis:
        f: Hypothesis = self._engine.f
        return f

    @property
    def classes_(self) -> list[Any]:
        """The label list; without one, the labels of the stored functions."""
        return list(self._hypothesis.numbers)

    @property
    def support_vectors_(self) -> Any:
        """The stored inputs, oldest first: a table, a CSR array, or a list of objects."""
        points = self._hypothesis.points
        return list(points) if isinstance(points, tuple) else points

    @property
    def support_ids_(self) -> npt.NDArray[np.int64]:
        """Position in the stream of each stored input, from 0; oldest first."""
        return self._hypothesis.ids

    @property
    def dual_coef_(self) -> Vector:
        """Coefficients: a row a stored input, a column a label of `classes_`."""
        f = self._hypothesis
        table = np.zeros((len(f.ids), len(f.numbers)))
        table[f.of, f.labels] = f.weights(bool(self.average))
        return table

    @property
    def n_support_(self) -> int:
        """How many inputs are stored."""
        return len(self._hypothesis.ids)

    # ---- saving --------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to a file without code; `to_bytes` gives the same as bytes.

        Needs a kernel of gristmill, a list of plain labels, no argmax and no cost; else it is refused.
        """
        super().save(path)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        f = self._hypothesis
        for name in ("kernel", "argmax", "cost"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Kernel) and value.is_native):
                raise TypeError(f"{name}={value!r} is Python code, and a model file holds no code; pickle the model")
        for label in f.numbers:
            if not isinstance(label, str | int | float | bool):
                raise TypeError(
                    f"the label {label!r} is not a plain value, and a file holds no others; pickle the model"
                )
        return files.to_arrays(f), persist.encode_features(self)

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        parts = self._parts()
        persist.decode_features(self, fitted)
        projects = isinstance(parts.budget, Project)
        f = files.from_arrays(arrays, self._label_list(), projects, self.n_features_in_)
        self._run = Run(parts, JointCore(self.kernel, parts, f))

    def _packed(self, core: JointCore) -> Any:
        return core.kernel, core.f

    def _unpacked(self, parts: Any, packed: Any) -> JointCore:
        kernel, f = packed
        return JointCore(kernel, parts, f)
