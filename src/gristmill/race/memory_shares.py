"""The memory of a race: shared out among the experts, and moved from those that lose to those that lead.

Room moves only at positions of the stream that double, and who loses room gives it up before another gets it. Each time
that the leader needs more, a part of the experts goes on, until few are left; where it does not, those go on that were not
clearly worse. One that rested comes back for a stretch, and stays if it did better. A window does not grow: it is there for
what changes.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from ..budgets import DropOldest

FIRST = 100  #: the first position at which losses are compared; nobody rests before the second
LEAST = 12  #: points that a lone expert must have room for
FEWEST = 50  #: points that each of several must have room for: with fewer it cannot show what it is worth
ENOUGH = 300  #: points that the leader has before it shares the room with others, once losses say who leads
KEEP = 0.65  #: of the experts go on at each such position where the leader needs room
FULL = 0.95  #: of its points stored: it does
LAST = 3  #: so many do, if the leader has enough points beside them
RETURN = 1600  #: from this position on one that rested comes back each time
SETTLED = 400  #: before that losses say too little: nobody rests who is not in the way
CLEAR = 2.0  #: times what chance does to a mean loss: an expert that is worse than the leader by more has lost
DECLINE = 0.5  #: room of each of the last few, against the one before it

# Of novelty detectors, whose room does not move; they are limited so that an event takes little time.
MOST = 400  #: points of a detector, for each megabyte of all
NUMBERS = 50_000  #: numbers in them: wide rows take more time
SOME = 50  #: points that it has room for, however wide

_WIDE = 4000  #: columns from which on an error says what else there is
_INSTEAD = (
    "; sparse rows of many columns need no scaling: use KernelClassifier(Linear(), budget=Merge(500)) or "
    "KernelRegressor(Linear(), budget=Merge(500)), which keep them sparse, or hash the columns to fewer"
)


class Rooms:
    """Who has how much; `memory` in bytes, or None for experts that keep the budgets they came with."""

    def __init__(self, memory: int | None, moves: bool = True) -> None:
        self.memory = memory
        self.moves = moves  #: not where nobody can say who loses
        self.shares: dict[int, int] = {}  #: bytes by place of the lane
        self.begun = 0  #: what each had at first
        self.tried: list[int] = []  #: places of those that came back, oldest first

    def copy(self) -> Self:
        other = copy.copy(self)
        other.shares, other.tried = dict(self.shares), list(self.tried)
        return other

    # ---- when ----------------------------------------------------------------------------------------------

    def due(self, seen: int) -> int | None:
        """Events until room may move."""
        if self.memory is None or not self.moves:
            return None
        position = FIRST
        while position <= seen:
            position *= 2
        return position - seen

    def is_due(self, seen: int) -> bool:
        """Whether that is now."""
        if self.memory is None or not self.moves or seen == 0 or seen % FIRST != 0:
            return False
        times = seen // FIRST
        return times & (times - 1) == 0

    # ---- how much ------------------------------------------------------------------------------------------

    def _free(self, core: Any, running: list[int], classes: int) -> int:
        """What is there for the points of these."""
        fixed = sum(lane.memory_bytes for lane in core.lanes if not hasattr(lane, "resize"))
        weighing = sum(lane.weighing_bytes for place, lane in core.learning_lanes if place in running)
        scaling = 24 * core.width * len(core.scalings.by_key)
        mixing = int(core.mixture.bytes_for(classes))
        return int(self.memory or 0) - fixed - weighing - scaling - mixing - core.errors.bytes

    def _parts(self, core: Any, running: list[int], classes: int) -> dict[int, int]:
        """Bytes for each: alike for many, the best first and most for few."""
        decline = DECLINE if self.moves and len(running) <= LAST + 1 else 1.0
        whole = sum(decline**place for place in range(len(running)))
        free = self._free(core, running, classes)
        parts = {lane: int(free * decline**place / whole) for place, lane in enumerate(running)}
        if not self.moves:
            return {lane: self._at_most(core.lanes[lane].core, room) for lane, room in parts.items()}
        if not self.begun:
            return parts
        for lane in parts:  # a window stays as short as it began
            if isinstance(core.lanes[lane].model.budget, DropOldest):
                parts[lane] = min(parts[lane], self.begun)
        steady = next((lane for lane in parts if not isinstance(core.lanes[lane].model.budget, DropOldest)), None)
        if steady is not None:
            parts[steady] += free - sum(parts.values())
        return parts

    def _at_most(self, core: Any, room: int) -> int:
        """The room of a detector, which is limited for the sake of time."""
        most = max(1.0, int(self.memory or 0) / 10**6) * min(MOST, max(SOME, NUMBERS / core.width))
        points = _points(core, room, 1)
        return room if points <= most else int(room * most / points)

    @staticmethod
    def _counts(core: Any, shares: dict[int, int], classes: int) -> dict[int, int]:
        """How many points each has room for, the best first."""
        outputs = classes if classes > 2 else 1
        return {place: _points(core.lanes[place].core, room, outputs) for place, room in shares.items()}

    def _crowded_out(self, core: Any, shares: dict[int, int], classes: int) -> int | None:
        """Who makes way: the last of those that have too little room, else the last of all while the leader has."""
        counts = self._counts(core, shares, classes)
        few = [place for place, count in counts.items() if count < (FEWEST if self.moves else LEAST)]
        if few:
            return few[-1]
        first, *_, last = counts
        return last if self.moves and core.seen >= SETTLED and counts[first] < ENOUGH else None

    def shared_out(self, core: Any, running: list[int], classes: int) -> dict[int, int]:
        """Bytes for these, the best first, or for as many of them as there is room for."""
        shares = self._parts(core, running, classes)
        while len(shares) > 1 and (out := self._crowded_out(core, shares, classes)) is not None:
            shares = self._parts(core, [place for place in shares if place != out], classes)
        return shares

    def _share(self, core: Any, running: list[int], classes: int) -> None:
        """Room for these, the best first, as many as there is room for; the others rest."""
        shares = self.shared_out(core, running, classes)
        for place, lane in core.learning_lanes:
            if place not in shares and not lane.rests:
                lane.rests = True
                core.mixture.leave(place)
                lane.begin(core.width)
        for place in sorted(shares, key=lambda p: shares[p] - self.shares.get(p, 0)):  # who shrinks comes first
            core.lanes[place].resize(shares[place])
        self.shares = shares

    def check(self, core: Any, classes: int) -> None:
        """Raise where not even one expert would have room with so many classes."""
        if self.memory is None or (classes <= max(core.classes, 2) and core.seen > 0):
            return
        one = [place for place, lane in core.learning_lanes if not lane.note][:1]
        if one and self._counts(core, self._parts(core, one, classes), classes)[one[0]] < LEAST:
            least, free = int(self.memory), self._free(core, one, classes)
            while self._counts(core, {one[0]: least - int(self.memory) + free}, classes)[one[0]] < LEAST:
                least += max(1000, least // 20)
            raise ValueError(
                f"memory={self.memory} bytes are too few for {core.width} columns and {max(classes, 1)} classes: "
                f"it takes at least {least} bytes{_INSTEAD if core.width > _WIDE else ''}"
            )

    def begin(self, core: Any) -> None:
        self.check(core, 0)
        if self.memory is not None:
            self._share(core, [place for place, _ in core.learning_lanes], 0)
            self.begun = min(self.shares.values(), default=0)

    def fit(self, core: Any) -> None:
        """Rows are wider than before."""
        if self.memory is not None:
            self._share(core, self._ranked(core) if self.moves else list(self.shares), core.classes)

    def widen(self, core: Any, classes: int) -> None:
        """A class comes, and every stored point gets a coefficient more."""
        if self.memory is not None:
            self._share(core, self._ranked(core), classes)

    # ---- who -----------------------------------------------------------------------------------------------

    def _ranked(self, core: Any) -> list[int]:
        """Those that run, the best of the last stretch first."""
        recent, counted = core.mixture.recent, core.mixture.counted
        mean = np.where(counted > 0, recent / np.maximum(counted, 1), np.inf)
        return sorted((p for p, lane in core.learning_lanes if lane.runs), key=lambda p: (mean[p], p))

    def move(self, core: Any) -> None:
        running = self._ranked(core)
        lost = self._lost(core, running)
        core.mixture.reset_recent()
        if not running:
            return
        if core.seen > FIRST:
            if self._is_full(core, running[0]):
                running = running[: max(LAST, round(len(running) * KEEP))]
            elif core.seen >= SETTLED:
                running = [*running[:LAST], *(place for place in running[LAST:] if not lost[place])]
        back = self._returning(core, running) if core.seen >= RETURN else None
        if back is not None:
            self.tried = [*(place for place in self.tried if place != back), back]
            core.lanes[back].rests = False
            core.mixture.enter(back)
            running = [*running, back]
        self._share(core, running, core.classes)

    def _lost(self, core: Any, running: list[int]) -> Any:
        """By place, whether an expert was worse than the leader of the last stretch by more than chance."""
        recent, counted = core.mixture.recent, np.maximum(core.mixture.counted, 1)
        mean = recent / counted
        best = mean[running[0]] if running else 0.0
        # Of losses up to 1 the variance is at most the mean; those of numbers deviate by about their mean.
        noise = np.sqrt(mean / counted) if core.task == "classification" else 1.5 * mean / np.sqrt(counted)
        return mean - best > CLEAR * noise

    def _is_full(self, core: Any, place: int) -> bool:
        """Whether the leader could use more room; before that nobody has to make way, and early losses say little."""
        lane = core.lanes[place]
        outputs = core.classes if core.classes > 2 else 1
        return bool(lane.core.size >= FULL * _points(lane.core, self.shares.get(place, 0), outputs))

    def _returning(self, core: Any, running: list[int]) -> int | None:
        """Of those that rest the one that has waited longest; who never came back has waited since the beginning."""
        resting = [place for place, lane in core.learning_lanes if place not in running and not lane.note]
        order = {place: turn for turn, place in enumerate(self.tried)}
        return min(resting, key=lambda place: (order.get(place, -1), place), default=None)

    # ---- files ---------------------------------------------------------------------------------------------

    def to_json(self) -> Any:
        shares = [[place, room] for place, room in self.shares.items()]
        return {"shares": shares, "tried": self.tried, "begun": self.begun}

    def from_json(self, found: Any, lanes: int) -> None:
        self.shares = {int(place): int(room) for place, room in found["shares"]}
        self.tried = [int(place) for place in found["tried"]]
        self.begun = int(found["begun"])
        if not all(0 <= place < lanes for place in (*self.shares, *self.tried)):
            raise ValueError("its room is that of experts that it does not have")


def _points(core: Any, room: int, outputs: int) -> int:
    """How many points fit; none where the room does not even hold one."""
    try:
        return int(core.points_within(max(room, 0), outputs))
    except ValueError:
        return 0
