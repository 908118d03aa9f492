"""Which learners can have their columns weighed by relevance."""

from __future__ import annotations

from ..budgets import Budget, Forget, Project, Window
from ..learners.additive import is_additive
from ..learners.rule_learner import RuleLearner
from ..rules import Rule, StepSizeAdaptation


def refuse(model: object) -> None:
    """Raise for a learner whose columns cannot be weighed by what it has learned, saying why."""

    def no(why: str) -> ValueError:
        return ValueError(f'Prepared: scale="relevance" {why}; use scale="standard"')

    if not isinstance(model, RuleLearner):
        raise no(f"needs a kernel learner such as KernelClassifier or KernelRegressor, got {model!r}")
    if model.learning_task.name == "novelty":
        raise no("needs labels, and a novelty detector has none")
    if not getattr(model, "stores_points", True):
        raise no(f"learns again from the stored points, and {type(model).__name__} stores none")
    parts = model.checked_parts()
    if is_additive(parts.kernel):
        raise no(f"is for kernels that measure all columns together, and {parts.kernel!r} learns each by itself")
    if parts.kernel is not None and not parts.kernel.is_native:
        raise no(f"needs the gradient of the kernel, and {parts.kernel!r} is a Python function")
    if parts.average:
        raise no("learns again from the stored points, and average=True keeps the mean of all that was learned")
    if not isinstance(parts.budget, Budget) or isinstance(parts.budget, Window | Forget | Project):
        raise no(f"learns again from the stored points, which {parts.budget!r} does not allow")
    if not isinstance(parts.rule, Rule) or isinstance(parts.rule, StepSizeAdaptation):
        raise no(f"resets its rule, which {parts.rule!r} does not allow")
