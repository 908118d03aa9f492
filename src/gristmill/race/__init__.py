"""Races: several learners run side by side and are mixed sample by sample; learners without settings (`Auto*`).

Imports `prepared` and `learners`. Begin with `auto.py` (the list of experts), then `race.py` and `core.py`.
"""

from .race import Race, RaceClassifier, RaceRegressor

__all__ = ["Race", "RaceClassifier", "RaceRegressor"]
