"""What a race runs on: its lanes, the mixture of what they say, and the room that moves between them.

A core as `_stream.py` asks for one. The experts learn whatever the mixture does, so that each goes over a chunk by itself;
then the mixture goes over what they said. A chunk is cut where a class comes and where something is due (columns weighed
anew, room moved), all at positions of the stream, so that the numbers are the same however a stream is cut.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..prepared.target_scaler import TargetScale
from .expert import Lane, Scalings, lane_of
from .memory_shares import Rooms
from .novelty_mixture import NoveltyMixture

Floats = npt.NDArray[np.float64]

LARGEST = 1e140  #: of a column: a million squares of such numbers can still be added
MOST_PASSES = 6  #: over a batch, where nobody says how many
MOST_KEPT, LEAST_KEPT = 1000, 40  #: rows kept back to see whether another pass helps: a fifth of all, in between
#: experts whose columns are weighed anew at a time, where memory is shared out: it takes its time
WEIGHED = {"classification": 2, "regression": 3}
BLOCK = 2**17  #: numbers that go through all experts at a time: so many stay in the cache, however they are scaled
_SAFE = 256  #: rows from which on a copy of everything costs less than learning them
_ANY = 0.9  #: coverage at which nobody looks
_UNKNOWN = 20.0  #: how much less than the least likely class one is that has not come yet, as a logarithm


def _mixture(task: str, experts: int, share: float) -> Any:
    """How experts of a task are mixed; share: of the weights that go round, or of the events that are alarms."""
    if task == "novelty":
        return NoveltyMixture(experts, share)
    return _core.Mixture("classes" if task == "classification" else "numbers", experts, share)


class RaceCore:
    """Lanes, mixture and room; `experts` are learners that have not begun.

    memory: bytes that all of it may take, or None for experts that keep the budgets they came with.
    """

    is_plain = is_single = is_sparse = False

    def __init__(self, experts: Any, task: str, share: float, memory: int | None = None) -> None:
        self.task, self.share = task, share
        self.is_fresh = True  #: no event has come
        self.scalings = Scalings()
        single = memory is not None  # who has little room stores what is scaled as single numbers
        self.lanes: list[Any] = [lane_of(expert, self.scalings, single) for expert in experts]
        #: how learners are told targets: scaled where they ask for it, and where memory is shared out
        self.target = TargetScale() if any(lane.scales_target for _, lane in self.learning_lanes) else None
        self.mixture = _mixture(task, len(self.lanes), share)
        self.errors = _core.Intervals(1 if task == "regression" else 0)  # of the mixture, for intervals
        self.rooms = Rooms(memory, moves=task != "novelty")
        self.width = self.began = 0  #: columns now, and when the race began: widths of kernels follow from these
        self._quiet = 0  #: events before which nothing is due; 0: it has to be looked up
        self._patient = False  #: a batch is learned: results count for more than time
        self._door = threading.Lock()

    # ---- facts ---------------------------------------------------------------------------------------------

    @property
    def seen(self) -> int:
        return int(self.mixture.seen)

    @property
    def classes(self) -> int:
        return int(self.mixture.classes)

    @property
    def outputs(self) -> int:
        return int(self.mixture.outputs)

    @property
    def memory_bytes(self) -> int:
        lanes = sum(lane.memory_bytes for lane in self.lanes)
        return lanes + self.scalings.memory_bytes + int(self.mixture.bytes) + self.errors.bytes

    @property
    def learning_lanes(self) -> list[tuple[int, Lane]]:
        """Those that are more than trivial."""
        return [(place, lane) for place, lane in enumerate(self.lanes) if isinstance(lane, Lane)]

    # ---- learning ------------------------------------------------------------------------------------------

    def begin(self, width: int) -> None:
        self.width = self.began = width
        for _, lane in self.learning_lanes:
            lane.begin(width)
        self.rooms.begin(self)

    def widen(self, width: int) -> None:
        """More columns from now on, in which everything so far was 0."""
        with self._door:
            fresh = np.zeros(width - self.width)
            for scaler in self.scalings.by_key.values():
                scaler._widen(fresh, self.seen)
            for lane in self.lanes:
                if hasattr(lane, "widen"):
                    lane.widen(width)
            self.width = width
            self.rooms.fit(self)
            self._quiet = 0

    def check(self, rows: Floats) -> None:
        """Raise for the first row that cannot be learned."""
        if rows.shape[1] != self.width:
            raise ValueError(f"X has {rows.shape[1]} features, but the model was started with {self.width}")
        if not (rows.max() < LARGEST and rows.min() > -LARGEST):  # or not a number
            bad = np.argwhere(~(np.abs(rows) < LARGEST))
            row, column = (int(place) for place in bad[0])
            value = float(rows[row, column])
            kind = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else "a number that is too large"
            raise ValueError(f"Input X contains {kind}: row {row}, column {column} is {value}")

    def learn(self, rows: Floats, numbers: Floats, weights: Any, want_scores: bool, known: int = 0) -> Any:
        """One pass over a chunk; on any error nothing has happened."""
        self.check(rows)
        if self.task == "classification":
            self.rooms.check(self, max(known, int(numbers.max()) + 1))
        with self._door, self._undoing(len(numbers)):
            said, start = [], 0
            while start < len(numbers):
                stop, classes = self._cut(numbers, start, known)
                said.append(self._step(rows[start:stop], numbers[start:stop], classes))
                start = stop
            return _joined(said) if want_scores else None

    @contextlib.contextmanager
    def _undoing(self, count: int) -> Iterator[None]:
        """A long chunk is undone from a copy; of a short one nothing can go wrong but an interrupt, and that waits."""
        if count < _SAFE and hasattr(signal, "pthread_sigmask"):
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                yield
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return
        mark = self._mark()
        try:
            yield
        except BaseException:
            self._back(mark)
            raise

    def _cut(self, numbers: Floats, start: int, known: int) -> tuple[int, int]:
        """Up to which row the next step goes, and how many classes are known in it."""
        if self._quiet == 0:
            self._quiet = self._due()
        stop = min(len(numbers), start + self._quiet, start + max(64, BLOCK // self.width))
        if self.task != "classification":
            return stop, 0
        classes = max(self.classes, known, int(numbers[start]) + 1)
        if stop == start + 1:
            return stop, classes
        later = np.flatnonzero(numbers[start + 1 : stop] >= max(classes, 2))
        stop = start + 1 + int(later[0]) if len(later) else stop
        return stop, max(classes, int(numbers[start:stop].max()) + 1)

    def _due(self) -> int:
        """Events until something is due: room moves, columns are weighed, targets are measured anew."""
        due = [self.rooms.due(self.seen), *(lane.due() for _, lane in self.learning_lanes)]
        if self.target is not None:
            due.append(self.target.due())
        return min((events for events in due if events is not None), default=2**62)

    def _step(self, rows: Floats, numbers: Floats, classes: int) -> Floats:
        met = self.classes
        if classes > max(met, 2):
            self.rooms.widen(self, classes)
        self.mixture.add_classes(classes)
        scaled = self.scalings.learn(rows)
        places = [place for place, lane in enumerate(self.lanes) if lane.runs]
        said = np.empty((len(places), len(numbers), classes if classes > 2 else 1))
        for line, place in enumerate(places):
            said[line] = self._told(self.lanes[place], scaled, numbers, classes)
        out = self.mixture.learn(said, places, numbers, met)
        if self.task == "regression":
            self.errors.follow(out, numbers[:, None], None, _ANY)
        self._settle(numbers)
        return np.asarray(out)

    def _told(self, lane: Any, scaled: Any, numbers: Floats, classes: int) -> Floats:
        if self.target is None or not lane.scales_target:
            return np.asarray(lane.learn(scaled, numbers, classes))
        if not self.target.is_known:  # events count, and teach nothing before it is known how targets are measured
            lane.pass_over(scaled, len(numbers))
            return self.target.means(numbers)[:, None]
        return self.target.outside(lane.learn(scaled, self.target.inside(numbers), classes))

    def _settle(self, numbers: Floats) -> None:
        """What is due after a step."""
        moved = None if self.target is None else self.target.learn(numbers)
        self._quiet -= len(numbers)
        if self._quiet > 0:
            return
        for _, lane in self.learning_lanes:
            if lane.runs and moved is not None and lane.scales_target:
                lane.core.rescale_targets(*(np.array([number]) for number in moved))
        for place in self._to_weigh():
            self.lanes[place].renew(always=self._patient)
        if self.rooms.is_due(self.seen):
            self.rooms.move(self)

    def _to_weigh(self) -> list[int]:
        """Whose columns are weighed anew now: all that are due, or the heaviest where memory is shared out."""
        due = [place for place, lane in self.learning_lanes if lane.runs and lane.is_due() and lane.core.seen]
        if self.rooms.memory is None or self._patient:
            return due
        weights = self.mixture.weights
        return sorted(due, key=lambda place: (-weights[place], place))[: WEIGHED[self.task]]

    def learn_batch(self, rows: Floats, numbers: Floats, known: int, passes: int | str) -> None:
        """A batch in several passes; "auto": until a tail that is kept back is told no better, and then that too."""
        self._patient = True
        try:
            self._learn_batch(rows, numbers, known, passes)
        finally:
            self._patient = False

    def _learn_batch(self, rows: Floats, numbers: Floats, known: int, passes: int | str) -> None:
        count = len(numbers)
        tail = min(MOST_KEPT, count // 5) if passes == "auto" else 0
        if passes == "auto" and tail < LEAST_KEPT:
            self.learn(rows, numbers, None, False, known)
            return
        head = count - tail
        self.learn(rows[:head], numbers[:head], None, False, known)
        often = self._until_it_helps(rows, numbers, head) if passes == "auto" else int(passes)
        if passes != "auto":
            for _ in range(often - 1):
                self._revisit(rows, numbers)
        elif tail:
            self.learn(rows[head:], numbers[head:], None, False, known)
            for _ in range(often - 1):
                self._revisit(rows[head:], numbers[head:])

    def _until_it_helps(self, rows: Floats, numbers: Floats, head: int) -> int:
        """As many passes over the first rows as the others are told better for."""
        best, often = self._tail_error(rows[head:], numbers[head:]), 1
        while often < MOST_PASSES:
            mark = self._mark()
            self._revisit(rows[:head], numbers[:head])
            error = self._tail_error(rows[head:], numbers[head:])
            if not error < best:
                self._back(mark)
                break
            best, often = error, often + 1
        return often

    def _tail_error(self, rows: Floats, numbers: Floats) -> float:
        scores, _ = self.score(rows)
        if self.task == "regression":
            return float(np.abs(scores[:, 0] - numbers).mean())
        said = (scores[:, 0] >= 0) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return float((said != numbers).mean())

    def _revisit(self, rows: Floats, numbers: Floats) -> None:
        """One more pass of the learners over the events that came last."""
        with self._door:
            scaled = self.scalings.look(rows)
            known = self.target is not None and self.target.is_known
            for _, lane in self.learning_lanes:
                if lane.runs and (known or not lane.scales_target):
                    lane.revisit(scaled, self.target.inside(numbers) if self.target and lane.scales_target else numbers)

    # ---- answers -------------------------------------------------------------------------------------------

    def score(self, rows: Floats) -> tuple[Floats, int]:
        self.check(rows)
        with self._door:
            scaled = self.scalings.look(rows)
            said, places = [], []
            for place, lane in enumerate(self.lanes):
                if lane.runs:
                    one = lane.score(scaled, self.classes)
                    said.append(self.target.outside(one) if self.target is not None and lane.scales_target else one)
                    places.append(place)
            mixed = self.mixture.mix(np.ascontiguousarray(np.stack(said)), places)
            return np.asarray(mixed), self.classes

    def intervals(self) -> Any:
        """How far the mixture may be off, as it is now."""
        with self._door:
            return self.errors.copy()

    def probabilities(self, scores: Floats) -> Floats:
        return np.asarray(self.mixture.probabilities(scores))

    # ---- as it was, and in files ---------------------------------------------------------------------------

    def _mark(self) -> Any:
        lanes = [lane.mark() for lane in self.lanes]
        target = None if self.target is None else self.target.copy()
        return lanes, self.scalings.mark(), self.mixture.copy(), self.rooms.copy(), target, self.errors.copy()

    def _back(self, mark: Any) -> None:
        lanes, scalings, self.mixture, self.rooms, self.target, self.errors = mark
        self._quiet = 0
        for lane, found in zip(self.lanes, lanes, strict=True):
            lane.back(found)
        self.scalings.back(scalings)

    def state(self) -> dict[str, Any]:
        """Arrays by name; what is no number is a JSON text among them."""
        with self._door:
            arrays = {f"mixture.{name}": array for name, array in self.mixture.state().items()}
            plan: dict[str, Any] = {
                "width": self.width,
                "began": self.began,
                "rooms": self.rooms.to_json(),
                "lanes": [],
                "scalings": {},
            }
            for (how, warmup), scaler in self.scalings.by_key.items():
                found, plan["scalings"][f"{how}.{warmup}"] = scaler._to_file()
                arrays |= {f"{how}.{warmup}.{name}": array for name, array in found.items()}
            for place, lane in enumerate(self.lanes):
                found, fitted = lane.to_file()
                arrays |= {f"{place}.{name}": array for name, array in found.items()}
                plan["lanes"].append(fitted)
            if self.target is not None:
                arrays["target"] = self.target.state()
            if self.task == "regression":
                arrays |= self.errors.state()
            text = np.frombuffer(json.dumps(plan).encode(), dtype=np.uint8)
            return {**arrays, "plan": text, "classes": np.array([self.classes], dtype=np.uint64)}

    def restore(self, state: dict[str, Any]) -> None:
        """requires: the same experts as those of the state."""
        plan = plan_of(state)
        self.width, self.began, self.is_fresh = plan["width"], plan["began"], False
        self.mixture.restore(_within(state, "mixture."))
        for (how, warmup), scaler in self.scalings.by_key.items():
            scaler._from_file(_within(state, f"{how}.{warmup}."), plan["scalings"][f"{how}.{warmup}"])
            if scaler.n_features_in_ != self.width:
                raise ValueError("its scaling does not fit its points")
        if len(plan["lanes"]) != len(self.lanes):
            raise ValueError("it does not have as many experts as it states")
        for place, (lane, fitted) in enumerate(zip(self.lanes, plan["lanes"], strict=True)):
            lane.from_file(_within(state, f"{place}."), fitted, self.width, self.classes)
        self.rooms.from_json(plan["rooms"], len(self.lanes))
        if self.target is not None and "target" in state:
            self.target.restore(state["target"])
        elif self.target is not None:  # a file from before experts asked for it
            self.target = None
            for _, lane in self.learning_lanes:
                lane.scales_target = False
        self.errors.restore({name: state[name] for name in ("intervals",) if name in state})


def plan_of(state: dict[str, Any]) -> Any:
    """What a state says beside its numbers."""
    plan = json.loads(bytes(np.asarray(state["plan"], dtype=np.uint8)).decode())
    if not isinstance(plan["width"], int) or plan["width"] < 1:
        raise ValueError(f"it states {plan['width']!r} features")
    if type(plan.setdefault("began", plan["width"])) is not int or not 1 <= plan["began"] <= plan["width"]:
        raise ValueError(f"it states that it began with {plan['began']!r} features")
    return plan


def _within(state: dict[str, Any], scope: str) -> dict[str, Any]:
    return {name.removeprefix(scope): array for name, array in state.items() if name.startswith(scope)}


def _joined(said: list[Floats]) -> Floats:
    """Steps as one: of two classes each gets a score, classes that had not come yet next to nothing."""
    widest = max(part.shape[1] for part in said)
    return np.concatenate([_widened(part, widest) for part in said])


def _widened(part: Floats, outputs: int) -> Floats:
    if part.shape[1] == outputs:
        return part
    if part.shape[1] == 1:
        part = np.hstack([-0.5 * part, 0.5 * part])
    low = part.min(axis=1, keepdims=True) - _UNKNOWN
    return np.hstack([part, np.repeat(low, outputs - part.shape[1], axis=1)])
