"""Evaluation on a stream: test-then-train runs, metrics, comparisons, search, reports; pictures in `displays/`.

Imports every learner below it; the command line and the cluster use it. Begin with `run.py`, then `follower.py`.
"""

from .displays.additive import AdditiveDisplay
from .displays.answers import ExplanationDisplay, IntervalDisplay, ReliabilityDisplay
from .displays.race import RaceDisplay
from .displays.relevance import RelevanceDisplay
from .displays.runs import BudgetDisplay, NoveltyDisplay, PrequentialDisplay, SupportDisplay
from .metrics import Threshold, threshold
from .report import Report
from .result import Comparison, Result
from .run import compare, prequential
from .search import SearchResult, search

__all__ = [
    "AdditiveDisplay",
    "BudgetDisplay",
    "Comparison",
    "ExplanationDisplay",
    "IntervalDisplay",
    "NoveltyDisplay",
    "PrequentialDisplay",
    "RaceDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "Report",
    "Result",
    "SearchResult",
    "SupportDisplay",
    "Threshold",
    "compare",
    "prequential",
    "search",
    "threshold",
]
