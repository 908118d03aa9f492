"""Helpers that every part of the package may import: parameter ranges, inputs, labels, parameters, seeds, threads, times.

Nothing here imports another folder of the package. Begin with `ranges.py` (checked parameters) and `inputs.py` (X as rows).
"""
