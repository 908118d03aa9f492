"""Detect parameters that were changed after learning began, by whatever means."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

from .params import same


class _Level(NamedTuple):
    """An estimator, and its parameters as they were: objects are compared, because this is asked with every event."""

    name: str  # what comes before the names of its parameters
    estimator: Any  # None for the owner itself, to avoid a reference cycle
    names: tuple[str, ...]
    look: Any
    values: tuple[Any, ...]


class FrozenParams:
    """Parameters of an estimator, and those of estimators inside them, as they were when it began.

    `set_params`, an assignment, and a change of a learner that is itself a parameter are all seen. A look costs about a
    microsecond.

    Parameters
    ----------
    owner : estimator
    names : names of its parameters that cannot change in mid-stream
    """

    def __init__(self, owner: object, names: tuple[str, ...]) -> None:
        self._names = names
        self._levels = list(_levels("", owner, names))

    def refuse_changed(self, owner: object) -> None:
        """Raise if a parameter differs from the one that the model learned with."""
        for _, estimator, _, look, values in self._levels:
            if not all(map(operator.is_, look(owner if estimator is None else estimator), values)):
                break
        else:
            return
        now = list(_levels("", owner, self._names))
        for old, new in zip(self._levels, now, strict=False):
            for name, was, value in zip(old.names, old.values, new.values, strict=False):
                if not (type(was) is type(value) if isinstance(was, BaseEstimator) else same(was, value)):
                    raise ValueError(
                        f"{type(owner).__name__}: {old.name}{name} was {was!r} when it began to learn and is now "
                        f"{value!r}; what is learned cannot change to it: sklearn.base.clone gives an unfitted copy "
                        "with it, or set it back"
                    )
        self._levels = now  # others that mean the same


def _levels(name: str, estimator: object, names: tuple[str, ...]) -> Iterator[_Level]:
    look = operator.attrgetter("__class__", *names)  # of two names at least, it gives a tuple
    if not names:
        return
    values = look(estimator)
    yield _Level(name, estimator if name else None, ("", *names), look, values)
    for inner, value in zip(names, values[1:], strict=True):
        if isinstance(value, BaseEstimator):
            yield from _levels(f"{name}{inner}__", value, tuple(type(value)._get_param_names()))
