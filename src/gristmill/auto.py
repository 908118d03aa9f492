"""Learners that need no settings: a race of compositions over kernel, width, rate, scaling and memory."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from . import _expert_sets
from ._answers import Classifying, Measuring
from ._stream import Scores
from ._validate import bytes_in, is_whole
from .race import Racing, _task_of_all


class Auto(Racing):
    """Base of the learners without settings."""

    memory: Any
    experts: Any

    def _memory(self) -> int:
        name = type(self).__name__
        if is_whole(self.memory) and self.memory > 0:
            return int(self.memory)
        if not isinstance(self.memory, str):
            raise ValueError(f"{name}: memory must be bytes or words such as '1 MB', got {self.memory!r}")
        try:
            return bytes_in(self.memory)
        except ValueError as error:
            raise ValueError(f"{name}: memory must be bytes or words such as '1 MB': {error}") from error

    def _parts(self) -> Any:
        if self.experts is not None and (task := _task_of_all(type(self).__name__, self.experts)) != self._task_name:
            raise ValueError(f"{type(self).__name__} is for {self._task_name}; these experts are for {task}")
        return super()._parts()


class AutoClassifier(ClassifierMixin, Auto, Classifying):
    """A classifier that needs no settings: one pass, bounded memory, columns in any units.

    Inside, experts race: kernels of several widths and families, rates, columns with and without learned weights, memories
    for what lasts and for what changes, and the trivial ones (most frequent class, same as before). Each event is predicted
    by a mixture whose weights follow the losses. All begin with a small part of the memory; at positions of the stream that
    double, room goes from those that lose to those that lead.

    Parameters
    ----------
    memory : int or str, default="1 MB"
        Bytes that the model may take, everything counted; in words, or as a number.
    random_state : int, Generator, RandomState or None
        Nothing is drawn with the experts that it comes with.
    experts : list of learners, optional
        In place of its own; their budgets must have a size, which is then set by the memory.

    Attributes
    ----------
    leader_ : learner
        A copy of the expert with the largest weight: what to write down to have it alone.
    weights_, experts_ : the experts as they run, and the weight of each

    References
    ----------
    S. de Rooij, T. van Erven, P. Grunwald, W. Koolen, Follow the Leader If You Can, Hedge If You Must, JMLR 15, 2014.
    K. Jamieson, A. Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gristmill import AutoClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AutoClassifier()
    >>> scores = model.prequential(X, y)
    >>> print(f"{(scores.argmax(axis=1) != y).mean():.3f} wrong in {model.memory_bytes_ / 1e6:.1f} MB")
    0.039 wrong in 1.0 MB
    """

    _task_name = "classification"

    def __init__(self, memory: Any = "1 MB", random_state: Any = None, experts: Any = None) -> None:
        self.memory = memory
        self.random_state = random_state
        self.experts = experts

    def _made(self, width: int) -> list[Any]:
        return _expert_sets.for_classes(width) if self.experts is None else list(self.experts)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> AutoClassifier:
        """Go on learning from X, y, in order; `classes`, all labels that will ever come, is optional."""
        self._learn(X, y, classes=classes)
        return self

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Scores:
        """Learn as `partial_fit` does, and return what `decision_function` said of each event before."""
        return self._learn(X, y, want_scores=True, classes=classes)


class AutoRegressor(RegressorMixin, Auto, Measuring):
    """A regressor that needs no settings: one pass, bounded memory, columns and targets in any units.

    Experts race as in `AutoClassifier`; beside the kernels run straight lines, over the columns and over how they changed,
    and the trivial ones (mean so far, last value). The kernels are told targets that are centred and scaled on the way,
    measured anew at positions of the stream that double.

    Parameters
    ----------
    memory : int or str, default="1 MB"
        Bytes that the model may take, everything counted; in words, or as a number.
    random_state : int, Generator, RandomState or None
        Nothing is drawn with the experts that it comes with.
    experts : list of learners, optional
        In place of its own; their budgets must have a size, which is then set by the memory.

    Attributes
    ----------
    leader_ : learner
        A copy of the kernel learner with the largest weight, told targets less `target_centre_`, over `target_spread_`.
    weights_, experts_ : the experts as they run, and the weight of each

    References
    ----------
    S. de Rooij, T. van Erven, P. Grunwald, W. Koolen, Follow the Leader If You Can, Hedge If You Must, JMLR 15, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import AutoRegressor
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)) * [1.0, 1000.0, 0.001]
    >>> y = 50_000 + 100 * np.sin(2 * X[:, 0])
    >>> model = AutoRegressor()
    >>> said = model.prequential(X, y)
    >>> print(f"mean absolute error {np.abs(said - y)[1000:].mean():.0f}, of the mean {np.abs(y - y.mean()).mean():.0f}")
    mean absolute error 4, of the mean 65
    """

    _task_name = "regression"

    def __init__(self, memory: Any = "1 MB", random_state: Any = None, experts: Any = None) -> None:
        self.memory = memory
        self.random_state = random_state
        self.experts = experts

    def _made(self, width: int) -> list[Any]:
        return _expert_sets.for_numbers(width) if self.experts is None else list(self.experts)

    def decision_function(self, X: Any) -> Scores:
        """The same as `predict`."""
        return self.predict(X)

    @property
    def target_centre_(self) -> float:
        """What is taken off the targets before a kernel learner is told."""
        return float(self._engine.target.centre)

    @property
    def target_spread_(self) -> float:
        """What they are divided by then; 0 before it is known."""
        return float(self._engine.target.spread)
