"""Pictures of runs, probabilities, races, relevance and additive curves, one class each, drawn by matplotlib.

Imported by `evaluate` and reports. Begin with `runs.py`, which holds what all displays share.
"""
