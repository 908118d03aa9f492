"""What learners by an update rule share, over stored points or over explicit weights."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Hashable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from .. import persist
from .._base import late_labels
from .._base.estimator import Run, StreamEstimator, refuse_no_weight
from .._base.tasks import ClassWeight, Encoded, Scores
from .._common import inputs
from .._common.labels import LabelTable, checked_class_weight
from .._common.types import Fields, Fitted, Labels, Table
from ..budgets import Budget
from ..rules import Rule
from .composition import check_outputs, check_targets


class Parts(NamedTuple):
    """What runs is the model's own: later changes of the parameters or of a Python part are for the next fit."""

    kernel: Any
    rule: Any
    budget: Any
    average: bool
    class_weight: Any = None

    def copied(self) -> Parts:
        """Rules and budgets of gristmill are values; Python objects have a state of their own."""
        if isinstance(self.rule, Rule) and isinstance(self.budget, Budget):
            return self
        rule = self.rule if isinstance(self.rule, Rule) else copy.deepcopy(self.rule)
        budget = self.budget if isinstance(self.budget, Budget) else copy.deepcopy(self.budget)
        return self._replace(rule=rule, budget=budget)


class RuleLearner(StreamEstimator):
    """Base of the learners by an update rule; its samples may have weights."""

    _default_rule: ClassVar[Rule]
    rule: Any
    average: Any
    random_state: Any

    # ---- composition ------------------------------------------------------------------------------------------

    def _class_weight(self) -> ClassWeight:
        """How much the classes weigh, where there are any."""
        given: ClassWeight = checked_class_weight(type(self).__name__, self.class_weight)
        return given

    def _checked_rule(self, default: Rule) -> Any:
        rule = default if self.rule is None else self.rule
        if isinstance(rule, Rule):
            rule.check_task(self.learning_task.name)
        elif isinstance(rule, type) or not callable(rule):
            raise TypeError(f"rule must be a rule such as Perceptron() or callable with a Trial, got {rule!r}")
        return rule

    def _targets(self, run: Run, y: Labels, count: int, classes: Labels) -> Encoded:
        found = super()._targets(run, y, count, classes)
        if len(found.table) > 2:
            check_outputs(run.parts.rule, run.parts.budget, len(found.table))
        targets = 1 if found.numbers.ndim == 1 else found.numbers.shape[1]
        if run.core is None:
            if targets > 1:
                check_targets(run.parts.rule, run.parts.budget, targets)
            run.found["targets"] = targets
        elif targets != run.targets:
            raise ValueError(f"y has {targets} target(s) a row, but the model was started with {run.targets}")
        return found

    def _for_targets(self, run: Run, core: Any) -> Any:
        """A fresh core, made ready for as many targets as the first chunk has."""
        if run.targets > 1:
            core.set_targets(run.targets)
        return core

    def _weighed(self, run: Run, labels: LabelTable, numbers: Any, weights: Any) -> Any:
        return self.learning_task.weighed(run.parts.class_weight, labels, numbers, weights)

    def event_weight(self, run: Run, y: Labels) -> float:
        return self.learning_task.weight(run.parts.class_weight, y)

    def spare_parts(self, run: Run) -> Any:
        parts = run.parts
        return None if isinstance(parts.rule, Rule) and isinstance(parts.budget, Budget) else parts.copied()

    # ---- learning ---------------------------------------------------------------------------------------------

    def fit(self, X: Table, y: Labels = None, sample_weight: Labels = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or array, or sequence of objects (with a callable kernel)
        y : labels or targets
        sample_weight : array of numbers >= 0, optional
            Multiplies the loss of an event; an event of weight 0 is passed over.
        """
        refuse_no_weight(sample_weight)
        self._learn(X, y, sample_weight, fresh=True)
        return self

    def partial_fit(self, X: Table, y: Labels = None, sample_weight: Labels = None) -> Self:
        """Go on learning from X, y, in order; cutting a stream into chunks in any way gives the same model."""
        self._learn(X, y, sample_weight)
        return self

    def prequential(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from X, y as `partial_fit` does, and return what was predicted for each event before."""
        return self._learn(X, y, sample_weight, want_scores=True)

    def learn_one(self, x: object, y: Labels = None, sample_weight: float = 1.0, id: Hashable = None) -> None:
        """Learn one event.

        Parameters
        ----------
        x : one event
        y : label or target
        sample_weight : float >= 0, default=1.0
            Multiplies the loss of the event.
        id : hashable, optional
            Of an event whose label comes later, by `label(id, y)`; it is learned then.
        """
        if id is not None:
            self._wait(id, x, y)
            return
        if sample_weight != 1.0 or not self._learned(x, y):
            self._learn(inputs.single(x), [y], None if sample_weight == 1.0 else [sample_weight])

    label, n_waiting_, _wait = late_labels.label, late_labels.n_waiting_, late_labels.wait

    # ---- what is learned --------------------------------------------------------------------------------------

    def _outward(self, values: Scores) -> Scores:
        """Outputs of the core, in the last axis, as they are shown outside."""
        run = self._started()
        return self.learning_task.outputs(values, run.labels.view(run.core.classes))

    def gradient(self, X: Table) -> npt.NDArray[np.float64]:
        """How the scores change with each column: d f / d x at each event, (n, d); (n, classes, d) for three or more.

        Where a kernel has a kink (an L1 distance at equal numbers) the slope is the mean of both sides. Additive kernels
        and `RandomMaclaurin` maps have gradients too; a kernel or a map that only Python knows has none.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Gaussian, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(2000, 3))
        >>> model = KernelRegressor(Gaussian(0.2)).fit(X, np.sin(X[:, 0]))
        >>> np.abs(model.gradient(X)).mean(axis=0).round(1).tolist()
        [0.7, 0.0, 0.0]
        """
        run = self._started()
        values, classes = run.core.gradient(self._rows(run.core, self._read(X, first=False)))
        return self.learning_task.slopes(values, run.labels.view(classes))

    @property
    def intercept_(self) -> npt.NDArray[np.float64]:
        """The offset of each output."""
        return self._at_rest(lambda model: model._outward(model._engine.intercept()[None, :])[0])

    @property
    def norm_(self) -> float:
        """||f||, over all outputs."""
        return float(np.sqrt(max(self._engine.norm2, 0.0)))

    def __getattr__(self, name: str) -> Any:
        # Adaptive quantities exist only for the rule that has them: margin_, epsilon_, sigma_, rate_ ...
        if name.endswith("_") and not name.startswith("_") and self._run is not None:
            rule = self._run.parts.rule
            if isinstance(rule, Rule) and name in rule.state_names():
                return float(self._run.core.rule_state()[rule.state_names().index(name)])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- saving -----------------------------------------------------------------------------------------------

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        super().restore_fields(arrays, fitted)
        if self._engine.width != self.n_features_in_:
            raise persist.ModelFileError("its points do not have the number of features it states")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.learning_task.name == "regression":
            rule = self._default_rule if self.rule is None else self.rule
            with contextlib.suppress(ValueError):  # a rule or budget that cannot share a store
                check_targets(rule, getattr(self, "budget", None), 2)
                tags.target_tags.multi_output = True
        return tags
