"""Base classes of all learners: the estimator and its transaction, predictors per task, prediction intervals.

Imports `persist` and `_common`; every learner of the package is built on it. Begin with `estimator.py`.
"""
