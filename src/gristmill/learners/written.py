"""The shortest text of a learner or part; `notation.parse` reads it back."""

from __future__ import annotations

import dataclasses
import inspect

from ..kernels import Kernel


def written(value: object) -> str:
    """The shortest text of a learner or part that `parse` reads back: parameters that have their defaults are left out.

    Examples
    --------
    >>> from gristmill import KernelClassifier, Laplacian, Merge, PassiveAggressive, Prepared
    >>> from gristmill.notation import written
    >>> model = KernelClassifier(Laplacian(0.5), PassiveAggressive(C=0.1, variant=1), Merge(300))
    >>> print(written(Prepared(model, scale="relevance")))
    Prepared(KernelClassifier(Laplacian(gamma=0.5), PassiveAggressive(C=0.1), Merge(size=300)), scale='relevance')
    >>> len(written(model))
    81
    """
    if is_kernel(value) or not (dataclasses.is_dataclass(value) or hasattr(value, "get_params")):
        return " ".join(repr(value).split())
    text, skipped = [], False
    for name, parameter in inspect.signature(type(value)).parameters.items():
        found = getattr(value, name)
        if _is_default(found, value, name, parameter):
            skipped = True
        else:
            is_part = dataclasses.is_dataclass(found) or hasattr(found, "get_params")
            text.append(written(found) if is_part and not skipped else f"{name}={written(found)}")
    return f"{type(value).__name__}({', '.join(text)})"


def _is_default(found: object, owner: object, name: str, parameter: inspect.Parameter) -> bool:
    default = parameter.default
    if dataclasses.is_dataclass(owner):
        field = next(one for one in dataclasses.fields(owner) if one.name == name)
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
    return type(found) is type(default) and bool(found == default)


def is_kernel(value: object) -> bool:
    return isinstance(value, Kernel)
