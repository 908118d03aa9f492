"""Base classes of all learners: the estimator and its transaction, tasks (labels to numbers, scores to answers), faces.

Imports `persist` and `_common`; every learner of the package is built on it. Begin with `estimator.py`.
"""
