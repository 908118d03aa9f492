"""The published algorithms: one short function each, which returns a learner with its kernel, rule and budget.

Imports `learners`, rules and budgets. Begin with `perceptrons.py`; `_compose.py` is shared by all.
"""

from .aggressive import passive_aggressive, passive_aggressive_regressor
from .implicit import ilk_classifier, ilk_novelty, ilk_regressor
from .norma import norma_classifier, norma_novelty, norma_regressor, svmd
from .perceptrons import (
    adatron,
    alma,
    forgetron,
    perceptron,
    projectron,
    projectron_pp,
    random_budget_perceptron,
    romma,
)
from .projection import projection_classifier, projection_regressor

__all__ = [
    "adatron",
    "alma",
    "forgetron",
    "ilk_classifier",
    "ilk_novelty",
    "ilk_regressor",
    "norma_classifier",
    "norma_novelty",
    "norma_regressor",
    "passive_aggressive",
    "passive_aggressive_regressor",
    "perceptron",
    "projection_classifier",
    "projection_regressor",
    "projectron",
    "projectron_pp",
    "random_budget_perceptron",
    "romma",
    "svmd",
]
