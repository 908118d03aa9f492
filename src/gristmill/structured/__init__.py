"""`StructuredLearner`: kernel learning of labels with structure, such as sequences, with a search that the user supplies.

Imports `_base`, kernels, rules and budgets. Begin with `learner.py`, then `hypothesis.py`.
"""

from .learner import StructuredLearner

__all__ = ["StructuredLearner"]
