"""A race in plain Python, one sample at a time: what `core/race` computes, written to be read.

Kernel learners, the mixture and the linear models are those of the core, each tested against a twin of its own. Here is
what a race adds: who learns which rows and targets, what is due at which position of the stream, and how memory moves.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
from robust_twin import RobustScaler, RobustTarget

from gristmill import DropOldest, _core
from gristmill._base.estimator import Run, task_of
from gristmill._common.labels import wide
from gristmill.prepared.prepared import Prepared
from gristmill.prepared.target_scaler import TargetScale
from gristmill.race import baselines as trivial
from gristmill.race.race import SHARE
from gristmill.streams.rank import RankScaler
from gristmill.streams.relevance import FIRST as WEIGHED_FIRST
from gristmill.streams.relevance import RelevanceScaler
from gristmill.streams.scaling import StreamScaler

# ---- experts ------------------------------------------------------------------------------------------------------


class Learner:
    def __init__(self, asked: Any, race: RaceTwin) -> None:
        model = asked.model if isinstance(asked, Prepared) else asked
        self.model, self.race = copy.copy(model), race
        self.note, self.rests = "", False
        self.key, self.weigher = None, None
        scale = asked.scale if isinstance(asked, Prepared) else None
        self.scales_target = self.model.retargets and (
            race.shares_memory or (scale is not None and asked.target is not None)
        )
        if isinstance(asked, Prepared) and scale is None and asked.target is not None and self.model.retargets:
            self.scales_target = True
        if scale is not None:
            method = {"relevance": "standard", "rank-relevance": "rank"}.get(scale, scale)
            self.key = (method, asked.warmup)
            shared = race.scaler(self.key)
            if scale in ("relevance", "rank-relevance"):
                self.weigher = RelevanceScaler(asked.warmup)
                self.weigher.standard = shared

    @property
    def runs(self) -> bool:
        return not self.note and not self.rests

    @property
    def core(self) -> Any:
        return self.model._run.core

    def begin(self) -> None:
        run = Run(self.model.checked_parts())
        run.core = self.model.begin_core(
            run, np.zeros((1, self.race.width), np.float32 if self.race.shares_memory else float)
        )
        self.model._run, self.model.n_features_in_ = run, self.race.width
        if task_of(self.model) == "novelty":
            self.core.report_raw_scores()
        if self.weigher is not None:
            self.weigher.weights, self.weigher.history = np.ones(self.race.width), ()

    def rows(self, scaled: dict[Any, Any]) -> Any:
        rows = scaled[self.key]
        return self.model._rows(self.core, rows if self.weigher is None else self.weigher.weighed_rows(rows))

    def learn(self, scaled: dict[Any, Any], label: Any, classes: int) -> Any:
        try:
            return self.core.learn(self.rows(scaled), np.array([float(label)]), None, True, classes)
        except _core.RowError as failure:
            self.note = f"left at event {self.core.seen}: {str(failure).partition(': ')[2]}"
            return np.full((1, classes if classes > 2 else 1), np.nan)

    def score(self, scaled: dict[Any, Any], classes: int) -> Any:
        found = np.asarray(self.core.score(self.rows(scaled))[0])
        return wide(found, classes) if classes > 2 and found.shape[1] < classes else found

    def resize(self, memory: int) -> None:
        self.core.resize(memory)

    def points_within(self, memory: int, outputs: int) -> int:
        try:
            return int(self.core.points_within(max(memory, 0), outputs))
        except ValueError:
            return 0

    @property
    def weighing_bytes(self) -> int:
        return 8 * len(self.weigher.weights) * (3 + len(self.weigher.history)) if self.weigher and self.runs else 0


class Simple:
    """Scores by what was counted so far."""

    note, rests, runs, scales_target = "", False, True, False

    def __init__(self, asked: Any) -> None:
        self.asked, self.seen = asked, []

    def learn(self, scaled: dict[Any, Any], label: Any, classes: int) -> Any:
        found = self.score(scaled, classes)
        self.seen.append(label)
        return found

    def score(self, scaled: dict[Any, Any], classes: int) -> Any:
        count, labels = len(scaled[None]), self.seen
        if isinstance(self.asked, trivial.LastValue):
            return np.full((count, 1), labels[-1] if labels else 0.0)
        if isinstance(self.asked, trivial.RunningMean):
            total = 0.0
            for label in labels:
                total += label - labels[0]
            return np.full((count, 1), labels[0] + total / len(labels) if labels else 0.0)
        k = max(classes, 2)
        if isinstance(self.asked, trivial.Majority):
            counts = np.bincount(np.array(labels, dtype=int), minlength=k).astype(float)
            shares = (counts + 0.5) / (counts.sum() + 0.5 * k)
        else:
            same = 1.0 + sum(a == b for a, b in itertools.pairwise(labels))
            other = 1.0 + sum(a != b for a, b in itertools.pairwise(labels))
            shares = np.full(k, other / (same + other) / (k - 1) if labels else 1 / k)
            if labels:
                shares[int(labels[-1])] = same / (same + other)
        logs = _core.logarithms(shares[None])
        return np.repeat(logs[:, 1:] - logs[:, :1] if k == 2 else logs, count, axis=0)

    @property
    def bytes(self) -> int:
        return {trivial.NoChange: 32, trivial.RunningMean: 24}.get(type(self.asked), 8)


class Linear:
    note, rests, runs, scales_target = "", False, True, False

    def __init__(self, asked: Any, race: RaceTwin) -> None:
        self.changes = isinstance(asked, trivial.LineOfChanges)
        race.scaler(("standard", None))
        self.line: Any = None

    def learn(self, scaled: dict[Any, Any], label: Any, classes: int) -> Any:
        x, known = scaled["standard", None], self.line is not None
        if not known:
            self.line = _core.LeastSquares(x.shape[1] + (0 if self.changes else 1), 0.999)
            self.first = self.last = label
            self.row = x
        base = self.last if self.changes else self.first
        found = base + self.line.learn(self._features(x), np.array([label - base]))
        self.last, self.row = label, x
        return found[:, None] if known else np.zeros((1, 1))

    def _features(self, x: Any) -> Any:
        return np.ascontiguousarray(x - self.row) if self.changes else np.hstack([np.ones((len(x), 1)), x])

    def score(self, scaled: dict[Any, Any], classes: int) -> Any:
        x = scaled["standard", None]
        if self.line is None:
            return np.zeros((len(x), 1))
        return ((self.last if self.changes else self.first) + self.line.score(self._features(x)))[:, None]

    @property
    def bytes(self) -> int:
        return 0 if self.line is None else int(self.line.bytes) + self.row.nbytes + 24


# ---- the race -----------------------------------------------------------------------------------------------------


class RaceTwin:
    def __init__(
        self, experts: Any, task: str, width: int, memory: int | None = None, share: float | None = None
    ) -> None:
        self.task, self.width, self.memory = task, width, memory
        self.shares_memory = memory is not None
        self.scalers: dict[Any, StreamScaler] = {}
        self.experts: list[Any] = []
        for asked in experts:
            if isinstance(asked, trivial.Line | trivial.LineOfChanges):
                self.experts.append(Linear(asked, self))
            else:
                self.experts.append(Simple(asked) if isinstance(asked, trivial.Trivial) else Learner(asked, self))
        share = SHARE.get(task, 0.01) if share is None else share
        kind = "classes" if task == "classification" else "numbers"
        count = len(self.experts)
        self.mixture: Any = (
            _core.NoveltyMixture(count, share) if task == "novelty" else _core.Mixture(kind, count, share)
        )
        self.target: Any = None
        if any(expert.scales_target for expert in self.experts):
            self.target = RobustTarget() if self.shares_memory else TargetScale()
        self.held: list[tuple[Any, float]] = []  # samples before the targets are measured
        for _, learner in self.learners:
            learner.begin()
        self.memory_shares = Shares(self)

    def scaler(self, key: Any) -> Any:
        if key not in self.scalers:
            if key[0] == "rank":
                self.scalers[key] = RankScaler(key[1])
            elif key[0] == "standard" and self.shares_memory and self.task != "novelty":
                self.scalers[key] = RobustScaler(*key)
            else:
                self.scalers[key] = StreamScaler(*key)
        return self.scalers[key]

    @property
    def learners(self) -> list[tuple[int, Learner]]:
        return [(place, expert) for place, expert in enumerate(self.experts) if isinstance(expert, Learner)]

    @property
    def seen(self) -> int:
        return int(self.mixture.seen)

    @property
    def classes(self) -> int:
        return 0 if self.task != "classification" else int(self.mixture.classes)

    def learn(self, x: Any, label: float) -> Any:
        """One sample; returns its score before it was learned."""
        met, classes = self.classes, max(self.classes, int(label) + 1) if self.task == "classification" else 0
        if classes > max(met, 2):
            self.memory_shares.share(self.memory_shares.ranked(), classes)
        if self.task == "classification":
            self.mixture.add_classes(classes)
        scaled = {None: x[None]} | {key: scaler.learn_transform(x[None]) for key, scaler in self.scalers.items()}
        self._follow()
        if isinstance(self.target, RobustTarget) and self.target.holds:
            return self._hold(x, label)
        raw, tamed = label, label
        if isinstance(self.target, RobustTarget):
            label, tamed = self.target.clipped(label), self.target.tamed(label)
        scores, places = [], []
        for place, expert in enumerate(self.experts):
            if expert.runs:
                places.append(place)
                scores.append(self._learned(expert, scaled, tamed, classes))
        stacked = np.ascontiguousarray(np.stack(scores))
        if self.task == "novelty":
            out = self.mixture.learn(stacked, places)
        else:
            out = self.mixture.learn(stacked, places, np.array([float(label)]), met)
        self._renew(raw)
        return np.asarray(out)[0]

    def _follow(self) -> None:
        """Stored points follow maps of ranks that were renewed by this sample."""
        for _, learner in self.learners:
            scaler = None if learner.key is None else self.scalers[learner.key]
            if learner.runs and isinstance(scaler, RankScaler) and scaler.passages:
                weights = np.ones(self.width) if learner.weigher is None else learner.weigher.weights
                learner.core.follow_ranks(scaler._scaling, np.arange(self.width), weights)

    def _hold(self, x: Any, label: float) -> Any:
        """A sample that is learned once the targets are measured; the median so far is predicted."""
        median = np.array([self.target.median])
        places = [place for place, expert in enumerate(self.experts) if expert.runs]
        self.mixture.learn(np.full((len(places), 1, 1), median[0]), places, median, 0)
        self.held.append((x, label))
        self.target.learn(label)
        if not self.target.holds:
            for x, label in self.held:
                scaled = {None: x[None]} | {key: scaler.scale_checked(x[None]) for key, scaler in self.scalers.items()}
                for expert in self.experts:
                    if expert.runs:
                        self._learned(expert, scaled, self.target.tamed(label), 0)
        return median

    def _learned(self, expert: Any, scaled: Any, label: float, classes: int) -> Any:
        if self.target is None or not expert.scales_target:
            return expert.learn(scaled, label, classes)
        if isinstance(self.target, RobustTarget):
            if self.target.is_known:
                return self.target.outside(expert.learn(scaled, self.target.inside(label), classes))
            expert.core.learn(expert.rows(scaled), np.zeros(1), np.zeros(1), False, 0)
            return np.array([[self.target.median]])
        if not self.target.is_known:  # the sample is counted and not learned
            expert.core.learn(expert.rows(scaled), np.zeros(1), np.zeros(1), False, 0)
            return self.target.means(np.array([label]))[:, None]
        return self.target.outside(expert.learn(scaled, self.target.inside(np.array([label]))[0], classes))

    def _renew(self, label: float) -> None:
        moved = None
        if self.target is not None:
            moved = self.target.learn(label if isinstance(self.target, RobustTarget) else np.array([label]))
        if moved is not None:
            for _, learner in self.learners:
                if learner.runs and learner.scales_target:
                    learner.core.rescale_targets(*(np.array([number]) for number in moved))
        due = [
            place
            for place, learner in self.learners
            if learner.runs and learner.weigher is not None and learner.core.seen
        ]
        if doubles(self.seen, WEIGHED_FIRST):
            if self.shares_memory and self.task != "novelty":
                weights = self.mixture.weights
                due = sorted(due, key=lambda place: (-weights[place], place))[
                    : 2 if self.task == "classification" else 3
                ]
            for place in due:
                self.experts[place].weigher.renew(self.experts[place].model)
        self.memory_shares.move()

    def score(self, X: Any) -> Any:
        scaled = {None: X} | {key: scaler.scale_checked(X) for key, scaler in self.scalers.items()}
        scores, places = [], []
        for place, expert in enumerate(self.experts):
            if expert.runs:
                found = expert.score(scaled, self.classes)
                scores.append(self.target.outside(found) if self.target and expert.scales_target else found)
                places.append(place)
        return np.asarray(self.mixture.mix(np.ascontiguousarray(np.stack(scores)), places))


def doubles(seen: int, first: int) -> bool:
    """Whether this is a position first, 2 first, 4 first, ..."""
    times = seen // first
    return seen > 0 and seen % first == 0 and times & (times - 1) == 0


class Shares:
    """The memory of a race, by expert."""

    def __init__(self, race: RaceTwin) -> None:
        self.race, self.bytes, self.begun = race, {}, 0
        self.returned: list[int] = []
        self.moves = race.task != "novelty"
        if race.shares_memory:
            self.share([place for place, _ in race.learners], 0)
            early = sum(64 * 8 * race.width for scaler in race.scalers.values() if isinstance(scaler, RobustScaler))
            self.begun = min(self.bytes.values()) + early // len(self.bytes)

    def parts(self, running: list[int], classes: int) -> dict[int, int]:
        race = self.race
        decline = 0.5 if self.moves and len(running) <= 4 else 1.0
        whole = sum(decline**rank for rank in range(len(running)))
        taken = sum(expert.bytes for expert in race.experts if not isinstance(expert, Learner))
        taken += sum(race.experts[place].weighing_bytes for place in running)
        for scaler in race.scalers.values():
            ranks = isinstance(scaler, RankScaler)
            taken += race.width * ((8 * 256 + 2 * 520) if ranks else 24)
            if isinstance(scaler, RobustScaler) and scaler.n_seen_ < 64:
                taken += 64 * 8 * race.width
        if isinstance(race.target, RobustTarget):
            taken += race.target.bytes + (8 * 8 * (race.width + 1) if race.target.holds else 0)
        taken += race.mixture.bytes_for(classes) if self.moves else race.mixture.bytes
        taken += _core.Intervals(1 if race.task == "regression" else 0).bytes
        free = race.memory - taken
        parts = {place: int(free * decline**rank / whole) for rank, place in enumerate(running)}
        if not self.moves:  # novelty detectors are limited so that a sample takes little time
            most = max(1.0, race.memory / 1e6) * min(400, max(50, 50_000 / race.width))
            for place, part in parts.items():
                points = race.experts[place].points_within(part, 1)
                parts[place] = part if points <= most else int(part * most / points)
            return parts
        if self.begun:
            windows = [place for place in parts if isinstance(race.experts[place].model.budget, DropOldest)]
            for place in windows:
                parts[place] = min(parts[place], self.begun)
            steady = [place for place in parts if place not in windows]
            if steady:
                parts[steady[0]] += free - sum(parts.values())
        return parts

    def among(self, running: list[int], classes: int) -> dict[int, int]:
        parts, outputs = self.parts(running, classes), classes if classes > 2 else 1
        while len(parts) > 1:
            counts = {place: self.race.experts[place].points_within(part, outputs) for place, part in parts.items()}
            few = [place for place, count in counts.items() if count < (50 if self.moves else 12)]
            first, *_, last = counts
            if not few and not (self.moves and self.race.seen >= 400 and counts[first] < 300):
                break
            out = few[-1] if few else last
            parts = self.parts([place for place in parts if place != out], classes)
        return parts

    def share(self, running: list[int], classes: int) -> None:
        if not self.race.shares_memory:
            return
        parts = self.among(running, classes)
        for place, learner in self.race.learners:
            if place not in parts and not learner.rests:
                learner.rests = True
                self.race.mixture.leave(place)
                learner.begin()
        for place in sorted(
            parts, key=lambda place: parts[place] - self.bytes.get(place, 0)
        ):  # first those that shrink
            self.race.experts[place].resize(parts[place])
        self.bytes = parts

    def ranked(self) -> list[int]:
        recent, counted = self.race.mixture.recent, self.race.mixture.counted
        mean = np.where(counted > 0, recent / np.maximum(counted, 1), np.inf)
        return sorted(
            (place for place, learner in self.race.learners if learner.runs), key=lambda place: (mean[place], place)
        )

    def move(self) -> None:
        race = self.race
        if not (race.shares_memory and self.moves and doubles(race.seen, 100)):
            return
        running, recent, counted = self.ranked(), race.mixture.recent, np.maximum(race.mixture.counted, 1)
        mean = recent / counted
        noise = np.sqrt(mean / counted) if race.task == "classification" else 1.5 * mean / np.sqrt(counted)
        race.mixture.reset_recent()
        if not running:
            return
        if race.seen > 100:
            best, outputs = running[0], race.classes if race.classes > 2 else 1
            room = race.experts[best].points_within(self.bytes.get(best, 0), outputs)
            if race.experts[best].core.size >= 0.95 * room:
                running = running[: max(3, round(len(running) * 0.65))]
            elif race.seen >= 400:
                running = running[:3] + [p for p in running[3:] if not mean[p] - mean[best] > 2.0 * noise[p]]
        resting = [place for place, learner in race.learners if place not in running and not learner.note]
        if race.seen >= 1600 and resting:
            order = {place: turn for turn, place in enumerate(self.returned)}
            back = min(resting, key=lambda place: (order.get(place, -1), place))
            self.returned = [*(place for place in self.returned if place != back), back]
            race.experts[back].rests = False
            race.mixture.enter(back)
            running = [*running, back]
        self.share(running, race.classes)
