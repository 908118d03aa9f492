"""The catalogue: each published algorithm is one short function that composes kernel, rule and budget."""

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
