"""Learners and their parts written as text, as in Python: `passive_aggressive(Gaussian(0.01), C=0.3,
size=300)`.

Only names of gristmill, numbers, strings, lists, `+` and `*` are understood; nothing is executed.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .learners.written import is_kernel, written

__all__ = ["NotationError", "catalogue_names", "parse", "vocabulary", "written"]


#: parameters that a text may leave out, each with what finds its value
_Defaults = dict[str, Callable[[], Any]]


class NotationError(ValueError):
    """The text does not describe a learner; the message names the place and what would work."""


def vocabulary() -> dict[str, Any]:
    """Every name that may be called: the parts that a model file may name, the learners, and the catalogue."""
    from . import catalogue, persist
    from ._base.estimator import StreamEstimator
    from .features import FeatureLearner
    from .race.race import Race

    words: dict[str, Any] = {**persist.parts(), "FeatureLearner": FeatureLearner, "Race": Race}
    for name in persist.ESTIMATORS:
        found = persist.estimator(name)
        if issubclass(found, StreamEstimator) or hasattr(found, "transform"):
            words[name] = found
    return {**words, **{name: getattr(catalogue, name) for name in catalogue_names()}}


def catalogue_names() -> list[str]:
    """The published algorithms."""
    from . import catalogue

    return list(catalogue.__all__)


def parse(
    text: str, kernel: object = None, seed: int | None = None, find_kernel: Callable[[], object] | None = None
) -> Any:
    """The learner or part that a text describes.

    Parameters
    ----------
    text : str
        A call such as `norma_novelty(nu=0.1, rate=0.01, size=200)`; a bare name is a call without arguments.
    kernel : kernel, optional
        For learners that are given none in the text.
    seed : int, optional
        `random_state` for learners that take one and are given none.
    find_kernel : callable, optional
        Called for a kernel where a learner needs one, in place of `kernel`.

    Examples
    --------
    >>> from gristmill.notation import parse
    >>> parse("0.5 * Gaussian(0.1) + Linear()")([1.0], [1.0])
    1.5
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise NotationError(f"{text!r}: {error.msg} at column {error.offset}") from None
    words = vocabulary()
    if isinstance(tree, ast.Name):
        tree = ast.Call(func=tree, args=[], keywords=[])
    defaults: _Defaults = {}
    if find_kernel is not None or kernel is not None:
        defaults["kernel"] = find_kernel or (lambda: kernel)
    if seed is not None:
        defaults["random_state"] = lambda: seed
    try:
        return _value(tree, words, text, defaults)
    except (TypeError, ValueError) as error:
        if isinstance(error, NotationError):
            raise
        raise NotationError(f"{text!r}: {error}") from error


def _value(node: ast.expr, words: dict[str, Any], text: str, defaults: _Defaults) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | bool | type(None)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, words, text, {})
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, words, text, {}) for item in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = (_value(side, words, text, {}) for side in (node.left, node.right))
        return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, words, text, defaults)
    part = ast.get_source_segment(text.strip(), node) or text
    raise NotationError(f"{text!r}: {part!r} is not understood: use names of gristmill, numbers, + and *")


def _call(node: ast.Call, words: dict[str, Any], text: str, defaults: _Defaults) -> Any:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name not in words:
        near = difflib.get_close_matches(name, words, n=1, cutoff=0.85) or difflib.get_close_matches(
            name, words, n=3, cutoff=0.4
        )
        nearest = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise NotationError(f"{text!r}: there is no {name!r}; {nearest}`gristmill learners` lists all names")
    made = words[name]
    arguments = [_value(item, words, text, {}) for item in node.args]
    named = {str(k.arg): _value(k.value, words, text, {}) for k in node.keywords}
    parameters = inspect.signature(made).parameters
    if arguments and not is_kernel(arguments[0]) and "kernel" in defaults and "kernel" in parameters:
        arguments.insert(0, defaults["kernel"]())  # `forgetron(100)`: the kernel is given elsewhere
    for key, value in defaults.items():
        taken = list(parameters)[: len(arguments)]
        if key in parameters and key not in named and key not in taken:
            named[key] = value()
    _check_names(name, parameters, len(arguments), named)
    return made(*arguments, **named)


def _check_names(name: str, parameters: Mapping[str, inspect.Parameter], given: int, named: Collection[str]) -> None:
    """Raise an error for a parameter that does not exist, and for one without a value."""
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters.values()):
        return
    unknown = next((key for key in named if key not in parameters), None)
    if unknown is not None:
        raise NotationError(f"{name}: there is no parameter {unknown!r}; there are {', '.join(parameters)}")
    missing = [
        key
        for key in list(parameters)[given:]
        if key not in named and parameters[key].default is inspect.Parameter.empty
    ]
    if missing:
        raise NotationError(
            f"{name} needs {' and '.join(missing)}: {name}({', '.join(f'{key}=...' for key in missing)})"
        )
