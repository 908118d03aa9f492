"""The contract of every learner, as functions that third parties can run too.

    for check in yield_checks(model):
        check(model)

Each check takes an estimator, works on clones of it, returns nothing if the promise is kept and raises
`CheckError` with the promise if it is not. What applies is found by what the estimator is: its task, whether
its kernel runs in the core, whether its budget is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from typing import Any

from .._common.types import Labels, Table
from ..budgets import Budget
from .cases import Case, CheckError, budget_of, cases_of, close, is_native, require, snapshot, stores_points
from .files import check_copies_are_independent, check_files_hold_the_whole_model
from .inputs import check_bad_input_changes_nothing, check_inputs_are_left_alone, check_predicting_changes_nothing
from .scores import (
    check_attributes_fit_together,
    check_dense_and_sparse_agree,
    check_prequential_scores_before_it_learns,
    check_scores_are_the_naive_sums,
    check_single_precision,
    check_weights_have_a_meaning,
)
from .streams import (
    check_cutting_changes_nothing,
    check_memory_is_bounded,
    check_pausing_changes_nothing,
    check_same_seed_same_run,
)

__all__ = ["Case", "CheckError", "close", "require", "snapshot", "yield_checks"]

Check = Callable[[Any], None]

_POINTS = (check_scores_are_the_naive_sums, check_attributes_fit_together)
_ALWAYS = (
    check_prequential_scores_before_it_learns,
    check_cutting_changes_nothing,
    check_pausing_changes_nothing,
    check_same_seed_same_run,
    check_bad_input_changes_nothing,
    check_predicting_changes_nothing,
    check_copies_are_independent,
    check_inputs_are_left_alone,
    check_files_hold_the_whole_model,
    check_weights_have_a_meaning,
)


def _is_bounded(budget: object) -> bool:
    return isinstance(budget, Budget) and (
        getattr(budget, "size", None) is not None or getattr(budget, "steps", None) is not None
    )


def _on_all_cases(check: Callable[[Case], None], X: Table, y: Labels, estimator: object) -> None:
    for case in cases_of(estimator, X, y):
        check(case)


def yield_checks(estimator: Any, X: Any = None, y: Labels = None) -> Iterator[Check]:
    """Every check that applies to an estimator; each is called with the estimator and raises `CheckError`.

    Parameters
    ----------
    estimator : a learner of gristmill, or one that keeps its contract
        It is cloned, never changed.
    X, y : a stream, optional
        Where the kernel compares objects that are not vectors, a few dozen of them with their labels.

    Examples
    --------
    >>> from gristmill import Gaussian, checks, perceptron
    >>> model = perceptron(Gaussian(1.0))
    >>> kept = 0
    >>> for check in checks.yield_checks(model):
    ...     check(model)
    ...     kept += 1
    >>> kept
    14
    """
    checks: list[Callable[[Case], None]] = [*(_POINTS if stores_points(estimator) else ()), *_ALWAYS]
    if is_native(estimator):
        checks += [check_dense_and_sparse_agree, check_single_precision]
    if _is_bounded(budget_of(estimator)):
        checks.append(check_memory_is_bounded)
    for check in checks:
        yield update_wrapper(partial(_on_all_cases, check, X, y), check)
