"""The base of every estimator that a model file may name: parameters inside parameters, `save` and `to_bytes`."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from .._common.params import all_params, changed_text, described, replaced, same, split
from .._common.types import Options
from . import model_file


class StoredEstimator(BaseEstimator):
    """An estimator whose parts have parameters of their own, and that becomes a file by `saved_fields` and `restore_fields`.

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
    _changed: Options | None = None

    def _has_begun(self) -> bool:
        """Whether something is learned, and can go on, that a change of parameters would not reach."""
        return hasattr(self, "partial_fit") and bool(self.__sklearn_is_fitted__())

    def get_params(self, deep: bool = True) -> Options:
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

    def set_params(self, **params: object) -> Self:
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
            value = own[key] if key in own else known[key]
            if hasattr(value, "set_params"):
                estimators[key] = value
            else:
                own[key] = replaced(value, key, changes)
        before = {**known, **{key: all_params(value) for key, value in estimators.items()}}
        for key, estimator in estimators.items():
            estimator.set_params(**inside[key])
        for key, value in own.items():
            setattr(self, key, value)
        if self._has_begun():
            now = self.get_params(deep=False)
            self._note(
                {key: (before[key], all_params(now[key]) if key in estimators else now[key]) for key in (*own, *inside)}
            )
        return self

    def _note(self, changes: dict[str, tuple[object, object]]) -> None:
        noted = dict(self._changed or {})
        for key, (before, now) in changes.items():
            runs_with = noted.pop(key, before)
            if key not in self._at_any_time and not same(runs_with, now):
                noted[key] = runs_with
        self.__dict__.pop("_changed", None)
        if noted:
            self._changed = noted

    def refuse_changed_parameters(self, verb: str) -> None:
        """Raise where the parameters are no longer those of the run."""
        if self._changed:
            what = ", ".join(changed_text(key, old, getattr(self, key)) for key, old in self._changed.items())
            raise ValueError(
                f"{type(self).__name__}: parameters were changed in mid-stream ({what}), and {verb} would ignore that; "
                "call fit to learn from the beginning, or set them back"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that holds numbers and parameters, and no code; see `gristmill.load`."""
        model_file.save(self, path)

    def to_bytes(self) -> bytes:
        """What `save` would write, as bytes; see `gristmill.from_bytes`."""
        return model_file.to_bytes(self)
