"""Parameters of parts by name, `kernel__gamma` or `rule__loss__margin`, and how messages show a change in mid-stream.

Parts are frozen values, so a change of one of their parameters puts a new part in its place.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .._common.types import Options
from .ranges import Checked


def is_part(value: object) -> bool:
    return isinstance(value, Checked) and dataclasses.is_dataclass(value)


def fields_of(part: Any) -> dict[str, object]:
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


def described(name: str, value: object) -> dict[str, object]:
    """The parameters inside a value, under their full names."""
    found: dict[str, Any] = {}
    if is_part(value):
        for field, inner in fields_of(value).items():
            found[f"{name}__{field}"] = inner
            found |= described(f"{name}__{field}", inner)
    return found


def replaced(part: Any, name: str, changes: dict[str, object]) -> Any:
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


def split(params: dict[str, object]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters of one's own, and by name those of the parts."""
    own: Options = {}
    inside: dict[str, dict[str, object]] = {}
    for key, value in params.items():
        name, deeper, rest = key.partition("__")
        if deeper:
            inside.setdefault(name, {})[rest] = value
        else:
            own[name] = value
    return own, inside


def same(a: object, b: object) -> bool:
    """Whether two parameters mean the same; where they cannot be compared, only if they are one object."""
    try:
        return a is b or (type(a) is type(b) and bool(a == b))
    except (TypeError, ValueError):
        return False


def changed_text(name: str, old: object, now: object) -> str:
    """What a parameter was and is, for a message; those of an estimator by their full names."""
    if hasattr(now, "get_params") and isinstance(old, dict):
        fresh = all_params(now)
        changed = [key for key in fresh if key not in old or not same(old[key], fresh[key])]
        return ", ".join(f"{name}__{key} was {old.get(key)!r} and is now {fresh[key]!r}" for key in changed)
    return f"{name} was {old!r} and is now {now!r}"


def all_params(estimator: object) -> Any:
    """All parameters of an estimator, which set_params changes in place."""
    return (
        {"class": type(estimator), **estimator.get_params(deep=True)} if hasattr(estimator, "get_params") else estimator
    )
