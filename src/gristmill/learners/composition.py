"""Which parts go together; a combination that makes no sense is refused by name, saying what would work."""

from __future__ import annotations

import warnings

import numpy as np

from .._common.types import Table
from ..budgets import Budget, DropSmallest, Project, Window
from ..kernels import Kernel
from ..rules import Adatron, Density, MarginProjection, Rule, StepSizeAdaptation
from .additive import is_additive


def check_composition(rule: object, budget: object, average: bool) -> None:
    """Refuse rules, budgets and averages that have no meaning together."""
    if isinstance(rule, MarginProjection) and not isinstance(budget, Project):
        raise ValueError(
            f"MarginProjection sizes its steps by the projection that Project makes; use budget=Project(...), got {budget!r}"
        )
    if isinstance(budget, Budget) and budget.rules and type(rule).__name__ not in budget.rules:
        raise ValueError(f"{budget!r} works with {', '.join(budget.rules)}, not with {rule!r}")
    if isinstance(rule, Adatron) and (not isinstance(budget, Budget) or budget.evicts):
        raise ValueError(f"Adatron comes back to its points, and {budget!r} drops points; use budget=Unbounded()")
    if isinstance(rule, Density) and isinstance(budget, DropSmallest):
        raise ValueError(
            f"Density gives every event the same coefficient, and {budget!r} drops the smallest; "
            "use budget=Merge(...), DropRandom(..., uniform=True) or DropOldest(...)"
        )
    if average and isinstance(rule, Density) and rule.neighbours > 0:
        raise ValueError(f"{rule!r} measures by the neighbours of now, which have no average; use average=False")
    if average and (not isinstance(budget, Budget) or not budget.averages):
        raise ValueError(
            f"average=True needs every point that was ever stored, and {budget!r} drops points; "
            "use budget=Merge(...) or Project(...) for a bounded average, or Unbounded()"
        )


def one_number_of_passes(first: int, second: int) -> int:
    """The number of passes from two settings; 1 defers to the other."""
    if first != second and 1 not in (first, second):
        raise ValueError(f"passes are one setting, and here are two: {first!r} and {second!r}; give one of them")
    return max(int(first), int(second))


def check_passes(passes: int, kernel: object, rule: object, budget: object) -> None:
    """Refuse more than one pass where an event has a meaning only once."""
    if passes == 1:
        return
    if isinstance(budget, Window):
        raise ValueError(
            f"passes={passes}: {budget!r} forgets by age, and all of a batch is of one age; use DropOldest(...)"
        )
    if isinstance(rule, Density):
        raise ValueError(f"passes={passes}: Density counts every event once; use passes=1")
    if is_additive(kernel):
        raise ValueError(
            f"passes={passes}: the trees of {kernel!r} take an event once; use passes=1, or another kernel"
        )


def check_outputs(rule: object, budget: object, outputs: int) -> None:
    """Refuse more than two classes where only two have a meaning."""
    if outputs <= 1:
        return
    for part, instead in ((rule, "Perceptron() or PassiveAggressive()"), (budget, "DropRandom(...) or Project(...)")):
        if isinstance(part, Rule | Budget) and not part.multiclass:
            raise ValueError(f"{part!r} is defined for two classes only, got {outputs}; use {instead}")


def check_targets(rule: object, budget: object, targets: int) -> None:
    """Refuse several targets where a step of one would change the others."""
    instead = "use SGD, PassiveAggressive, Implicit or FeasibleSet(radius=None)"
    if not isinstance(rule, Rule):
        raise ValueError(f"{rule!r} is written in Python, and {targets} targets need one shrink for all; {instead}")
    if getattr(rule, "radius", None) is not None or isinstance(rule, StepSizeAdaptation):
        raise ValueError(
            f"the shrink or radius of {rule!r} depends on the event, and {targets} targets share it; {instead}"
        )
    if isinstance(budget, Budget) and not budget.multiclass:
        raise ValueError(
            f"{budget!r} is defined for one output only, got {targets} targets; use DropRandom(...) or Merge(...)"
        )


def warn_if_nothing_is_stored(kernel: Kernel, budget: object, X: Table, outputs: int) -> None:
    """A tolerance at or above the norm of every point projects all of them onto nothing."""
    if not isinstance(budget, Project):
        return
    largest = float(np.max(kernel.diagonal(X), initial=0.0)) * (2 if outputs > 1 else 1)
    if budget.tolerance >= np.sqrt(max(largest, 0.0)):
        warnings.warn(
            f"Project: tolerance={budget.tolerance!r} is not below the norm of any point of the first chunk "
            f"(at most {np.sqrt(max(largest, 0.0)):.6g}), so nothing is stored and every score stays 0; use a smaller one",
            UserWarning,
            stacklevel=4,
        )
