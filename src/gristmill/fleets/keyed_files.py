"""A keyed fleet in files and pickles: every key, in memory or spilled, one after the other."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from .. import persist
from ..streams.files.fixed_width import TableRows
from .eviction import EvictingFleet
from .keys import KeyKind
from .prior import UndoablePrior
from .spill import BATCH
from .spill_lock import TemporarySpill

#: free records between those of keys that are read back: more would ask for memory that the file does not explain
_SPARSE, _FEW = 64, 1024


class KeyedFiles(EvictingFleet):
    """What is written of a keyed fleet, and how it is read again."""

    prior_: Any = None
    _prior_run: UndoablePrior | None = None
    _timed: bool | None = None
    _first_seed: int

    def _begin(self, parts: Any, width: int, dtype: Any, seed: int, kind: KeyKind) -> Any:
        raise NotImplementedError

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self._settle()
        return self._looking(self._written)

    def _written(self) -> tuple[dict[str, Any], dict[str, Any]]:
        core = self._started()
        keys, arrays, hand, now, classes, dropped, _ = core.residents()
        others = self._others(core)
        hand = self._order(arrays, len(keys), len(others), hand)
        parts = [arrays]
        for first in range(0, len(others), BATCH):  # not all of them in memory at once
            some = others[first : first + BATCH]
            parts.append(core.members(some, self._found(core, some)))
        arrays = _joined(parts)
        texts = [] if self._kind == "int" else [*keys, *others]
        arrays["keys"] = (
            np.concatenate([keys, others]) if self._kind == "int" else np.frombuffer(b"".join(texts), dtype=np.uint8)
        )
        arrays["key_lengths"] = np.array([len(text) for text in texts], dtype=np.int64)
        names = self._table.names[:classes]  # another thread may bring more
        fitted = {
            "classes": classes,
            "seed": self._first_seed,
            "kind": self._kind,
            "timed": self._timed,
            "now": now,
            "hand": hand,
            "dropped": dropped,
            "expired": self._expired(core),
            **persist.encode_features(self),
            **({"labels": persist.encode_labels(names)} if names else {}),
        }
        columns = getattr(self, "columns_", None)
        if columns is not None:
            fitted |= {"columns": columns.to_json(), "key_column": self.key_column_}
        if self.prior_ is not None:
            numbers, fitted["prior"] = self.prior_._to_file()
            arrays |= {f"prior.{name}": array for name, array in numbers.items()}
        return arrays, fitted

    def _order(self, arrays: dict[str, Any], count: int, others: int, hand: int) -> int:
        """Store the slot order, which decides future CLOCK evictions; return the clock hand."""
        if self.max_keys is None:
            del arrays["slots"], arrays["touched"]
            return 0
        slots = arrays["slots"]
        if max(hand, slots[-1] if count else 0) >= _SPARSE * (count + others) + _FEW:
            hand = int(np.searchsorted(slots, hand))
            slots = np.arange(count, dtype=np.int64)
        arrays["slots"] = np.append(slots, np.full(others, -1, dtype=np.int64))
        arrays["touched"] = np.append(arrays["touched"], np.zeros(others, dtype=np.uint8))
        return hand

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        table = self._labels_from_file(fitted)
        if int(fitted["classes"]) != len(table):
            raise persist.ModelFileError("its classes do not fit its labels")
        if fitted["kind"] not in ("int", "str", "bytes"):
            raise persist.ModelFileError(f"its keys are of a kind {fitted['kind']!r}")
        if self.spill is not None:  # a path that stands in a file is not opened
            self.spill = TemporarySpill()
        persist.decode_features(self, fitted)
        prior = {name[6:]: arrays.pop(name) for name in list(arrays) if name.startswith("prior.")}
        self._kind, self._timed, self._first_seed = fitted["kind"], bool(fitted["timed"]), int(fitted["seed"])
        count = len(arrays["keys" if self._kind == "int" else "key_lengths"])
        persist.justify(max(1, count) * self._room_of_one(), arrays, "keys", 2**28)
        core = self._begin(self._parts(), self.n_features_in_, arrays["points"].dtype, self._first_seed, self._kind)
        core.add_classes(len(table))
        self._kept(core, lambda: self._members_from_file(core, arrays, fitted))
        if "prior" in fitted:
            self.prior_ = copy.deepcopy(self.prior)
            self.prior_._from_file(prior, fitted["prior"])
            self._prior_run = UndoablePrior(self.prior_)
        if "columns" in fitted:
            self.columns_, self.key_column_ = TableRows.from_json(fitted["columns"]), str(fitted["key_column"])
            if len(self.columns_.out_names) != self.n_features_in_:
                raise persist.ModelFileError("its columns do not fit its points")
        self._core_, self._table = core, table
        self._run_with()

    def _members_from_file(self, core: Any, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        keys, now = self._keys_from_file(arrays), float(fitted["now"])
        order = [arrays.pop(name, None) for name in ("slots", "touched")]
        last = np.ascontiguousarray(arrays.pop("last"), dtype=np.float64)
        if not math.isfinite(now) or not np.isfinite(last).all():
            raise persist.ModelFileError("its clock holds something else than finite numbers")
        core.set_now(now)
        if order[0] is None:  # no limit on keys: the order of slots decides nothing
            core.set_members(keys, arrays, last, [])
        else:
            core.restore(keys, arrays, last, *order, int(fitted["hand"]))
        core.set_counts(int(fitted["dropped"]), int(fitted["expired"]))

    def _keys_from_file(self, arrays: dict[str, Any]) -> Any:
        keys, lengths = arrays.pop("keys"), arrays.pop("key_lengths")
        if self._kind == "int":
            if len(np.unique(keys)) != len(keys) or keys.dtype != np.int64:
                raise persist.ModelFileError("its keys are not distinct whole numbers")
            return keys
        ends = np.cumsum(lengths)
        if (lengths < 0).any() or (len(ends) and ends[-1] != len(keys)):
            raise persist.ModelFileError("its keys are damaged")
        whole = keys.tobytes()
        texts = [whole[end - size : end] for end, size in zip(ends.tolist(), lengths.tolist(), strict=True)]
        if len(set(texts)) != len(texts):
            raise persist.ModelFileError("its keys are not distinct")
        return texts

    def __getstate__(self) -> dict[str, Any]:
        own = ("_timed", "prior_", "_prior_run", "_first_seed", "columns_", "key_column_")
        return {key: value for key, value in super().__getstate__().items() if key not in own}


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Lists of members one after the other; what has no entry in any is left out."""
    order = {name: parts[0].pop(name) for name in ("slots", "touched") if name in parts[0]}
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([part[name] for part in parts if name in part]) for name in names} | order
