"""The level of each key: the running mean of its targets, and that of all keys for one that is new."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .persist import ModelFileError

Floats = npt.NDArray[np.float64]
#: of a key in a dict: its numbers, itself, and its place
_BYTES = 280
#: events for which the level of a key without events is kept, for each key that there is room for
_KEPT = 16


class Level(NamedTuple):
    """What is known of a key."""

    weight: float
    mean: float
    event: float  #: number of its last event
    time: float  #: of its last event, on the caller's clock

    def joined(self, weight: float, target: float) -> tuple[float, float]:
        """Weight and mean with one more target."""
        whole = self.weight + weight
        return (whole, self.mean + weight * (target - self.mean) / whole) if whole > 0 else (whole, self.mean)


class Told(NamedTuple):
    """Events as the learners are told them, and what becomes of the levels if they are learned."""

    before: Floats  #: the level of each event's key before it
    known: npt.NDArray[np.bool_]  #: whether the key had one
    changed: dict[Any, Level]
    total: Level


class Levels:
    """A running mean a key.

    Parameters
    ----------
    ttl : float
        A level whose last event is longer ago is forgotten, as its key's learner is.
    max_keys : int, optional
        Without room for every key, levels go too: after 16 times as many events. That is a rule of events, and not of
        who was dropped, so that chunks of any size give the same levels.
    """

    def __init__(self, ttl: float | None, max_keys: int | None) -> None:
        self._ttl = float("inf") if ttl is None else float(ttl)
        self._horizon = float("inf") if max_keys is None else float(_KEPT * max_keys)
        self._of: dict[Any, Level] = {}
        self.total = Level(0.0, 0.0, 0.0, 0.0)

    def __len__(self) -> int:
        return len(self._of)

    @property
    def nbytes(self) -> int:
        return _BYTES * len(self._of)

    def _is_past(self, level: Level, event: float, time: float) -> bool:
        return time - level.time > self._ttl or event - level.event > self._horizon

    def tell(self, keys: list[Any], targets: Floats, weights: Floats | None, times: Floats | None) -> Told:
        """The level before each event, one after the other; nothing is changed."""
        before, known = np.zeros(len(keys)), np.zeros(len(keys), dtype=bool)
        changed: dict[Any, Level] = {}
        total, fresh = self.total, Level(0.0, 0.0, 0.0, 0.0)
        clock = times.tolist() if times is not None else None
        heavy = weights.tolist() if weights is not None else None
        for row, (key, target) in enumerate(zip(keys, targets.tolist(), strict=True)):
            event = total.event + 1
            time = event if clock is None else clock[row]
            level = changed.get(key) or self._of.get(key) or fresh
            if level.weight > 0 and self._is_past(level, event, time):
                level = fresh
            known[row] = level.weight > 0
            before[row] = level.mean if known[row] else total.mean
            weight = 1.0 if heavy is None else heavy[row]
            changed[key] = Level(*level.joined(weight, target), event, time)
            total = Level(*total.joined(weight, target), event, time)
        return Told(before, known, changed, total)

    def keep(self, told: Told) -> None:
        """The events were learned."""
        for key, level in told.changed.items():
            self._of[key] = level
        self.total = told.total
        if np.isfinite(self._horizon) and len(self._of) > self._horizon:
            least = self.total.event - self._horizon
            self._of = {key: level for key, level in self._of.items() if level.event >= least}

    def of(self, keys: list[Any], times: Floats | None) -> Floats:
        """What is known now; the mean of all for a key that has no level."""
        found = np.full(len(keys), self.total.mean)
        for row, key in enumerate(keys):
            level = self._of.get(key)
            if level is None or level.weight == 0:
                continue
            time = self.total.time if times is None else float(times[row])
            if not self._is_past(level, self.total.event, time):
                found[row] = level.mean
        return found

    def forget(self, keys: list[Any]) -> None:
        for key in keys:
            self._of.pop(key, None)

    # ---- files ------------------------------------------------------------------------------------------------------

    def to_file(self, texts: bool) -> dict[str, Any]:
        """Keys, whole numbers or bytes, and a row of numbers each; the last row is of all."""
        keys = list(self._of)
        return {
            "levels.keys": np.frombuffer(b"".join(keys), np.uint8) if texts else np.array(keys, dtype=np.int64),
            "levels.lengths": np.array([len(key) for key in keys] if texts else [], dtype=np.int64),
            "levels.numbers": np.array([*self._of.values(), self.total], dtype=np.float64),
        }

    def from_file(self, arrays: dict[str, Any], texts: bool) -> None:
        """Back from `to_file`, whose arrays are taken out; what does not fit is refused."""
        keys, lengths, numbers = (arrays.pop(f"levels.{name}") for name in ("keys", "lengths", "numbers"))
        if texts:
            ends = np.cumsum(lengths)
            if (lengths < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(keys):
                raise ModelFileError("the keys of its levels are damaged")
            whole = keys.tobytes()
            names = [whole[end - size : end] for end, size in zip(ends.tolist(), lengths.tolist(), strict=True)]
        else:
            names = keys.tolist()
        if numbers.shape != (len(names) + 1, 4) or not np.isfinite(numbers).all() or (numbers[:, 0] < 0).any():
            raise ModelFileError("its levels are damaged")
        if len(set(names)) != len(names):
            raise ModelFileError("the keys of its levels are not distinct")
        rows = [Level(*row) for row in numbers.tolist()]
        self._of, self.total = dict(zip(names, rows[:-1], strict=True)), rows[-1]
