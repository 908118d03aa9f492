"""Kernel learners: KernelClassifier, KernelRegressor, KernelNovelty, which kernel, rule and budget fit, explanations.

Imports kernels, rules, budgets and `_base`; prepared learners, races and fleets are built on it. Begin with `kernel.py`.
"""

from .kernel import KernelClassifier, KernelNovelty, KernelRegressor

__all__ = ["KernelClassifier", "KernelNovelty", "KernelRegressor"]
