"""Solvers of the landmark learners: linear models, Newton steps for hinge losses, greedy selection, boosting.

Imported by the estimators of `similarity`. Begin with `linear.py`.
"""
