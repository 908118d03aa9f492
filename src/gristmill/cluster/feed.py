"""The driver's side of the shards: every batch reaches every shard once, in order, whichever of them die on the way."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from .batch import Batch, Cut, Start
from .log import Log
from .shard import Answer, Message, Plan, Tally, row_in, with_row
from .workers import Lost, Workers


class Refused(Exception):
    """A batch that shards could not learn; `row` of the batch is the first that went wrong."""

    def __init__(self, number: int, row: int, message: str) -> None:
        super().__init__(message)
        self.number, self.row = number, row


@dataclasses.dataclass
class Pending:
    """A batch that was sent and whose answers are not all there."""

    cut: Cut
    want: bool
    tickets: dict[int, Any] = dataclasses.field(default_factory=dict)
    held: dict[int, Any] = dataclasses.field(default_factory=dict)  # messages that are ready to go
    answers: dict[int, Answer] = dataclasses.field(default_factory=dict)

    @property
    def number(self) -> int:
        return self.cut.batch.number


@dataclasses.dataclass
class Record:
    """What the driver knows of a shard."""

    restarts: int = 0
    replayed: int = 0  # batches
    restored: int = 0  # number of the snapshot that it came from
    events: int = 0
    seconds: float = 0.0
    saved: int = 0


class Feed:
    """Sends batches, a few ahead of the answers, and brings lost shards back."""

    AHEAD = 4  # batches on the way
    PATIENCE = 20  # times that a shard may be lost without getting on

    def __init__(self, workers: Workers, plans: list[Plan], log: Log | None) -> None:
        self.workers, self.plans, self.log = workers, plans, log
        self.start: Start | None = None
        self.number = 0  # of the last batch that was sent
        self.records = [Record() for _ in plans]
        self._pending: deque[Pending] = deque()
        self._answered = 0

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
        """A shard from its snapshot through the batches after it, as often as it takes."""
        record, furthest, tries = self.records[shard], -1, 0
        while True:
            try:
                if lost:
                    record.restarts += 1
                    self.workers.start(self.plans[shard])
                record.restored = int(self._ask(shard, "restore", self._limit()))
                for pending in self._pending:
                    if pending.number <= record.restored:  # it is in the snapshot, and nobody asked for scores
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
        """The newest state from which every answer that is still wanted can be had."""
        return min([self.number, *(p.number - 1 for p in self._pending if p.want)])

    def _replay(self, shard: int, number: int) -> None:
        """Send again what the log has after a number."""
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
            on_the_way.append(self.workers.submit(shard, "receive", message))
            self.records[shard].replayed += 1
            if len(on_the_way) > self.AHEAD:
                self._keep(shard, self.workers.result(shard, on_the_way.popleft()))
        while on_the_way:
            self._keep(shard, self.workers.result(shard, on_the_way.popleft()))

    def _keep(self, shard: int, answers: dict[int, Answer]) -> None:
        """Hold on to answers; those that nobody waits for matter only where they say no."""
        pending = {p.number: p for p in self._pending}
        for number, answer in answers.items():
            record = self.records[shard]
            record.events, record.seconds, record.saved = answer.events, answer.seconds, answer.saved
            if number in pending:
                pending[number].answers[shard] = answer
            elif answer.error is not None:
                raise Refused(number, row_in(answer.error), answer.error)

    # ---- sending -----------------------------------------------------------------------------------------------------

    def _message(self, cut: Cut, shard: int, want: bool) -> Message:
        assert self.start is not None
        return Message(self.start, cut.part(shard), self._answered, want)

    def prepare(self, batch: Batch, want: bool, start: Start) -> Pending:
        """A batch on its way to the shards, which see nothing of it yet."""
        pending = Pending(Cut.of(batch, self.shards), want)
        for shard in range(self.shards):
            message = Message(start, pending.cut.part(shard), self._answered, want)
            pending.held[shard] = self.workers.hold(message)
        return pending

    def send(self, batch: Batch, want: bool, prepared: Pending | None = None) -> Pending:
        """To all shards, without waiting for them; waits for older batches when many are on the way."""
        pending = Pending(Cut.of(batch, self.shards), want) if prepared is None else prepared
        self._pending.append(pending)
        self.number = batch.number
        for shard in range(self.shards):
            self._submit(shard, pending)
        while len(self._pending) > self.AHEAD:
            self.collect()
        return pending

    def _submit(self, shard: int, pending: Pending) -> None:
        message = pending.held.pop(shard, None)
        if message is None:
            message = self._message(pending.cut, shard, pending.want)
        pending.tickets[shard] = self.workers.submit(shard, "receive", message)

    def collect(self) -> None:
        """Wait for the oldest batch that is on the way."""
        oldest = self._pending[0]
        for shard in range(self.shards):
            self._await(shard, oldest)
        self._pending.popleft()
        refusals = self._refusals(oldest)
        if refusals:
            raise min(refusals, key=lambda refused: refused.row)
        self._answered = oldest.number

    def _await(self, shard: int, pending: Pending) -> None:
        """Until the answer of a shard is there. It may come with that of an earlier batch."""
        while shard not in pending.answers:
            try:
                if shard not in pending.tickets:
                    self._submit(
                        shard, pending
                    )  # an interrupt came in between; a batch that is there is not learned again
                self._keep(shard, self.workers.result(shard, pending.tickets.pop(shard)))
                if shard not in pending.answers:
                    raise Lost(shard, "its answer is")
            except Lost:
                for other in self._pending:
                    other.tickets.pop(shard, None)
                self._bring(shard)

    def _refusals(self, pending: Pending) -> list[Refused]:
        found = []
        for shard, answer in pending.answers.items():
            if answer.error is not None:
                row = int(pending.cut.places(shard)[row_in(answer.error)])
                found.append(Refused(pending.number, row, with_row(answer.error, row)))
        return found

    def drain(self) -> None:
        """Wait until nothing is on the way."""
        while self._pending:
            self.collect()

    @property
    def saved(self) -> int:
        """Every shard has batches up to here in a snapshot."""
        return min(record.saved for record in self.records)

    def go_back(self, number: int) -> None:
        """Every shard as it was after a batch: the one after it was refused."""
        self.number = self._answered = number
        self._pending.clear()
        for shard in range(self.shards):
            self._bring(shard, lost=False)

    # ---- everything else ---------------------------------------------------------------------------------------------

    def _ask(self, shard: int, method: str, *arguments: Any) -> Any:
        return self.workers.result(shard, self.workers.submit(shard, method, *arguments))

    def ask(self, questions: dict[int, tuple[Any, ...]], method: str) -> dict[int, Any]:
        """One question to each of some shards, which are brought back if they die over it."""
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

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        answers = self.ask(dict.fromkeys(range(self.shards), arguments), method)
        return [answers[shard] for shard in range(self.shards)]

    def tallies(self) -> list[Tally]:
        return self.ask_all("tally")

    def stop(self) -> None:
        for shard in range(self.shards):
            self.workers.stop(shard)
