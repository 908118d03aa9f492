"""Landmarks sampled from a stream and a linear part that learns at every event."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common.seeds import generator
from .._common.types import Fields
from .compare import Comparison, SimilarityError, size_of, take

Values = npt.NDArray[np.float64]


class Settings(NamedTuple):
    """The parameters as they were when the learner began."""

    comparison: Comparison
    n_landmarks: int
    freeze: int | None
    C: float
    epsilon: float | None  #: None: classification


def calibration_for(classes: int) -> Any:
    """Scores into probabilities, as the compiled learners do it, for so many classes."""
    made = _core.Calibration()
    _widen(made, 0, classes)
    return made


def _widen(calibration: Any, before: int, classes: int) -> None:
    if before <= 2 < classes:
        calibration.split()
    for _ in range(max(before, 2), classes):
        calibration.add()


class Sample:
    """The landmarks now, the means of the similarities to them, and the linear part over those."""

    def __init__(self, size: int, width: int | None, outputs: int, seed: int) -> None:
        self.rng = generator(seed)
        # Vectors are stored in one block of their final size, so that memory stays within the budget.
        self.points: Any = [] if width is None else np.zeros((size, width))
        self.used = self.seen = self.classes = 0
        self.ids = np.full(size, -1, dtype=np.int64)
        self.centre, self.met = np.zeros(size), np.zeros(size)
        self.coef, self.intercept = np.zeros((outputs, size)), np.zeros(outputs)
        self.class_count = np.zeros(outputs)
        self.calibration = calibration_for(outputs)

    def copied(self) -> Sample:
        twin = copy.copy(self)
        for name in ("points", "ids", "centre", "met", "coef", "intercept", "class_count"):
            setattr(twin, name, copy.copy(getattr(self, name)))
        twin.rng = copy.deepcopy(self.rng)
        twin.calibration = self.calibration.copy()
        return twin

    def know(self, classes: int) -> None:
        """A new class begins with no weights."""
        more = classes - self.classes
        if more > 0:
            kept = slice(0, self.classes)
            self.coef = np.vstack([self.coef[kept], np.zeros((more, len(self.ids)))])
            self.intercept = np.append(self.intercept[kept], np.zeros(more))
            self.class_count = np.append(self.class_count[kept], np.zeros(more))
            _widen(self.calibration, self.classes, classes)
            self.classes = classes

    def calibrate(self, scores: Values, label: int) -> None:
        """Prediction of a sample before it was learned, and its label."""
        if self.classes == 2:
            scores = scores[1:] - scores[:1]
        self.calibration.learn(np.ascontiguousarray(scores[:1] if self.classes < 2 else scores), label)

    def raw(self, comparison: Comparison, x: object) -> Values:
        """One object against the landmarks, 0 where none is yet."""
        row = np.zeros(len(self.ids))
        if self.used:
            places = slice(0, self.used)
            row[places] = comparison.block(x, self.points[places], self.ids[places], np.array([self.seen]))[0]
        return row

    def features(self, raw: Values) -> Values:
        """Centred similarities: subtracting the running means removes their common part."""
        return np.where(self.met > 0, raw - self.centre, 0.0)

    def score(self, features: Values) -> Values:
        # Row sums, not a matrix product: one event and many give the same bits.
        return np.asarray((self.coef * features).sum(axis=1) + self.intercept)

    def take_centre(self, raw: Values) -> None:
        used = slice(0, self.used)
        self.met[used] += 1.0
        self.centre[used] += (raw[used] - self.centre[used]) / self.met[used]

    def offer(self, x: object, freeze: int | None) -> None:
        """Reservoir sampling: x may take a place, whose weights go."""
        if freeze is not None and self.seen >= freeze:
            return
        size = len(self.ids)
        place = self.used if self.used < size else int(self.rng.integers(self.seen + 1))
        if place >= size:
            return
        if isinstance(self.points, list):
            self.points[place : place + 1] = [x]
        else:
            self.points[place] = x
        self.used = max(self.used, place + 1)
        self.ids[place] = self.seen
        self.coef[:, place] = 0.0
        self.centre[place] = self.met[place] = 0.0


class LandmarkCore:
    """The loop over events, with the verbs of the compiled learners."""

    is_plain = is_sparse = is_single = False

    def __init__(self, settings: Settings, width: int | None, seed: int = 0) -> None:
        self.settings, self.width = settings, width or 0
        self.sample = Sample(settings.n_landmarks, width, 0 if settings.epsilon is None else 1, seed)

    def check(self, rows: Any) -> None:
        """Vectors must be finite; objects are the similarity's own."""
        if not isinstance(rows, list) and not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            value = rows[row, column]
            kind = "NaN" if np.isnan(value) else "infinity"
            raise ValueError(f"Input X contains {kind}: row {row}, column {column} is {value}")

    def learn(self, rows: Any, labels: Values, weights: Any, want_scores: bool, classes: int = 0) -> Any:
        self.check(rows)
        f, before = self.sample.copied(), []  # a chunk that fails half-way leaves the model as it was
        f.know(classes)
        for i in range(size_of(rows)):
            try:
                raw = f.raw(self.settings.comparison, take(rows, [i]))
            except SimilarityError as error:
                raise SimilarityError(f"row {i}: {error}") from None
            features = f.features(raw)
            if self.settings.epsilon is None:
                f.know(int(labels[i]) + 1)
            before.append(f.score(features))
            if self.settings.epsilon is None:
                f.calibrate(before[-1], int(labels[i]))
            self._step(f, features, before[-1], labels[i])
            f.take_centre(raw)
            f.offer(rows[i], self.settings.freeze)
            f.seen += 1
        self.sample = f
        outputs = len(f.intercept)
        return np.array([np.pad(scores, (0, outputs - len(scores))) for scores in before]) if want_scores else None

    def _step(self, f: Sample, features: Values, scores: Values, label: float) -> None:
        if self.settings.epsilon is not None:
            error = label - float(scores[0])
            loss = abs(error) - self.settings.epsilon
            if loss > 0:
                self._move(f, features, loss, {0: float(np.sign(error))})
            return
        target = int(label)
        f.class_count[target] += 1.0
        # Only classes that have come are rivals: so it does not matter whether later ones are known already.
        rivals = np.where(f.class_count > 0, scores, -np.inf)
        rivals[target] = -np.inf
        rival = int(np.argmax(rivals))
        loss = 1.0 - float(scores[target] - scores[rival])
        if rivals[rival] > -np.inf and loss > 0:
            self._move(f, features, loss, {target: 1.0, rival: -1.0})

    def _move(self, f: Sample, features: Values, loss: float, rows: dict[int, float]) -> None:
        """PA-I: the least step that pays the loss, at most C."""
        size = len(rows) * (float((features * features).sum()) + 1.0)
        step = min(float(self.settings.C), loss / size)
        for row, sign in rows.items():
            f.coef[row] += sign * step * features
            f.intercept[row] += sign * step

    def score(self, rows: object) -> tuple[Values, int]:
        self.check(rows)
        f = self.sample
        found = [f.score(f.features(f.raw(self.settings.comparison, take(rows, [i])))) for i in range(size_of(rows))]
        return np.array(found).reshape(len(found), len(f.intercept)), f.classes

    def probabilities(self, scores: Values) -> Values:
        f = self.sample
        scores = scores[:, 1:] - scores[:, :1] if f.classes == 2 else scores[:, :1] if f.classes < 2 else scores
        return np.asarray(f.calibration.probabilities(np.ascontiguousarray(scores), f.classes))

    @property
    def seen(self) -> int:
        return self.sample.seen

    @property
    def classes(self) -> int:
        return self.sample.classes

    @property
    def memory_bytes(self) -> int:
        """Bytes of the numbers that the model keeps; objects of a Python similarity are not counted."""
        f = self.sample
        held = [f.coef, f.intercept, f.centre, f.met, f.ids]
        return sum(a.nbytes for a in held) + (0 if isinstance(f.points, list) else f.points.nbytes)

    # ---- saving --------------------------------------------------------------------------------------------

    def state(self) -> Fields:
        f = self.sample.copied()
        drawn = np.frombuffer(json.dumps(f.rng.bit_generator.state).encode(), dtype=np.uint8)
        names = ("coef", "intercept", "ids", "points", "centre", "met", "class_count")
        counters = np.array([f.used, f.seen], dtype=np.int64)
        own = {"counters": counters, "generator": drawn, "classes": np.array([f.classes], dtype=np.int64)}
        return {**{name: getattr(f, name) for name in names}, **own, **f.calibration.state()}

    def restore(self, state: Fields) -> None:
        f = self.sample.copied()
        for name in ("coef", "intercept", "ids", "points", "centre", "met", "class_count"):
            setattr(f, name, state[name].copy())
        f.used, f.seen = (int(n) for n in state["counters"])
        f.classes = int(state["classes"][0])
        if not self._fits(f):
            raise ValueError("the saved arrays do not fit together")
        # Only now: a number of classes that the arrays do not bear out must not ask for memory.
        f.calibration = calibration_for(f.classes if self.settings.epsilon is None else 1)
        f.calibration.restore({name: array for name, array in state.items() if name.startswith("calibration")})
        f.rng.bit_generator.state = json.loads(bytes(state["generator"]))
        self.sample = f

    def _fits(self, f: Sample) -> bool:
        size, outputs = self.settings.n_landmarks, f.classes if self.settings.epsilon is None else 1
        vectors = not isinstance(f.points, list)
        numbers = [f.coef, f.intercept, f.centre, f.met, f.class_count, *([f.points] if vectors else [])]
        return (
            all(a.dtype == np.float64 and bool(np.isfinite(a).all()) for a in numbers)
            and f.coef.shape == (outputs, size)
            and f.intercept.shape == f.class_count.shape == (outputs,)
            and f.centre.shape == f.met.shape == f.ids.shape == (size,)
            and f.ids.dtype == np.int64
            and (f.points.shape == (size, self.width) if vectors else len(f.points) == f.used)
            and 0 <= f.used <= min(size, f.seen)
        )
