"""A fitted map as part of a model file: its parameters as plain values, its numbers under names of their own."""

from __future__ import annotations

from typing import Any

from .. import persist
from .._common.types import Fields, Fitted, State
from .maclaurin import RandomMaclaurin

_PREFIX = "map."


def map_to_file(map_: object) -> tuple[State, Fitted]:
    """Arrays and plain values of a map; one that is not ours is code, and is refused."""
    if type(map_) is not RandomMaclaurin:
        raise TypeError(f"the map {map_!r} is Python code, and a model file holds no code; pickle the model instead")
    arrays, fitted = map_.saved_fields()
    text = {"parameters": persist.encode_parameters(map_), "fitted": fitted}
    return {f"{_PREFIX}{name}": value for name, value in arrays.items()}, text


def map_from_file(arrays: Fields, text: dict[str, Any]) -> RandomMaclaurin:
    """Back from `map_to_file`; takes the map's arrays out of the others."""
    map_ = RandomMaclaurin(**{key: persist.decode(value) for key, value in text["parameters"].items()})
    names = [name for name in arrays if name.startswith(_PREFIX)]
    map_.restore_fields({name.removeprefix(_PREFIX): arrays.pop(name) for name in names}, text["fitted"])
    return map_
