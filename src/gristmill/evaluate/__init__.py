"""Evaluation on a stream: prequential runs, comparisons, their tables and pictures."""

from .result import Comparison, Result
from .run import compare, prequential

__all__ = ["Comparison", "Result", "compare", "prequential"]
