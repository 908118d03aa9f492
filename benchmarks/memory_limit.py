"""The least time that the memory of this machine needs for an event of a keyed fleet, measured beside it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class MemoryLimit:
    """Random records of so many bytes, read and written without any other work; see memory_limit.c."""

    def __init__(self, keys: int, record_bytes: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "memory_limit.so"
            source = Path(__file__).with_suffix(".c")
            compiler = os.environ.get("CC", "cc")
            command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
            subprocess.run(command, check=True)
            self._library = ctypes.CDLL(str(library))
        self._library.memory_make.restype = ctypes.c_void_p
        self._library.memory_make.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        self._library.memory_time.restype = ctypes.c_double
        self._library.memory_time.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._library.memory_free.argtypes = [ctypes.c_void_p]
        self._memory = self._library.memory_make(keys, -(-record_bytes // 64))
        if not self._memory:
            raise MemoryError(f"there is no room for {keys} records of {record_bytes} bytes")

    @staticmethod
    def can_measure() -> bool:
        """It needs Linux and a C compiler."""
        return sys.platform == "linux" and shutil.which(os.environ.get("CC", "cc")) is not None

    def work(self, events: int) -> float:
        """Seconds of processor time."""
        return float(self._library.memory_time(self._memory, events))

    def close(self) -> None:
        """Gives the memory back."""
        self._library.memory_free(self._memory)
