"""Evaluation on a stream: prequential runs, comparisons, search, tables, pictures and reports."""

from .displays.additive import AdditiveDisplay
from .displays.answers import ExplanationDisplay, IntervalDisplay, ReliabilityDisplay
from .displays.race import RaceDisplay
from .displays.relevance import RelevanceDisplay
from .displays.runs import BudgetDisplay, NoveltyDisplay, PrequentialDisplay, SupportDisplay
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
    "compare",
    "prequential",
    "search",
]
