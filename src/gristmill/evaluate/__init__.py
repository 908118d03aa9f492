"""Evaluation on a stream: prequential runs, comparisons, search, tables, pictures and reports."""

from .answer_displays import ExplanationDisplay, IntervalDisplay, ReliabilityDisplay
from .displays import BudgetDisplay, NoveltyDisplay, PrequentialDisplay, SupportDisplay
from .race_display import RaceDisplay
from .relevance_display import RelevanceDisplay
from .report import Report
from .result import Comparison, Result
from .run import compare, prequential
from .search import SearchResult, search

__all__ = [
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
