"""Empirical-Bayes mean of the targets of each key, shrunk towards the mean of all keys."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.types import Fields
from ..persist.model_file import ModelFileError
from .keys import KeyKind, Keys
from .saved_keys import keys_as_arrays, keys_from_arrays

Floats = npt.NDArray[np.float64]
#: of a key in a dict: its numbers, itself, and its place
_BYTES = 280
#: events for which the level of a key without events is kept, for each key that may be stored
_KEPT = 16


class KeyMean(NamedTuple):
    """Running statistics of one key."""

    weight: float
    mean: float
    event: float  #: number of its last event
    time: float  #: of its last event, on the caller's clock


class GlobalMean(NamedTuple):
    """Running statistics over all keys: total variance and variance within keys."""

    weight: float = 0.0
    mean: float = 0.0
    event: float = 0.0
    time: float = 0.0
    squares: float = 0.0  #: of targets less their mean
    within: float = 0.0  #: the same less the mean of their key
    keys: float = 0.0  #: that began; one that was forgotten and came again is two
    pairs: float = 0.0  #: sum of the squared weights of the keys

    def apart(self) -> tuple[float, float]:
        """Variance between keys and within them, as an analysis of variance has it; (1, 0) before there are two keys."""
        others = self.weight - self.pairs / self.weight if self.weight > self.keys > 1 else 0.0
        if not others > 0:  # also where one key has all the weight that a double can tell
            return 1.0, 0.0
        within = self.within / (self.weight - self.keys)
        rest = self.squares - self.within - (self.keys - 1) * within
        return max(rest / others, 0.0), within

    def latest(self, time: float) -> float:
        """The later of two times: the clock never runs backwards."""
        return max(time, self.time) if self.event > 0 else time

    def level(self, key: KeyMean, apart: tuple[float, float]) -> float:
        """Shrunken mean of a key: shrinkage grows as keys differ less and as the key has fewer samples."""
        between, within = apart
        sure = key.weight * between
        return self.mean + (key.mean - self.mean) * (sure / (sure + within) if sure + within > 0 else 1.0)


class Means(NamedTuple):
    """The means before each event of a chunk, and those after it."""

    level: Floats  #: of each event's key before it
    known: npt.NDArray[np.bool_]  #: whether the key had one
    changed: dict[Any, KeyMean]
    whole: GlobalMean


class KeyMeans:
    """Shrunken running mean per key."""

    def __init__(self) -> None:
        self._ttl = self._horizon = math.inf
        self._of: dict[Any, KeyMean] = {}
        self.whole = GlobalMean()

    def configure(self, ttl: float, max_keys: int | None) -> None:
        """Expire means whose last sample is older than `ttl`, as the learners of their keys.

        With `max_keys`, a mean is also dropped after 16 times `max_keys` events without its key. This counts events, not
        evictions, so that chunks of any size give the same means.
        """
        self._ttl = ttl
        self._horizon = math.inf if max_keys is None else float(_KEPT * max_keys)

    def __len__(self) -> int:
        return len(self._of)

    @property
    def nbytes(self) -> int:
        return _BYTES * len(self._of)

    def _is_past(self, level: KeyMean, event: float, time: float) -> bool:
        return time - level.time > self._ttl or event - level.event > self._horizon

    def before(self, rows: Keys, targets: Floats, weights: Floats | None, times: Floats | None) -> Means:
        """Mean of each sample's key before the sample, in order; changes nothing."""
        keys = _listed(rows)
        before, known = np.zeros(len(keys)), np.zeros(len(keys), dtype=bool)
        changed: dict[Any, KeyMean] = {}
        whole, fresh = self.whole, KeyMean(0.0, 0.0, 0.0, 0.0)
        clock = times.tolist() if times is not None else None
        heavy = weights.tolist() if weights is not None else None
        for row, (key, target) in enumerate(zip(keys, targets.tolist(), strict=True)):
            event = whole.event + 1
            time = event if clock is None else whole.latest(clock[row])
            level = changed.get(key) or self._of.get(key) or fresh
            if level.weight > 0 and self._is_past(level, event, time):
                level = fresh
            known[row] = level.weight > 0
            before[row] = whole.level(level, whole.apart()) if known[row] else whole.mean
            weight = 1.0 if heavy is None else heavy[row]
            changed[key], whole = _joined(level, whole, weight, target, event, time)
        return Means(before, known, changed, whole)

    def keep(self, found: Means) -> None:
        """Commit the means of a chunk that was learned."""
        self._of.update(found.changed)
        self.whole = found.whole
        if np.isfinite(self._horizon) and len(self._of) > self._horizon:
            least = self.whole.event - self._horizon
            self._of = {key: level for key, level in self._of.items() if level.event >= least}

    def of(self, rows: Keys, times: Floats | None) -> Floats:
        """Present means; the global mean for an unknown key."""
        keys, whole, apart = _listed(rows), self.whole, self.whole.apart()
        found = np.full(len(keys), whole.mean)
        for row, key in enumerate(keys):
            level = self._of.get(key)
            if level is None or level.weight == 0:
                continue
            time = whole.time if times is None else whole.latest(float(times[row]))
            if not self._is_past(level, whole.event, time):
                found[row] = whole.level(level, apart)
        return found

    def forget(self, rows: Keys) -> None:
        for key in _listed(rows):
            self._of.pop(key, None)

    # ---- files ------------------------------------------------------------------------------------------------------

    def to_file(self, kind: KeyKind) -> dict[str, Any]:
        """Keys, a row of numbers each, and the numbers of all."""
        names = list(self._of)
        keys, lengths = keys_as_arrays(np.array(names, dtype=np.int64) if kind == "int" else names)
        return {
            "levels.keys": keys,
            "levels.lengths": lengths,
            "levels.numbers": np.array(list(self._of.values()), dtype=np.float64).reshape(-1, 4),
            "levels.whole": np.array(self.whole, dtype=np.float64),
        }

    def from_file(self, arrays: Fields, kind: KeyKind) -> None:
        """Back from `to_file`, whose arrays are taken out; what does not fit is refused."""
        names = ("keys", "lengths", "numbers", "whole")
        keys, lengths, numbers, whole = (arrays.pop(f"levels.{name}") for name in names)
        if not all(part.dtype == np.float64 and np.isfinite(part).all() for part in (numbers, whole)):
            raise ModelFileError("its levels hold what is not a finite number")
        found = _listed(keys_from_arrays(kind, keys, lengths))
        if numbers.shape != (len(found), 4) or whole.shape != (8,) or (numbers[:, 0] < 0).any() or whole[0] < 0:
            raise ModelFileError("its levels are damaged")
        self._of = {key: KeyMean(*row) for key, row in zip(found, numbers.tolist(), strict=True)}
        self.whole = GlobalMean(*whole.tolist())


def _listed(rows: Keys) -> list[Any]:
    """Keys as plain values."""
    return rows if isinstance(rows, list) else list(rows.tolist())


def _joined(
    level: KeyMean, whole: GlobalMean, weight: float, target: float, event: float, time: float
) -> tuple[KeyMean, GlobalMean]:
    """A key and all keys with one more target; sums of squares by Welford's rule, which cancels nothing."""
    if weight == 0:
        return level._replace(event=event, time=time), whole._replace(event=event, time=time)
    own, of_all = level.weight + weight, whole.weight + weight
    step, leap = target - level.mean, target - whole.mean
    mean, centre = level.mean + weight * step / own, whole.mean + weight * leap / of_all
    began = level.weight == 0
    return KeyMean(own, mean, event, time), GlobalMean(
        of_all,
        centre,
        event,
        time,
        whole.squares + weight * leap * (target - centre),
        whole.within + (0.0 if began else weight * step * (target - mean)),
        whole.keys + began,
        whole.pairs + own * own - level.weight * level.weight,
    )
