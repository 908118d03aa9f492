"""One served model: its journal, its champion, its challenger, and how they come back after a crash.

Only one thread, the writer's, calls the methods that change something.
"""

from __future__ import annotations

import collections
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..._common.types import Json
from . import batch as batches
from . import snapshots
from .batch import Batch
from .contender import Contender
from .errors import Damaged, ServiceError, refused
from .journal import Journal, Waiting
from .learners import Spec, build, checked, plain_spec
from .record import Record
from .settings import Settings

log = logging.getLogger("gristmill.serve")
#: rows that are learned in one call when a journal is replayed
_REPLAYED = 2000
_ALARMS = 50


class Served:
    """A model of the store.

    Parameters
    ----------
    name : str
    folder : Path
    settings : Settings

    Attributes
    ----------
    champion : Contender
    challenger : Contender or None
    alarms : deque of dict
        The last alarms of a novelty detector, with their reasons.
    """

    def __init__(self, name: str, folder: Path, settings: Settings) -> None:
        self.name, self.folder, self.settings = name, folder, settings
        self.journal = Journal(folder)
        self.alarms: collections.deque[Json] = collections.deque(maxlen=_ALARMS)
        #: numbered notices for those who watch: drift and alarms
        self.notices: collections.deque[tuple[int, str, Json]] = collections.deque(maxlen=200)
        self._noticed = 0
        self._replaying = self._stale = False
        self.champion: Contender
        self.challenger: Contender | None = None
        self.snapshots: list[Json] = []
        try:
            self.load()
        except Exception:
            self.journal.close()
            raise

    @classmethod
    def create(cls, name: str, folder: Path, settings: Settings, spec: Spec, data: bytes | None = None) -> Served:
        """A new model in an empty folder; `data` is a model file that it goes on from."""
        if data is None:
            build(spec)
        else:
            checked(loaded(data))
        journal = Journal.create(folder, plain_spec(spec), {})
        if data is not None:
            digest = snapshots.write(snapshots.path_of(folder, 1, 0), data)
            record = Record(checked(loaded(data)))
            with journal.transaction() as connection:
                connection.execute(
                    "INSERT INTO snapshots VALUES (1, 0, ?, ?, ?, ?)",
                    (digest, len(data), time.time(), msgspec.json.encode(record.state())),
                )
                connection.execute("UPDATE learners SET spec = ?", (json.dumps({"learner": "file"}),))
        journal.close()
        return cls(name, folder, settings)

    @property
    def position(self) -> int:
        return self.journal.position

    @property
    def task(self) -> str:
        return self.champion.task

    def contenders(self) -> list[Contender]:
        """Those that learn."""
        others = [] if self.challenger is None or self.challenger.role == "failed" else [self.challenger]
        return [self.champion, *others]

    # ---- coming back ----------------------------------------------------------------------------------------

    def load(self) -> None:
        """Bring every learner to the last position on disk: its newest sound snapshot, then the events after it."""
        self._stale = False
        found = [self.restored_core(*row) for row in self.journal.learners()]
        champion = next((contender for contender in found if contender.role == "champion"), None)
        if champion is None:
            raise Damaged(f"{self.folder}: the journal names no champion", 0)
        self.champion = champion
        self.challenger = next((one for one in found if one.role in ("challenger", "failed")), None)
        self._replaying = True
        try:
            for contender in self.contenders():
                self._replay(contender)
        finally:
            self._replaying = False
        self.list_snapshots()
        newest = self.snapshots[0]["position"] if self.snapshots else self.champion.begun
        self._saved = (newest, -self.journal.bytes_since(newest))

    def list_snapshots(self) -> None:
        """Read the list of snapshots of the champion; files of no snapshot are removed."""
        known = set()
        for id_, role, _, _, _ in self.journal.learners():
            rows = self.journal.snapshots(id_)
            known |= {(id_, row[0]) for row in rows}
            if role == "champion":
                self.snapshots = [{"position": row[0], "bytes": row[2], "time": row[3]} for row in rows]
        snapshots.tidy(self.folder, known)

    def restored_core(self, id_: int, role: str, spec: Json, begun: int, reason: str | None) -> Contender:
        for position, sha256, _, _, record in self.journal.snapshots(id_):
            if position > self.position:
                continue
            path = snapshots.path_of(self.folder, id_, position)
            data = snapshots.read(path, sha256)
            if data is None:
                log.warning("%s: the snapshot %s is missing or damaged; an older one is used", self.name, path.name)
                continue
            contender = Contender(id_, role, spec, begun, loaded(data), Record.of(batches.plain(record)), reason)
            contender.position = position
            return contender
        if spec.get("learner") == "file":
            raise Damaged(
                f"{self.folder}: no snapshot of learner {id_} can be read, and it was uploaded as a file", begun
            )
        return Contender(id_, role, spec, begun, build(msgspec.convert(spec, Spec)), None, reason)

    def _replay(self, contender: Contender) -> None:
        start = time.perf_counter()
        first = contender.position
        held: list[Batch] = []
        for record in self.journal.records(contender.position):
            for batch, answered in self._read(record, contender.position + sum(part.count for part in held)):
                joins = answered is None and batch.is_records and (not held or held[0].is_records)
                if held and (not joins or sum(part.count for part in held) >= _REPLAYED):
                    self._relearn(contender, batches.joined(held), None)
                    held = []
                if joins:
                    held.append(batch)
                else:
                    self._relearn(contender, batch, answered)
        if held:
            self._relearn(contender, batches.joined(held), None)
        if contender.position > first:
            log.info(
                "%s: %s events replayed in %.1f s", self.name, contender.position - first, time.perf_counter() - start
            )

    def _read(self, record: Any, position: int) -> Iterator[tuple[Batch, list[Any] | None]]:
        """The batches of a record from a position on, with the predictions of events whose labels came late."""
        if record.kind == "labels":
            yield self.late(batches.late(record.body)[max(position - record.first, 0) : record.rows])
            return
        options = {} if record.options is None else json.loads(record.options)
        batch = batches.read(record.kind, options, record.body)
        start = max(position - record.first, 0)
        yield (batch if (start, record.rows) == (0, batch.count) else batch.cut(start, record.rows)), None

    def _relearn(self, contender: Contender, batch: Batch, answered: list[Any] | None) -> None:
        try:
            learned = contender.learn(batch)
        except (ValueError, TypeError) as error:
            raise Damaged(
                f"{self.folder}: the event at position {contender.position} was learned and is refused now: {error}",
                contender.position,
            ) from error
        self._score(contender, batch, answered, *learned)

    # ---- learning -------------------------------------------------------------------------------------------

    def late(self, events: list[Any]) -> tuple[Batch, list[Any]]:
        """Events whose labels came late, and what each learner predicted of them when they came."""
        rows = [batches.plain(event[2]) for event in events]
        return Batch(rows, len(rows), [event[4] for event in events]), [batches.plain(event[3]) for event in events]

    def _score(self, contender: Contender, batch: Batch, answered: list[Any] | None, found: Any, scores: Any) -> None:
        """Score what was predicted of rows that were just learned: now, or when the events came."""
        if answered is None:
            drifts = contender.record.add(found.tolist(), batch.labels, contender.position)
        else:
            now = found.tolist()
            asked = [one.get(str(contender.id)) for one in answered]  # None: it had learned nothing when it was asked
            then = [now[place] if one is None else one for place, one in enumerate(asked)]
            drifts = contender.record.add(then, batch.labels, contender.position)
        if contender is self.champion and not self._replaying:
            for mark in drifts:
                self.notice("drift", {**mark, "metric": contender.record.metric})
            if contender.task == "novelty":
                self._alarms(contender, batch, found, scores)

    def _alarms(self, contender: Contender, batch: Batch, found: Any, scores: Any) -> None:
        first = contender.position - batch.count
        for place in [place for place, one in enumerate(found.tolist()) if one == -1][-5:]:
            alarm: Json = {"position": first + place, "time": time.time(), "score": float(scores[place])}
            row = batch.row(place)
            names = list(row)[:20] if isinstance(row, dict) else [f"x{column}" for column in range(len(row[:20]))]
            cells = row.values() if isinstance(row, dict) else row
            alarm["row"] = {name: batches.shown(cell) for name, cell in zip(names, cells, strict=False)}
            alarm["reasons"] = contender.alarm(batch, place)
            self.alarms.append(alarm)
            self.notice("alarm", alarm)

    def notice(self, what: str, details: Json) -> None:
        self._noticed += 1
        self.notices.append((self._noticed, what, details))

    def check(self, batch: Batch) -> None:
        """Refuse what would let the model grow beyond its limits, or lacks labels."""
        task = self.task
        if batch.labels is None and task != "novelty":
            raise ServiceError(f"labels are missing: the model is for {task}")
        if batch.width() > self.settings.columns:
            raise ServiceError(f"the rows have {batch.width()} columns, at most {self.settings.columns} are taken")
        known = self._columns()
        if known and len(known) + batch.width() > self.settings.columns:
            count = len(known | batch.names())
            if count > self.settings.columns:
                raise ServiceError(f"the model would have {count} columns, at most {self.settings.columns} are taken")
        if task == "novelty":
            batch.labels = None
        elif task == "classification":
            self._check_classes(batch)
        else:
            self._check_numbers(batch)

    def _check_classes(self, batch: Batch) -> None:
        kinds = set(map(type, batch.labels or ()))
        if not kinds <= {str, int, float, bool}:
            place = next(i for i, one in enumerate(batch.labels or ()) if type(one) not in (str, int, float, bool))
            raise ServiceError(
                f"row {place}: a label is a number, a string or a truth value, got {batch.label(place)!r}",
                row=place, value=batch.label(place),
            )  # fmt: skip
        if self.champion.is_fitted:
            classes = self.champion.model.classes_.tolist()
            if len(classes) + batch.count > self.settings.classes:
                count = len({*classes, *(batch.labels or ())})
                if count > self.settings.classes:
                    raise ServiceError(
                        f"the model would have {count} classes, at most {self.settings.classes} are taken"
                    )

    def _check_numbers(self, batch: Batch) -> None:
        for place, label in enumerate(batch.labels or ()):
            whole = label if isinstance(label, list) else [label]
            if not whole or any(type(one) not in (int, float) for one in whole):
                raise ServiceError(
                    f"row {place}: a target is a number, got {batch.label(place)!r}",
                    row=place,
                    value=batch.label(place),
                )

    def _columns(self) -> set[str]:
        table = getattr(self.champion.model, "table_", None) if self.champion.is_fitted else None
        return set() if table is None else set(table.names)

    def learn(self, batch: Batch, answered: list[Any] | None = None) -> Any:
        """Let every learner learn; returns the champion's predictions. A bad row is refused, and nothing has changed."""
        try:
            learned = self.champion.learn(batch)
        except Exception as error:
            if not isinstance(error, ValueError | TypeError | OverflowError):
                log.exception("%s: %s rows were refused by an unexpected error", self.name, batch.count)
            raise refused(error, batch) from error
        self._score(self.champion, batch, answered, *learned)
        challenger = self.challenger
        if challenger is not None and challenger.role != "failed":
            try:
                other = challenger.learn(batch)
            except Exception as error:
                challenger.role = "failed"
                challenger.reason = f"at position {challenger.position}: {' '.join(str(error).split())[:500]}"
            else:
                self._score(challenger, batch, answered, *other)
        return learned[0]

    def keep_failure(self, connection: Any) -> None:
        """Note a challenger that failed, inside a transaction."""
        if self.challenger is not None and self.challenger.role == "failed":
            connection.execute(
                "UPDATE learners SET role = 'failed', reason = ? WHERE id = ? AND role != 'failed'",
                (self.challenger.reason, self.challenger.id),
            )

    # ---- snapshots ------------------------------------------------------------------------------------------

    def snapshot(self) -> Json:
        """Write the learners at the present position, and prune what is behind the oldest snapshot that is kept."""
        written = []
        for contender in self.contenders():
            if not contender.is_fitted or contender.position != self.position:
                continue
            data = contender.model.to_bytes()
            digest = snapshots.write(snapshots.path_of(self.folder, contender.id, contender.position), data)
            record = msgspec.json.encode(contender.record.state())
            written.append((contender.id, contender.position, digest, len(data), time.time(), record))
        with self.journal.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", written)
            self._prune(connection)
        return {"position": self.position, "bytes": sum(row[3] for row in written)}

    def _prune(self, connection: Any) -> None:
        """Keep the newest snapshots of each learner, at least two, and the events since the oldest of them."""
        kept = self.settings.keep_snapshots
        while True:
            starts = []
            for id_, role, spec, begun, _ in self.journal.learners():
                rows = [row[0] for row in self.journal.snapshots(id_)]
                for position in rows[kept:]:
                    connection.execute("DELETE FROM snapshots WHERE learner = ? AND position = ?", (id_, position))
                if role != "failed":
                    from_start = len(rows) < kept and spec.get("learner") != "file"
                    starts.append(begun if from_start else rows[:kept][-1])
            self.journal.prune(min(starts))
            if self.journal.size <= self.settings.journal_space or kept <= 2:
                return
            kept -= 1

    def is_due(self) -> bool:
        """Whether so much was learned since the last snapshot that another is wanted."""
        if self.position - self._saved[0] >= self.settings.snapshot_events:
            return True
        space = min(self.settings.snapshot_bytes, self.settings.journal_space // (2 * self.settings.keep_snapshots))
        return self.journal.appended - self._saved[1] >= space

    @property
    def oldest(self) -> int:
        """The position to which a rollback can go back."""
        starts = [snapshot["position"] for snapshot in self.snapshots]
        if self.champion.spec.get("learner") != "file" and self.journal.start <= self.champion.begun:
            starts.append(self.champion.begun)
        return max(min(starts), self.journal.start) if starts else self.position

    # ---- what else changes ----------------------------------------------------------------------------------

    def rollback(self, position: int) -> Json:
        """Go back to a position: later events leave the journal, late labels among them wait again."""
        before = self.position
        if not self.oldest <= position <= before:
            raise ServiceError(
                f"position must be from {self.oldest} (the oldest snapshot or the first event of the champion) to {before}, "
                f"got {position}", 409,
                oldest=self.oldest, position=before,
            )  # fmt: skip
        with self.journal.transaction() as connection:
            for record in self.journal.truncate(position):
                if record.kind == "labels":
                    again = batches.late(record.body)[max(position - record.first, 0) : record.rows]
                    self.journal.keep([Waiting(*event[:4]) for event in again if self.journal.waits(event[0]) is None])
            connection.execute("DELETE FROM snapshots WHERE position > ?", (position,))
            gone = "SELECT id FROM learners WHERE begun > ? AND role != 'champion'"
            connection.execute(f"DELETE FROM snapshots WHERE learner IN ({gone})", (position,))
            connection.execute("DELETE FROM learners WHERE begun > ? AND role != 'champion'", (position,))
            self.journal.note("rollback", before=before, position=position)
        self._stale = True
        return {"position": position, "before": before}

    def challenge(self, spec: Spec) -> Json:
        """Let another learner learn from the next event on; it takes the place of the last challenger."""
        if spec.learner == "auto" and spec.task is None:
            spec = msgspec.structs.replace(spec, task=self.task)
        model = build(spec)
        task = checked(model)
        if task != self.task:
            raise ServiceError(f"the challenger is for {task}, and the model for {self.task}", 409)
        with self.journal.transaction() as connection:
            self._drop_challenger(connection)
            (last,) = connection.execute("SELECT max(id) FROM learners").fetchone()
            role, text = "challenger", json.dumps(plain_spec(spec))
            connection.execute("INSERT INTO learners VALUES (?, ?, ?, ?, NULL)", (last + 1, role, text, self.position))
            self.journal.note("challenger", spec=plain_spec(spec), position=self.position)
        self.challenger = Contender(last + 1, role, plain_spec(spec), self.position, model)
        return {"position": self.position}

    def drop_challenger(self) -> Json:
        if self.challenger is None:
            raise ServiceError("there is no challenger", 404)
        with self.journal.transaction() as connection:
            self._drop_challenger(connection)
        self.challenger = None
        return {"position": self.position}

    def _drop_challenger(self, connection: Any) -> None:
        if self.challenger is not None:
            connection.execute("DELETE FROM snapshots WHERE learner = ?", (self.challenger.id,))
            connection.execute("DELETE FROM learners WHERE id = ?", (self.challenger.id,))

    def promote(self) -> Json:
        """Champion and challenger change places."""
        if self.challenger is None:
            raise ServiceError("there is no challenger", 404)
        if self.challenger.role == "failed" or not self.challenger.is_fitted:
            why = self.challenger.reason or "it has learned nothing yet"
            raise ServiceError(f"the challenger cannot be promoted: {why}", 409)
        champion, challenger = self.champion, self.challenger
        with self.journal.transaction() as connection:
            connection.execute("UPDATE learners SET role = 'challenger' WHERE id = ?", (champion.id,))
            connection.execute("UPDATE learners SET role = 'champion' WHERE id = ?", (challenger.id,))
            self.journal.note("promote", champion=challenger.id, position=self.position)
        champion.role, challenger.role = "challenger", "champion"
        self.champion, self.challenger = challenger, champion
        return {"position": self.position, "learner": challenger.spec.get("learner")}

    def settle(self) -> None:
        """After the transaction of a change: files that are no longer listed are removed."""
        if self._stale:
            self.load()
        self.list_snapshots()
        newest = self.snapshots[0]["position"] if self.snapshots else self.champion.begun
        if newest == self.position:
            self._saved = (self.position, self.journal.appended)

    @property
    def is_saved(self) -> bool:
        """Whether a snapshot of the last position is on disk."""
        return self._saved[0] == self.position

    def close(self) -> None:
        self.journal.close()


def loaded(data: bytes) -> Any:
    """The model of a file; what is not one is refused."""
    from ...persist import from_bytes

    try:
        return from_bytes(data)
    except (ValueError, TypeError, MemoryError) as error:
        raise ServiceError(f"the file is not a model: {' '.join(str(error).split())[:500]}") from error
