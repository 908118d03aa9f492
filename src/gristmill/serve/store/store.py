"""A folder of models: their names, who may open it, and how a damaged journal is recovered."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import snapshots
from .errors import Damaged, ServiceError
from .journal import FILE
from .learners import Spec
from .served import Served
from .settings import Settings
from .writer import Writer

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MARK = "gristmill-store"
_GONE = ".deleted"


def checked_name(name: str) -> str:
    """The name of a model; anything that could be a path is refused."""
    if not _NAME.fullmatch(name):
        raise ServiceError(
            f"the name of a model has 1 to 64 letters, digits, _ and -, the first a letter or a digit, got {name[:100]!r}",
            value=name[:100],
        )
    return name


class Store:
    """A folder of models, opened by one process at a time.

    Parameters
    ----------
    folder : path
        Created if it is not there. A folder that holds other files is refused.
    settings : Settings, optional

    Examples
    --------
    >>> import tempfile
    >>> from gristmill.serve import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store(folder) as store:
    ...         writer = store.create("pumps", {"learner": "auto", "task": "novelty"})
    ...         print(store.names(), writer.served.position)
    ['pumps'] 0
    """

    def __init__(self, folder: Any, settings: Settings | None = None) -> None:
        self.folder = Path(folder)
        self.settings = Settings() if settings is None else settings
        self.writers: dict[str, Writer] = {}
        self._change = threading.Lock()
        self._lock = _locked(self.folder)
        self._closed = False

    def open(self) -> Store:
        """Bring every model to its last position; the error of a damaged one names it."""
        try:
            for name in self._folders():
                if name not in self.writers:
                    self._start(Served(name, self.folder / name, self.settings))
        except Damaged as error:
            self.close()
            raise Damaged(f"model {name}: {error}", error.position) from error
        except BaseException:
            self.close()
            raise
        return self

    def __enter__(self) -> Store:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Answer what waits, write snapshots, and let others open the folder."""
        if self._closed:
            return
        self._closed = True
        for writer in self.writers.values():
            writer.stop()
        self.writers.clear()
        os.close(self._lock)

    def _folders(self) -> list[str]:
        found = []
        for entry in os.scandir(self.folder):
            if entry.is_dir(follow_symlinks=False) and _NAME.fullmatch(entry.name):
                if os.path.exists(os.path.join(entry.path, FILE)):
                    found.append(entry.name)
            elif entry.name.startswith(_GONE) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
        return sorted(found)

    def _start(self, served: Served) -> Writer:
        writer = self.writers[served.name] = Writer(served)
        return writer

    def names(self) -> list[str]:
        return sorted(self.writers)

    def get(self, name: str) -> Writer:
        """The writer of a model; 404 if there is none."""
        found = self.writers.get(name)
        if found is None:
            checked_name(name)
            raise ServiceError(f"there is no model {name!r}", 404)
        return found

    def create(
        self, name: str, spec: object = None, data: bytes | None = None, began: Callable[[Served], None] | None = None
    ) -> Writer:
        """A new model, from a specification or from the bytes of a model file; on disk when this returns.

        What `began` writes into the journal is there with the model, or neither is.
        """
        import msgspec

        checked_name(name)
        if not isinstance(spec, Spec):
            try:
                spec = msgspec.convert(spec or {}, Spec)
            except msgspec.ValidationError as error:
                raise ServiceError(f"the body does not fit: {error}") from None
        with self._change:
            if name in self.writers:
                raise ServiceError(f"there is a model {name!r} already", 409)
            if (self.folder / name).exists():
                raise ServiceError(f"the store has a file {name!r} of its own; take another name", 409)
            if len(self.writers) >= self.settings.models:
                raise ServiceError(f"the store holds {len(self.writers)} models, and at most so many are taken", 409)
            part = self.folder / f"{_GONE}-new-{name}"
            shutil.rmtree(part, ignore_errors=True)
            try:
                part.mkdir()
                served = Served.create(name, part, self.settings, spec, data)
                try:
                    if began is not None:
                        began(served)
                finally:
                    served.close()
                os.rename(part, self.folder / name)
            except BaseException as error:
                shutil.rmtree(part, ignore_errors=True)
                if isinstance(error, OSError | sqlite3.Error):
                    raise ServiceError(f"the model could not be written: {error}", 503, retry_after=5) from error
                raise
            snapshots.sync(self.folder)
            return self._start(Served(name, self.folder / name, self.settings))

    def delete(self, name: str) -> None:
        """Remove a model and all its files."""
        with self._change:
            writer = self.get(name)
            del self.writers[name]
            writer.stop(snapshot=False)
            gone = self.folder / f"{_GONE}-{name}-{os.urandom(4).hex()}"
            os.rename(self.folder / name, gone)
            snapshots.sync(self.folder)
            shutil.rmtree(gone, ignore_errors=True)


def _locked(folder: Path) -> int:
    """The lock of a store, for as long as its descriptor is open."""
    mark = folder / _MARK
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    if folder.is_dir() and not mark.exists() and any(os.scandir(folder)):
        raise ValueError(f"{folder} holds other files and is no store; give an empty or a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise ValueError(f"the store {folder} is in use by another process") from None
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)
    return descriptor
