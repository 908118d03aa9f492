"""`StructuredLearner`: kernel learning of labels with structure, such as sequences, with a search that the user supplies.

Hypothesis, kernel rows and steps are in the core (`core/structured`); the search is Python. Imports `_base`, kernels, rules
and budgets. Begin with `learner.py`, then `core.py`.
"""

from .learner import StructuredLearner
from .sequences import Sequences, viterbi

__all__ = ["Sequences", "StructuredLearner", "viterbi"]
