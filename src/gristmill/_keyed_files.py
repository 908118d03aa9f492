"""A keyed fleet in files and pickles: every key, in memory or spilled, one after the other."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from . import persist
from ._keys import KeyKind, read_keys
from ._members import Members
from .streams.table_rows import TableRows


class KeyedFiles(Members):
    """What is written of a keyed fleet, and how it is read again."""

    prior: Any
    prior_: Any = None
    _kind: KeyKind | None = None
    _timed: bool | None = None
    _first_seed: int

    def _begin(self, parts: Any, width: int, dtype: Any, seed: int, kind: KeyKind) -> Any:
        raise NotImplementedError

    def _all_keys(self) -> Any:
        raise NotImplementedError

    def _found(self, core: Any, rows: Any) -> Any:
        raise NotImplementedError

    def _flush(self, core: Any) -> None:
        raise NotImplementedError

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        core = self._started()
        keys = self._all_keys()  # to write a file is not to change the fleet
        rows = read_keys(keys, self._kind)[1] if len(keys) else keys
        arrays = core.members(rows, self._found(core, rows))
        texts = rows if self._kind != "int" else []
        arrays["keys"] = np.frombuffer(b"".join(texts), dtype=np.uint8) if self._kind != "int" else np.asarray(rows)
        arrays["key_lengths"] = np.array([len(text) for text in texts], dtype=np.int64)
        fitted = {
            "classes": core.classes,
            "seed": self._first_seed,
            "kind": self._kind,
            "timed": self._timed,
            "now": core.now,
            **persist.encode_features(self),
            **self._labels_to_file(),
        }
        columns = getattr(self, "columns_", None)
        if columns is not None:
            fitted |= {"columns": columns.to_json(), "key_column": self.key_column_}
        if self.prior_ is not None:
            numbers, fitted["prior"] = self.prior_._to_file()
            arrays |= {f"prior.{name}": array for name, array in numbers.items()}
        return arrays, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        table = self._labels_from_file(fitted)
        if int(fitted["classes"]) != len(table):
            raise persist.ModelFileError("its classes do not fit its labels")
        if fitted["kind"] not in ("int", "str", "bytes"):
            raise persist.ModelFileError(f"its keys are of a kind {fitted['kind']!r}")
        persist.decode_features(self, fitted)
        prior = {name[6:]: arrays.pop(name) for name in list(arrays) if name.startswith("prior.")}
        self._kind, self._timed, self._first_seed = fitted["kind"], bool(fitted["timed"]), int(fitted["seed"])
        keys = self._keys_from_file(arrays)
        core = self._begin(self._parts(), self.n_features_in_, arrays["points"].dtype, self._first_seed, self._kind)
        core.meet(len(table))
        members = {name: array for name, array in arrays.items() if name != "last"}
        last = np.ascontiguousarray(arrays["last"], dtype=np.float64)
        core.set_members(keys, members, last, float(fitted["now"]))
        if "prior" in fitted:
            self.prior_ = copy.deepcopy(self.prior)
            self.prior_._from_file(prior, fitted["prior"])
        if "columns" in fitted:
            self.columns_, self.key_column_ = TableRows.from_json(fitted["columns"]), str(fitted["key_column"])
            if len(self.columns_.out_names) != self.n_features_in_:
                raise persist.ModelFileError("its columns do not fit its points")
        self._core_, self._table = core, table
        self._flush(core)

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
        own = ("_spill", "_kind", "_timed", "prior_", "_first_seed", "columns_", "key_column_")
        return {key: value for key, value in super().__getstate__().items() if key not in own}
