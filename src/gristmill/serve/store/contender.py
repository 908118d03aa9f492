"""One learner of a served model, champion or challenger: the model, what it was worth, and its readers' copy."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

import numpy as np

from ..._common.types import Json
from .batch import Batch
from .learners import predictions, reasons, task_of
from .record import Record

#: events between two looks at the probabilities
_CALIBRATION = 20
#: seconds for which a copy answers while the model learns
_FRESH = 5.0


class Contender:
    """A learner that runs.

    Parameters
    ----------
    id : int
    role : {"champion", "challenger", "failed"}
    spec : dict
        What it was created from.
    begun : int
        Position at which it began.
    model : learner
    record : Record, optional
    reason : str, optional
        Why it failed.
    """

    def __init__(
        self, id_: int, role: str, spec: Json, begun: int, model: Any, record: Record | None = None,
        reason: str | None = None,
    ) -> None:  # fmt: skip
        self.id, self.role, self.spec, self.begun, self.model, self.reason = id_, role, spec, begun, model, reason
        self.task = str(task_of(model))
        self.record = Record(self.task, begun) if record is None else record
        self.position = begun  #: events that it has learned
        #: Held while the model changes. A reader that finds it taken uses the copy.
        self.lock = threading.Lock()
        self._published: tuple[int, Any, float] | None = None  # position, copy, when it was made
        self.wanted = False  #: a reader found no copy, or an old one
        self.state: Json = {}  #: what the service knew last of the model, for its description
        self._uncalibrated = 0
        self._size: tuple[int, int] | None = None

    @property
    def is_fitted(self) -> bool:
        return bool(self.model.__sklearn_is_fitted__())

    # ---- learning, by one thread ----------------------------------------------------------------------------

    def learn(self, batch: Batch) -> Any:
        """Learn rows, and return what was predicted of each before; on an error nothing has changed."""
        with self.lock:
            chance = self._chance(batch)
            scores = self.model.prequential(batch.X, None if self.task == "novelty" else batch.labels)
            found = predictions(self.model, self.task, scores)
            self.position += batch.count
        if chance is not None:
            self.record.calibrate([chance[1]], [chance[0] == (batch.labels or [None])[0]])
        return found, np.asarray(scores)

    def _chance(self, batch: Batch) -> tuple[Any, float] | None:
        """The most probable class of the first row and its probability, now and then."""
        self._uncalibrated += batch.count
        if self.task != "classification" or self._uncalibrated < _CALIBRATION or not self.is_fitted:
            return None
        self._uncalibrated = 0
        try:
            chances = self.model.predict_proba(batch.cut(0, 1).X)[0]
        except (AttributeError, ValueError, TypeError):
            return None
        best = int(chances.argmax())
        return self.model.classes_.tolist()[best], float(chances[best])

    def publish(self) -> None:
        """Renew the copy for readers, by the thread that learns."""
        self.wanted = False
        if self.is_fitted:
            self._published = (self.position, copy.copy(self.model), time.monotonic())

    # ---- predicting, by any thread --------------------------------------------------------------------------

    def reader(self) -> Reader | None:
        """The newest model that can be asked without waiting; None if there is none yet."""
        if self.lock.acquire(blocking=False):
            return Reader(self.position, self.model, self.lock)
        self.wanted = True
        published = self._published
        if published is None:
            return None
        position, model, made = published
        is_fresh = position == self.position or time.monotonic() - made < _FRESH
        return Reader(position, model, None) if is_fresh else None

    def size(self) -> tuple[int, int] | None:
        """Bytes and stored points of the model, or what they were when it was last free; None before the first event."""
        if self.is_fitted and self.lock.acquire(blocking=False):
            try:
                self._size = int(self.model.memory_bytes_), int(getattr(self.model, "n_support_", 0))
            finally:
                self.lock.release()
        return self._size

    def classes(self) -> list[str] | None:
        """The classes in the order of the probabilities; None without probabilities, or while the model is busy."""
        reader = self.reader() if self.is_fitted and hasattr(self.model, "predict_proba") else None
        if reader is None:
            return None
        with reader as model:
            return [str(name) for name in model.classes_.tolist()]

    def alarm(self, batch: Batch, place: int) -> list[Json]:
        """Why an event is an alarm."""
        row = batch.row(place)
        return reasons(self.model, row) if isinstance(row, dict) else []


class Reader:
    """A model to ask, of one position; `with` keeps it there."""

    def __init__(self, position: int, model: Any, lock: threading.Lock | None) -> None:
        self.position, self.model, self._lock = position, model, lock

    def __enter__(self) -> Any:
        return self.model

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()
