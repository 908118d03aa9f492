"""Structured outputs: a joint kernel over (input, label), and a search for a label in place of a sign."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .. import persist
from .._base.estimator import Run, StreamEstimator, refuse_no_weight
from .._base.tasks import Encoded, Task
from .._common import inputs as _input
from .._common.labels import LabelTable, LabelView
from .._common.seeds import seed_of
from .._common.types import Fields, FileFields, Fitted, Labels, RandomState, Table
from ..budgets import Budget, DropOldest, DropRandom, DropSmallest, Project, Unbounded, counted
from ..kernels import Kernel
from ..learners.composition import check_composition
from ..losses import Hinge
from ..rules import Implicit, MarginProjection, Perceptron, Rule
from . import files
from .core import JointCore, State, native
from .search import Label, Search, check_label, plain
from .sequences import Sequences, viterbi

Vector = npt.NDArray[np.float64]


class StructuredTask(Task):
    """Labels are objects of any kind that have a hash; the core takes them as they are."""

    name = "structured"

    def encoded(self, owner: str, table: LabelTable, y: Any, count: int, classes: Any) -> Encoded:
        """classes: the list of all labels, or None."""
        if y is None or isinstance(y, str | bytes) or not hasattr(y, "__len__"):
            raise ValueError(f"{owner} requires y, one label an event, got {y!r}")
        labels = plain(y)
        if len(labels) != count:
            raise ValueError(f"X has {count} events and y {len(labels)} labels")
        for row, label in enumerate(labels):
            check_label(label, f"y, row {row}")
            if classes is not None and label not in classes:
                raise ValueError(f"row {row}: the label {label!r} is not in labels")
        return Encoded(table, labels, 0)  # type: ignore[arg-type]  # labels in place of their numbers

    def shown(self, scores: object, view: LabelView) -> Any:
        return scores


class SequenceTask(StructuredTask):
    """Labels are sequences of tags, which become tuples."""

    def encoded(self, owner: str, table: LabelTable, y: Any, count: int, classes: Any) -> Encoded:
        """classes: the list of all tags."""
        if y is None or isinstance(y, str | bytes) or not hasattr(y, "__len__"):
            raise ValueError(f"{owner} requires y, one label an event, got {y!r}")
        if len(y) != count:
            raise ValueError(f"X has {count} events and y {len(y)} labels")
        labels = []
        for row, label in enumerate(y):
            if not hasattr(label, "__len__") or len(label) == 0:
                raise ValueError(f"row {row}: a label must be one tag per row of the sequence, got {label!r}")
            tags = tuple(plain(label))
            for tag in tags:
                check_label(tag, f"row {row}")
                if tag not in classes:
                    raise ValueError(f"row {row}: the tag {tag!r} is not in labels")
            labels.append(tags)
        return Encoded(table, labels, 0)  # type: ignore[arg-type]  # labels in place of their numbers


_SEQUENCES = SequenceTask()


class StructuredLearner(StreamEstimator):
    """Online learner of f(x, label) for labels of any kind: classes, sequences, trees.

    The prediction for x is the label with the highest f(x, label). With the rule `Perceptron` a mistake adds
    k((x, y), .) and subtracts k((x, r), .), r the best rival; `MarginProjection` and `Project` make it the
    structured Projectron++; `Implicit` is the structured ILK step (SILK with `DropSmallest`), whose rival r
    is the label with the highest cost(y, r) + f(x, r).

    Experimental: it may change in any minor version.

    Parameters
    ----------
    kernel : kernel, Sequences or callable
        A kernel of gristmill on inputs stands for the joint kernel k(x, x2) if the labels are equal, else 0. `Sequences`
        compares sequences of rows with a tag per row: an input is a table, a label a tuple of tags. Both run in the core.
        Or a function k(x, label, x2, label2) on any objects.
    labels : list, optional
        All labels there are, or all tags of `Sequences`; each must be hashable. Needed where there is no `argmax`.
    argmax : callable, optional
        Your own search, `argmax(score, x, exclude)`: the label with the highest score(label), other than
        `exclude` (the true label while learning, None while predicting). score(label) is f(x, label), plus
        cost(y, label) for the rival of an `Implicit` step. For `Sequences`, score.rows and score.transitions are the
        scores of tags at rows and of tags that follow each other, without cost, and `viterbi` is the default.
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

    learning_task = StructuredTask()
    _rules: ClassVar[tuple[type, ...]] = (Perceptron, MarginProjection, Implicit)
    _budgets: ClassVar[tuple[type, ...]] = (Unbounded, DropOldest, DropSmallest, DropRandom, Project)

    def __init__(
        self,
        kernel: Any,
        labels: Labels = None,
        argmax: Any = None,
        cost: Any = None,
        rule: Any = None,
        budget: Any = None,
        average: bool = False,
        random_state: RandomState = None,
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

    def checked_parts(self) -> Search:
        """Rule, budget and search as they will run; what makes no sense is refused here."""
        rule = Implicit() if self.rule is None else self.rule
        budget = DropSmallest(1000) if self.budget is None else self.budget
        if isinstance(self.kernel, type) or not (isinstance(self.kernel, Kernel | Sequences) or callable(self.kernel)):
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
            raise ValueError(f"cost belongs to the rule Implicit(), and {rule!r} does not use it; omit it")
        self._label_list()
        argmax = viterbi if self.argmax is None and isinstance(self.kernel, Sequences) else self.argmax
        assert isinstance(rule, Rule)
        assert isinstance(budget, Budget)
        return Search(rule, budget, argmax, self.cost, bool(self.average), self.labels is not None)

    def _label_list(self) -> list[Any] | None:
        if self.labels is None:
            if isinstance(self.kernel, Sequences):
                raise ValueError("give labels, the list of all tags of sequences")
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

    def takes_objects(self) -> bool:
        return not (isinstance(self.kernel, Kernel) and self.kernel.is_native)

    def _read(self, X: Table, first: bool) -> Any:
        """X as a list of objects, as a list of sequences, or as a checked table."""
        _input.check_sparse(X)
        rows = super()._read(X, first)
        if isinstance(self.kernel, Sequences):
            return self._sequences(rows, first)
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

    def _sequences(self, X: list[Any], first: bool) -> list[Vector]:
        """Each sequence as a table of doubles."""
        found = []
        for i, x in enumerate(X):
            try:
                table = np.ascontiguousarray(x, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"row {i}: a sequence must be a table of numbers: {error}") from None
            if table.ndim != 2 or 0 in table.shape:
                raise ValueError(f"row {i}: a sequence must be a table with rows and columns, got shape {table.shape}")
            if first and i == 0:
                self.n_features_in_ = table.shape[1]
            if table.shape[1] != self.n_features_in_:
                raise ValueError(f"row {i}: a row has {table.shape[1]} features, and the model {self.n_features_in_}")
            if not np.isfinite(table).all():
                at = tuple(np.argwhere(~np.isfinite(table))[0])
                raise ValueError(
                    f"row {i}: X contains NaN or infinity: position {at[0]}, column {at[1]} is {table[at]}"
                )
            found.append(table)
        return found

    def _rows(self, core: JointCore, X: Table) -> Any:
        if isinstance(X, list):
            return X
        return _input.core_rows(X, core.held.f.is_single, core.held.f.is_sparse)

    def _targets(self, run: Run, y: Labels, count: int, classes: Labels) -> Encoded:
        task = _SEQUENCES if isinstance(self.kernel, Sequences) else self.learning_task
        return task.encoded(type(self).__name__, run.labels, y, count, self._label_list())

    def _pass(self, run: Run, X: Any, y: Any, weights: Any, want_scores: bool, classes: Any, passes: int) -> Any:
        if isinstance(self.kernel, Sequences) and hasattr(X, "__len__") and hasattr(y, "__len__") and len(X) == len(y):
            for row, (x, label) in enumerate(zip(X, y, strict=True)):
                if hasattr(x, "__len__") and hasattr(label, "__len__") and len(x) != len(label):
                    raise ValueError(f"row {row}: a sequence of {len(x)} rows has {len(label)} tags")
        return super()._pass(run, X, y, weights, want_scores, classes, passes)

    def begin_core(self, run: Run, X: Any) -> JointCore:
        seed = seed_of(self.random_state)
        extent = (0, False, False)
        if isinstance(self.kernel, Sequences):
            extent = (X[0].shape[1], False, False)
        elif not isinstance(X, list):
            extent = (X.shape[1], _input.is_sparse(X), X.dtype == np.float32)
        return JointCore.fresh(self.kernel, run.parts, self._label_list(), extent, seed)

    def fit(self, X: Table, y: Labels = None, sample_weight: Labels = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order; an event of weight 0 is passed over."""
        refuse_no_weight(sample_weight)
        self._learn(X, y, sample_weight, fresh=True)
        return self

    def partial_fit(self, X: Table, y: Labels = None, sample_weight: Labels = None) -> Self:
        """Go on learning from X, y, in order; cutting a stream into chunks in any way gives the same model."""
        self._learn(X, y, sample_weight)
        return self

    def prequential(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn as `partial_fit` does, and return the prediction of each sample before it was learned.

        With a label list these are the scores of `decision_function`, a column a label; without one, the list
        of labels that `predict` would have given.
        """
        return self._learn(X, y, sample_weight, want_scores=True)

    def learn_one(self, x: object, y: Labels = None, sample_weight: float = 1.0) -> None:
        """Learn one event."""
        self._learn(_input.single(x), [y], None if sample_weight == 1.0 else [sample_weight])

    # ---- answers -------------------------------------------------------------------------------------------

    def _answers(self, X: Table, scores: bool) -> list[Any]:
        core = self._engine
        found: list[Any] = core.answers(self._rows(core, self._read(X, first=False)), scores)
        return found

    def decision_function(self, X: Table) -> Vector:
        """f(x, label): a row an event, a column a label. Needs a label list."""
        self._need_labels("decision_function")
        return np.array(self._answers(X, scores=True), dtype=np.float64)

    def score_one(self, x: object) -> Vector:
        """`decision_function` of one event; zeros before anything was learned."""
        self._need_labels("score_one")
        if self._run is None:
            return np.zeros(len(self._label_list() or ()))
        return np.array(self._answers(_input.single(x), scores=True)[0], dtype=np.float64)

    def _need_labels(self, what: str) -> None:
        if isinstance(self.kernel, Sequences):
            raise TypeError(f"{what}: sequences have too many labels to list their scores; use predict")
        if self.labels is None:
            raise TypeError(f"{what} needs the list of all labels; without one, use predict")

    def predict(self, X: Table) -> list[Any]:
        """The label with the highest score for each event, as a list."""
        return self._answers(X, scores=False)

    def predict_one(self, x: object) -> Any:
        """The label of one event; None before anything was learned."""
        return None if self._run is None else self._answers(_input.single(x), scores=False)[0]

    # ---- fitted attributes ---------------------------------------------------------------------------------

    @property
    def _held(self) -> State:
        held: State = self._engine.held
        return held

    @property
    def classes_(self) -> list[Any]:
        """The label list; without one, the labels of the stored functions."""
        return list(self._known(self._held))

    def _known(self, held: State) -> dict[Label, int]:
        if self.labels is not None:
            return held.names
        used = set(held.f.symbols.tolist())
        return {label: number for label, number in held.names.items() if number in used}

    @property
    def support_vectors_(self) -> Any:
        """The stored inputs, oldest first: a table, a CSR array, or a list of sequences or objects."""
        held = self._held
        if self.takes_objects() and not isinstance(self.kernel, Sequences):
            return [held.objects[at] for at in held.f.ids.tolist()]
        rows = files.rows_of(held)
        return np.split(rows, held.f.first_row[1:-1]) if isinstance(self.kernel, Sequences) and len(rows) else rows

    @property
    def support_ids_(self) -> npt.NDArray[np.int64]:
        """Position in the stream of each stored input, from 0; oldest first."""
        ids: npt.NDArray[np.int64] = self._held.f.ids
        return ids

    @property
    def dual_coef_(self) -> Vector:
        """Coefficients: a row a stored input (a row of a stored sequence), a column a label (a tag) of `classes_`."""
        held = self._held
        f, known = held.f, self._known(held)
        columns = np.full(max(len(held.names), 1), -1)
        columns[list(known.values())] = np.arange(len(known))
        first, of = f.first_row, f.of
        rows = np.concatenate([np.arange(first[at], first[at + 1]) for at in of]) if len(of) else of
        table = np.zeros((first[-1], len(known)))
        counts = np.diff(first)[of] if len(of) else of
        np.add.at(table, (rows, columns[f.symbols]), np.repeat(f.weights(bool(self.average)), counts))
        return table

    @property
    def n_support_(self) -> int:
        """How many inputs are stored."""
        return int(self._held.f.size)

    # ---- saving --------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to a file without code; `to_bytes` gives the same as bytes.

        Needs a kernel of gristmill, a list of plain labels, no argmax and no cost; else it is refused.
        """
        super().save(path)

    def saved_fields(self) -> FileFields:
        held = self._held
        for name in ("kernel", "argmax", "cost"):
            value = getattr(self, name)
            if value is not None and not (name == "kernel" and native(value)):
                raise TypeError(f"{name}={value!r} is Python code, and a model file holds no code; pickle the model")
        for label in held.names:
            if not isinstance(label, str | int | float | bool):
                raise TypeError(
                    f"the label {label!r} is not a plain value, and a file holds no others; pickle the model"
                )
        return files.to_arrays(held, self.kernel), persist.encode_features(self)

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        parts = self.checked_parts()
        persist.decode_features(self, fitted)
        held = files.from_arrays(arrays, self.kernel, parts, self._label_list(), {})
        if native(self.kernel) and held.f.width != self.n_features_in_:
            raise persist.ModelFileError("its points do not fit its number of features")
        self._run = Run(parts, JointCore(self.kernel, parts, held))

    def _packed(self, core: JointCore) -> Any:
        held = core.held
        return core.kernel, files.to_arrays(held, core.kernel), list(held.names), held.objects

    def _unpacked(self, parts: Any, packed: Any) -> JointCore:
        kernel, arrays, names, objects = packed
        return JointCore(kernel, parts, files.from_arrays(dict(arrays), kernel, parts, names, dict(objects)))
