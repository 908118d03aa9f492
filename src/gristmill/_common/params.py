"""Parameters of parts by name, `kernel__gamma` or `rule__loss__margin`, and what becomes of a change in mid-stream.

Parts are frozen values, so a change of one of their parameters puts a new part in its place.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from .ranges import Checked


def is_part(value: Any) -> bool:
    return isinstance(value, Checked) and dataclasses.is_dataclass(value)


def fields_of(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


def described(name: str, value: Any) -> dict[str, Any]:
    """The parameters inside a value, under their full names."""
    found: dict[str, Any] = {}
    if is_part(value):
        for field, inner in fields_of(value).items():
            found[f"{name}__{field}"] = inner
            found |= described(f"{name}__{field}", inner)
    return found


def replaced(part: Any, name: str, changes: dict[str, Any]) -> Any:
    """The part with some of its parameters changed; a name that it does not have is refused with those that it has."""
    if not is_part(part):
        hint = f"set {name} to a part first" if part is None else "it has none"
        raise ValueError(f"{name} is {part!r}, which has no parameter {next(iter(changes))!r}; {hint}")
    known = fields_of(part)
    fresh, inside = split(changes)
    for key in (*fresh, *inside):
        if key not in known:
            raise ValueError(
                f"Invalid parameter {key!r} for {name}={part!r}. Valid parameters are: {list(known) or 'none'}"
            )
    for key, inner in inside.items():
        fresh[key] = replaced(fresh.get(key, known[key]), f"{name}__{key}", inner)
    return dataclasses.replace(part, **fresh)


def split(params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters of one's own, and by name those of the parts."""
    own: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for key, value in params.items():
        name, deeper, rest = key.partition("__")
        if deeper:
            inside.setdefault(name, {})[rest] = value
        else:
            own[name] = value
    return own, inside


def same(a: Any, b: Any) -> bool:
    """Whether two parameters mean the same; where they cannot be compared, only if they are one object."""
    try:
        return a is b or (type(a) is type(b) and bool(a == b))
    except (TypeError, ValueError):
        return False


class NestedParameters(BaseEstimator):
    """An estimator whose parts have parameters of their own.

    Examples
    --------
    >>> from gristmill import Gaussian, Hinge, KernelClassifier, SGD
    >>> model = KernelClassifier(Gaussian(0.1), SGD(Hinge(margin=0.5)))
    >>> model.set_params(kernel__gamma=2.0, rule__loss__margin=1.5).kernel
    Gaussian(gamma=2.0)
    >>> model.get_params()["rule__loss__margin"]
    1.5
    """

    #: parameters that may change at any time: nothing that is learned depends on them
    _at_any_time: ClassVar[tuple[str, ...]] = ("n_jobs",)
    #: what was changed since the present run began, and what it runs with
    _changed: dict[str, Any] | None = None

    def _has_begun(self) -> bool:
        """Whether something is learned, and can go on, that a change of parameters would not reach."""
        return hasattr(self, "partial_fit") and bool(self.__sklearn_is_fitted__())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` adds those of the parts, such as `kernel__gamma`.

        Parameters
        ----------
        deep : bool, default=True
        """
        found: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name, value in super().get_params(deep=False).items():
                found |= described(name, value)
        return found

    def set_params(self, **params: Any) -> Self:
        """Change parameters, those of parts too: `set_params(kernel__gamma=0.1)`; all of them or none.

        What has been learned stays as it is, so in mid-stream the change is for the next `fit`: to go on learning
        with parameters that are not those of the run is refused, and so is saving.
        """
        known = self.get_params(deep=False)
        own, inside = split(params)
        for key in (*own, *inside):
            if key not in known:
                raise ValueError(
                    f"Invalid parameter {key!r} for estimator {self}. Valid parameters are: {list(known)}."
                )
        estimators = {}
        for key, changes in inside.items():
            value = own.get(key, known[key])
            if hasattr(value, "set_params"):
                estimators[key] = value
            else:
                own[key] = replaced(value, key, changes)
        before = {**known, **{key: _deep(value) for key, value in estimators.items()}}
        for key, estimator in estimators.items():
            estimator.set_params(**inside[key])
        for key, value in own.items():
            setattr(self, key, value)
        if self._has_begun():
            now = self.get_params(deep=False)
            self._note(
                {key: (before[key], _deep(now[key]) if key in estimators else now[key]) for key in (*own, *inside)}
            )
        return self

    def _note(self, changes: dict[str, tuple[Any, Any]]) -> None:
        noted = dict(self._changed or {})
        for key, (before, now) in changes.items():
            runs_with = noted.pop(key, before)
            if key not in self._at_any_time and not same(runs_with, now):
                noted[key] = runs_with
        self.__dict__.pop("_changed", None)
        if noted:
            self._changed = noted

    def _refuse_changed(self, verb: str) -> None:
        """Raise where the parameters are no longer those of the run."""
        if self._changed:
            what = ", ".join(_said(key, old, getattr(self, key)) for key, old in self._changed.items())
            raise ValueError(
                f"{type(self).__name__}: parameters were changed in mid-stream ({what}), and {verb} would ignore that; "
                "call fit to begin anew, or set them back"
            )


def _said(name: str, old: Any, now: Any) -> str:
    if hasattr(now, "get_params") and isinstance(old, dict):
        fresh = _deep(now)
        changed = [key for key in fresh if key not in old or not same(old[key], fresh[key])]
        return ", ".join(f"{name}__{key} was {old.get(key)!r} and is now {fresh[key]!r}" for key in changed)
    return f"{name} was {old!r} and is now {now!r}"


def _deep(estimator: Any) -> Any:
    """All parameters of an estimator, which set_params changes in place."""
    return (
        {"class": type(estimator), **estimator.get_params(deep=True)} if hasattr(estimator, "get_params") else estimator
    )
