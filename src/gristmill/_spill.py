"""Records of keys that are not in memory: a table of an SQLite file, gone with the fleet that made it."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

Record = tuple[bytes, bytes]


class Spill:
    """Key -> record on disk. Each fleet has a table of its own, so that copies of a fleet do not share one."""

    def __init__(self, path: Any) -> None:
        self._path = os.fspath(path)
        self._table = f"records_{secrets.token_hex(8)}"
        with self._named("cannot be used"):
            self._link = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
            # A crash loses the fleet in memory too: what lasts is `save`.
            self._link.execute("PRAGMA synchronous=OFF")
            self._link.execute("PRAGMA journal_mode=WAL")
            self._link.execute(f"CREATE TABLE {self._table} (key BLOB PRIMARY KEY, record BLOB NOT NULL)")
        self._end = weakref.finalize(self, _drop, self._link, self._table)

    @contextlib.contextmanager
    def _named(self, what: str = "is damaged, or another program has changed it") -> Iterator[None]:
        """SQLite's errors say nothing about the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(f"the spill file {self._path!r} {what}: {error}") from error

    def put(self, records: Iterable[Record]) -> None:
        self._all(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)", records)

    def forget(self, keys: Iterable[bytes]) -> int:
        before = len(self)
        self._all(f"DELETE FROM {self._table} WHERE key = ?", ((key,) for key in keys))
        return before - len(self)

    def get(self, keys: list[bytes]) -> list[Record]:
        found: list[Record] = []
        for first in range(0, len(keys), 500):
            some = keys[first : first + 500]
            marks = ",".join("?" * len(some))
            with self._named():
                found += self._link.execute(
                    f"SELECT key, record FROM {self._table} WHERE key IN ({marks})", some
                ).fetchall()
        if not all(type(record) is bytes for _, record in found):
            raise OSError(
                f"the spill file {self._path!r} is damaged: it holds a record that is not one of this fleet's"
            )
        return found

    def keys(self) -> Iterator[bytes]:
        with self._named():
            for (key,) in self._link.execute(f"SELECT key FROM {self._table}"):
                yield key

    def __len__(self) -> int:
        with self._named():
            return int(self._link.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def _all(self, statement: str, rows: Iterable[Any]) -> None:
        with self._named():
            self._link.execute("BEGIN")
            try:
                self._link.executemany(statement, rows)
            except BaseException:
                self._link.execute("ROLLBACK")
                raise
            self._link.execute("COMMIT")

    def close(self) -> None:
        self._end()


def _drop(link: sqlite3.Connection, table: str) -> None:
    with contextlib.suppress(sqlite3.Error):  # the file may be gone; it holds nothing that anyone needs
        link.execute(f"DROP TABLE IF EXISTS {table}")
    link.close()
