"""Promise 8: copies and files hold the whole model."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..budgets import Budget
from ..persist.model_file import load
from ..rules import Rule
from .cases import Case, CheckError, budget_of, is_native, require, snapshot


def check_copies_are_independent(case: Case) -> None:
    """A clone is unfitted; what a pickled, copied or deep-copied model learns, the original does not."""
    model = case.fitted()
    require(not hasattr(clone(model), "n_seen_"), "a clone is unfitted")
    before = snapshot(model)
    copies: list[Callable[[Any], Any]] = [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy]
    for make in copies:
        other = make(model)
        require(snapshot(other) == before, "a copy is the same model")
        case.learn(other, slice(None))
        require(snapshot(model) == before, "what a copy learns, the original does not")


def through_file(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return load(path)


def can_be_saved(model: Any) -> bool:
    parts = isinstance(model.rule, Rule | None) and isinstance(budget_of(model), Budget | None)
    return parts and is_native(model)


def check_files_hold_the_whole_model(case: Case) -> None:
    """save and load give the same model bit for bit; Python code is refused and nothing is written."""
    model = case.fitted()
    if can_be_saved(model):
        other = through_file(model)
        require(type(other) is type(model), "a file brings back the same class")
        require(snapshot(other) == snapshot(model), "a file brings back the same model")
        require(
            np.array_equal(other.decision_function(case.X), model.decision_function(case.X)),
            "a loaded model says the same",
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        try:
            model.save(path)
        except TypeError as error:
            require("pickle" in str(error), "the refusal to save Python code says what would work")
        else:
            raise CheckError("a model with Python code is not saved")
        require(not any(Path(folder).iterdir()), "a refused save leaves nothing behind")
