"""The driver's side of the shards: every batch reaches every shard exactly once and in order, also after a shard dies."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from ...fleets.keys import Start
from .batch import Batch, Cut
from .log import Log
from .shard import Answer, Message, Plan, Tally, row_in, with_row
from .workers import Lost, Workers


class Refused(Exception):
    """A batch that shards could not learn; `row` of the batch is the first that went wrong."""

    def __init__(self, number: int, row: int, message: str) -> None:
        super().__init__(message)
        self.number, self.row = number, row


@dataclasses.dataclass
class Parcel:
    """Batches that went to the shards together."""

    batches: list[Pending]
    tickets: dict[int, object] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Pending:
    """A batch that some shards have not answered."""

    cut: Cut
    want: bool
    parcel: Parcel | None = None  # None: it has not been sent
    answers: dict[int, Answer] = dataclasses.field(default_factory=dict)

    @property
    def number(self) -> int:
        return self.cut.batch.number


@dataclasses.dataclass
class Record:
    """State of a shard, as the driver knows it."""

    restarts: int = 0
    replayed: int = 0  # batches
    restored: int = 0  # number of the snapshot that it came from
    events: int = 0
    seconds: float = 0.0
    saved: int = 0


class Feed:
    """Sends batches, a few ahead of the answers, and brings lost shards back.

    While the shards are busy, batches wait and then go together: a message costs Ray about as much as 10,000 events cost a
    shard, however large it is.
    """

    AHEAD = 2  # unanswered messages to a shard
    TOGETHER = 8  # batches in one message at most, and how much they may hold and take
    MOST_BYTES = 32 << 20
    MOST_SECONDS = 0.1
    PATIENCE = 20  # times that a shard may be lost without progress

    def __init__(self, workers: Workers, plans: list[Plan], log: Log | None) -> None:
        self.workers, self.plans, self.log = workers, plans, log
        self.start: Start | None = None
        self.number = 0  # of the last batch that was sent
        self.records = [Record() for _ in plans]
        self._pending: deque[Pending] = deque()
        self._answered = 0
        self.unsaved: dict[int, str] = {}  # shard -> why its last snapshot could not be written, until it is reported

    @property
    def shards(self) -> int:
        return len(self.plans)

    # ---- coming up, and coming back ----------------------------------------------------------------------------------

    def open(self, start: Start | None, number: int) -> None:
        """Start every shard and bring each to the end of the log."""
        self.start, self.number, self._answered = start, number, number
        for plan in self.plans:
            self.workers.start(plan)
        for shard in range(self.shards):
            self._bring(shard, lost=False)

    def _bring(self, shard: int, lost: bool = True) -> None:
        """Restart a shard from its snapshot and replay the batches after it, repeatedly if it is lost again."""
        record, furthest, tries = self.records[shard], -1, 0
        while True:
            try:
                if lost:
                    record.restarts += 1
                    self.workers.start(self.plans[shard])
                record.restored = int(self._ask(shard, "restore", self._limit()))
                for pending in self._pending:
                    if pending.number <= record.restored:  # it is in the snapshot, and no scores were requested
                        pending.answers.setdefault(shard, Answer())
                self._replay(shard, record.restored)
                return
            except Lost as error:
                reached = max([record.restored, *(p.number for p in self._pending if shard in p.answers)])
                tries = 0 if reached > furthest else tries + 1
                furthest, lost = max(furthest, reached), True
                if tries >= self.PATIENCE:
                    raise RuntimeError(f"shard {shard} was lost {tries} times in the same place") from error

    def _limit(self) -> int:
        """The newest state from which every pending answer can be computed."""
        return min([self.number, *(p.number - 1 for p in self._pending if p.want)])

    def _replay(self, shard: int, number: int) -> None:
        """Replay the batches of the log after this number."""
        if number >= self.number:
            return
        if self.log is None:
            raise RuntimeError(
                f"shard {shard} was lost, and without snapshots nothing brings it back; give Cluster(snapshots=...)"
            )
        pending = {p.number: p for p in self._pending}
        on_the_way: deque[Any] = deque()
        for batch in self.log.read(number, self.number):
            known = pending.get(batch.number)
            cut = known.cut if known is not None else Cut.of(batch, self.shards)
            message = self._message(cut, shard, known is not None and known.want)
            on_the_way.append(self.workers.submit(shard, "receive", [message]))
            self.records[shard].replayed += 1
            if len(on_the_way) > self.AHEAD:
                self._keep(shard, self.workers.result(shard, on_the_way.popleft()))
        while on_the_way:
            self._keep(shard, self.workers.result(shard, on_the_way.popleft()))

    def _keep(self, shard: int, answers: dict[int, Answer]) -> None:
        """Keep pending results; results that are not awaited only matter if they failed."""
        pending = {p.number: p for p in self._pending}
        for number, answer in answers.items():
            record = self.records[shard]
            record.events, record.seconds, record.saved = answer.events, answer.seconds, answer.saved
            if answer.unsaved is not None:
                self.unsaved[shard] = answer.unsaved
            if number in pending:
                pending[number].answers[shard] = answer
            elif answer.error is not None:
                raise Refused(number, row_in(answer.error), answer.error)

    # ---- sending -----------------------------------------------------------------------------------------------------

    def _message(self, cut: Cut, shard: int, want: bool) -> Message:
        assert self.start is not None
        return Message(self.start, cut.part(shard), self._answered, want)

    def cut(self, batch: Batch) -> Cut:
        return Cut.of(batch, self.shards)

    def send(self, batch: Batch, want: bool, cut: Cut | None = None) -> Pending:
        """Send a batch to all shards without waiting for it; waits for older batches if many are unanswered."""
        pending = Pending(self.cut(batch) if cut is None else cut, want)
        self._pending.append(pending)
        self.number = batch.number
        self.advance()
        return pending

    def advance(self) -> None:
        """Take the answers that have arrived; send waiting batches unless the shards are busy."""
        while self._pending and self._is_answered(self._pending[0]):
            self.collect()
        while waiting := [pending for pending in self._pending if pending.parcel is None]:
            if self._on_the_way() < self.AHEAD:
                self._dispatch(waiting)
            elif self._is_full(waiting):
                self.collect()
            else:
                return

    def _is_answered(self, pending: Pending) -> bool:
        parcel = pending.parcel
        return parcel is not None and all(
            shard in pending.answers or self.workers.ready(shard, ticket) for shard, ticket in parcel.tickets.items()
        )

    def _on_the_way(self) -> int:
        return len({id(pending.parcel) for pending in self._pending if pending.parcel is not None})

    def _is_full(self, waiting: list[Pending]) -> bool:
        """Whether the waiting parcel is full."""
        if len(waiting) >= self.TOGETHER or sum(pending.cut.nbytes for pending in waiting) >= self.MOST_BYTES:
            return True
        events = sum(len(pending.cut.batch) for pending in waiting) / self.shards
        pace = max((record.seconds / record.events for record in self.records if record.events), default=0.0)
        return events * pace >= self.MOST_SECONDS

    def _dispatch(self, waiting: list[Pending]) -> None:
        parcel = Parcel(waiting)
        for pending in waiting:
            pending.parcel = parcel
        for shard in range(self.shards):
            self._submit(shard, parcel)

    def _submit(self, shard: int, parcel: Parcel) -> None:
        messages = [self._message(pending.cut, shard, pending.want) for pending in parcel.batches]
        parcel.tickets[shard] = self.workers.submit(shard, "receive", messages)

    def collect(self) -> None:
        """Wait for the oldest unanswered batch."""
        oldest = self._pending[0]
        for shard in range(self.shards):
            self._await(shard, oldest)
        self._pending.popleft()
        refusals = self._refusals(oldest)
        if refusals:
            raise min(refusals, key=lambda refused: refused.row)
        self._answered = oldest.number

    def _await(self, shard: int, pending: Pending) -> None:
        """Wait for the answer of a shard; it may arrive with that of an earlier batch."""
        while shard not in pending.answers:
            try:
                if pending.parcel is None:
                    self._dispatch([other for other in self._pending if other.parcel is None])
                assert pending.parcel is not None
                if shard not in pending.parcel.tickets:
                    # An interrupt came in between; a batch that is there is not learned again.
                    self._submit(shard, pending.parcel)
                self._keep(shard, self.workers.result(shard, pending.parcel.tickets.pop(shard)))
                if shard not in pending.answers:
                    raise Lost(shard, "its answer is")
            except Lost:
                for other in self._pending:
                    if other.parcel is not None:
                        other.parcel.tickets.pop(shard, None)
                self._bring(shard)

    def _refusals(self, pending: Pending) -> list[Refused]:
        found = []
        for shard, answer in pending.answers.items():
            if answer.error is not None:
                row = int(pending.cut.places(shard)[row_in(answer.error)])
                found.append(Refused(pending.number, row, with_row(answer.error, row)))
        return found

    def drain(self) -> None:
        """Wait until every batch is answered."""
        while self._pending:
            self.collect()

    @property
    def saved(self) -> int:
        """The last batch that every shard has in a snapshot."""
        return min(record.saved for record in self.records)

    def go_back(self, number: int) -> None:
        """Roll every shard back to the state after this batch."""
        self.number = self._answered = number
        self._pending.clear()
        for shard in range(self.shards):
            self._bring(shard, lost=False)

    # ---- everything else ---------------------------------------------------------------------------------------------

    def _ask(self, shard: int, method: str, *arguments: object) -> Any:
        return self.workers.result(shard, self.workers.submit(shard, method, *arguments))

    def ask(self, questions: dict[int, tuple[Any, ...]], method: str) -> dict[int, Any]:
        """Ask some shards one question each; shards that die are restarted."""
        self.drain()
        tickets = {shard: self.workers.submit(shard, method, *asked) for shard, asked in questions.items()}
        answers = {}
        for shard, ticket in tickets.items():
            while shard not in answers:
                try:
                    answers[shard] = self.workers.result(shard, ticket)
                except Lost:
                    self._bring(shard)
                    ticket = self.workers.submit(shard, method, *questions[shard])
        return answers

    def ask_all(self, method: str, *arguments: object) -> list[Any]:
        answers = self.ask(dict.fromkeys(range(self.shards), arguments), method)
        return [answers[shard] for shard in range(self.shards)]

    def tallies(self) -> list[Tally]:
        return self.ask_all("tally")

    def stop(self) -> None:
        for shard in range(self.shards):
            self.workers.stop(shard)
