"""Model files that somebody has changed: bits, lengths, arrays, parameters. Checksums are repaired: they are read."""

from __future__ import annotations

import copy
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import model_files
import numpy as np

Text = dict[str, Any]
Arrays = dict[str, Any]

NUMBERS = (0, 1, 2, -1, 7, 2**31 - 1, 2**31, 2**40, 2**53, 2**62, 2**63, -(2**63), 1e308, -1e308, 5e-324, 0.5)
VALUES = (
    None, True, False, "", "grist", "1 GB", [], {}, [[]], [None] * 3, *NUMBERS,
    {"type": "float", "value": "nan"}, {"type": "float", "value": "inf"}, {"type": "tuple", "items": []},
    {"type": "Gaussian", "gamma": -1.0}, {"type": "Gaussian"}, {"type": "PythonKernel"}, {"type": "os.system"},
    {"type": "DropOldest", "size": 2**40}, {"type": "Project", "tolerance": 0.0, "size": 1}, {"type": "KernelClassifier"},
)  # fmt: skip


class Mutation:
    """One change of one file, drawn from a seed of its own: any case can be run again by itself."""

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self.rng = np.random.default_rng([zlib.crc32(path.name.encode()), number])

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def bytes(self) -> bytes:
        how: Callable[[], bytes] = self.pick((self.flip, self.cut, *(self.arrays,) * 5, *(self.text,) * 5, self.header))
        return how()

    # ---- of the bytes as they stand ---------------------------------------------------------------------------

    def flip(self) -> bytes:
        data = bytearray(self.path.read_bytes())
        for _ in range(int(self.rng.integers(1, 5))):
            data[int(self.rng.integers(len(data)))] ^= 1 << int(self.rng.integers(8))
        return bytes(data)

    def cut(self) -> bytes:
        data = self.path.read_bytes()
        at = int(self.rng.integers(len(data)))
        return self.pick((data[:at], data[at:], data + data[:at], data[: at // 2] + data[at:]))

    def header(self) -> bytes:
        """Types, shapes and places of arrays as the file states them, forged."""
        data = self.path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        entry = header[self.pick(sorted(set(header) - {"__metadata__"}))]
        key = self.pick(sorted(entry))
        if key == "dtype":
            entry[key] = self.pick(("F64", "F32", "I64", "U8", "I32", "BOOL", "F16", "U64"))
        elif entry[key]:
            entry[key][int(self.rng.integers(len(entry[key])))] = int(self.pick((0, 1, 2, 8, 64, 2**20, 2**40, 2**62)))
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data[8 + length :]

    # ---- of what it holds -------------------------------------------------------------------------------------

    def arrays(self) -> bytes:
        arrays, text = model_files.opened(self.path)
        for _ in range(int(self.rng.integers(1, 4))):
            if arrays:
                self.pick((self._set, self._set, self._bits, self._swap, self._drop, self._resize, self._retype))(
                    arrays
                )
        return model_files.closed({name: np.ascontiguousarray(array) for name, array in arrays.items()}, text)

    def _set(self, arrays: Arrays) -> None:
        name = self.pick(sorted(arrays))
        array = arrays[name] = arrays[name].copy()
        if array.size:
            value = self.pick((*NUMBERS, np.nan, np.inf))
            with np.errstate(all="ignore"):
                array.flat[int(self.rng.integers(array.size))] = np.array(value).astype(array.dtype)

    def _bits(self, arrays: Arrays) -> None:
        name = self.pick(sorted(arrays))
        raw = bytearray(arrays[name].tobytes())
        if raw:
            raw[int(self.rng.integers(len(raw)))] ^= 1 << int(self.rng.integers(8))
            arrays[name] = np.frombuffer(raw, dtype=arrays[name].dtype).reshape(arrays[name].shape)

    def _swap(self, arrays: Arrays) -> None:
        left, right = (self.pick(sorted(arrays)) for _ in range(2))
        arrays[left], arrays[right] = arrays[right], arrays[left]

    def _drop(self, arrays: Arrays) -> None:
        del arrays[self.pick(sorted(arrays))]

    def _resize(self, arrays: Arrays) -> None:
        name = self.pick(sorted(arrays))
        array = arrays[name]
        ways = (array[:-1], array[1:], np.concatenate([array, array]), array[:0], array.ravel(), array[None])
        arrays[name] = self.pick(ways if array.ndim else ways[4:])

    def _retype(self, arrays: Arrays) -> None:
        name = self.pick(sorted(arrays))
        with np.errstate(all="ignore"):
            arrays[name] = arrays[name].astype(self.pick((np.float32, np.float64, np.int32, np.int64, np.uint64, bool)))

    # ---- of what it says --------------------------------------------------------------------------------------

    def text(self) -> bytes:
        arrays, text = model_files.opened(self.path)
        text = copy.deepcopy(text)
        for _ in range(int(self.rng.integers(1, 3))):
            home, key = self._place(text)
            change = self.pick(("set", "set", "set", "number", "delete", "double"))
            if change == "delete":
                del home[key]
            elif change == "double" and isinstance(home[key], list):
                home[key] = home[key] * 2
            elif change == "number" and type(home[key]) in (int, float):
                home[key] = self.pick((-home[key], home[key] * 2**20, home[key] + 1, home[key] / 3, 0))
            else:
                home[key] = copy.deepcopy(self.pick(VALUES))
        return model_files.closed(arrays, text)

    def _place(self, text: Text) -> tuple[Any, Any]:
        """A place in the text, at any depth, mostly below its parameters and fitted values."""
        home: Any = text
        key: Any = self.pick((*("parameters", "fitted") * 4, *sorted(text)))
        while key in home if isinstance(home, dict) else key < len(home):
            inside = home[key]
            if not isinstance(inside, dict | list) or not inside or (self.rng.random() < 0.2 and home is not text):
                break
            home = inside
            key = self.pick(sorted(home)) if isinstance(home, dict) else int(self.rng.integers(len(home)))
        return (home, key) if (key in home if isinstance(home, dict) else True) else (text, self.pick(sorted(text)))
