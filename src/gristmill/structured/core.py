"""The compiled hypothesis over (input, label) pairs behind the search, which is Python."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common import inputs
from ..budgets import DropOldest, DropRandom, DropSmallest, Project
from ..kernels import Kernel
from ..rules import Implicit, MarginProjection
from .search import Floats, Label, RowScore, Score, Search, SequenceScore
from .sequences import Sequences, viterbi

Symbols = npt.NDArray[np.int32]


def native(kernel: object) -> bool:
    """Whether the core compares rows with this kernel."""
    return isinstance(kernel, Sequences) or (isinstance(kernel, Kernel) and kernel.is_native)


@dataclasses.dataclass
class State:
    """What is learned. A chunk changes a copy, which replaces the state of the core when all of it went well."""

    f: _core.JointExpansion
    names: dict[Label, int]  #: label, or tag of a sequence -> number; the label list in order, or as they were met
    objects: dict[int, Any]  #: inputs that the core does not compare, by position in the stream

    def copied(self) -> State:
        return State(self.f.copy(), dict(self.names), dict(self.objects))

    def symbols(self, label: Any, whole: bool) -> Symbols:
        """Numbers of the tags of a sequence (whole: False), or of one label; new ones get the next number."""
        return np.array(
            [self.names.setdefault(tag, len(self.names)) for tag in ([label] if whole else label)], np.int32
        )

    def forget(self) -> None:
        """Drop labels that no function has any more, or memory would grow with the stream."""
        if len(self.names) > 2 * self.f.size + 16:
            known = list(self.names)
            self.names = {known[old]: new for new, old in enumerate(self.f.compact().tolist())}


class Samples(Protocol):
    """The samples of a chunk in order: what the search is given, and the step after it."""

    def at(self, i: int, average: bool) -> Score:
        """Scores of sample i, which is the current one from now on."""
        ...

    def shown(self, i: int) -> Any:
        """The input as the search sees it: a vector, a sparse row, a sequence or the object."""
        ...

    def learn(self, label: object, rival: Any, margin: float, cost: float, weight: float) -> None: ...


class JointCore:
    """A hypothesis over (input, label) pairs and what changes it from sample to sample."""

    is_plain = False
    classes = 0  # labels of any kind are the hypothesis's own
    outputs = 1

    def __init__(self, kernel: object, search: Search, held: State) -> None:
        self.kernel, self.search, self.held = kernel, search, held

    @classmethod
    def fresh(
        cls, kernel: object, search: Search, labels: list[Label] | None, extent: tuple[int, bool, bool], seed: int
    ) -> JointCore:
        """A core that has learned nothing; extent: columns of a row, whether rows are sparse, and whether single."""
        names = {label: number for number, label in enumerate(labels or ())}
        return cls(kernel, search, State(expansion(kernel, search, *extent, seed), names, {}))

    @property
    def width(self) -> int:
        """Columns of a row; 0 for objects."""
        return int(self.held.f.width)

    @property
    def seen(self) -> int:
        return int(self.held.f.seen)

    @property
    def memory_bytes(self) -> int:
        """Bytes kept; of objects only what the references cost."""
        return int(self.held.f.memory_bytes) + 8 * len(self.held.objects)

    @property
    def lists_scores(self) -> bool:
        """Whether the answer to a sample is one score per label of a list."""
        return self.search.closed and not isinstance(self.kernel, Sequences)

    def _in_core(self) -> bool:
        """Whether search and loop run in the core: a list of labels, and no function of the user's but the cost."""
        return isinstance(self.kernel, Kernel) and native(self.kernel) and self.search.argmax is None

    def learn(self, rows: Any, labels: list[Any], weights: Any, want_scores: bool, classes: int = 0) -> Any:
        """One pass in order; kept only when all of it went well."""
        held = self.held.copied()
        answers: Any = []
        if self._in_core():
            numbers = np.array([held.names[label] for label in labels], dtype=np.int32)
            costs = self.search.costs(held.names, labels)
            answers = held.f.learn_classes(rows, numbers, weights, costs, len(held.names), want_scores)
        elif self._viterbi_in_core():
            answers = self._learn_sequences(held, rows, labels, weights, want_scores)
        else:
            answers = self._search_and_learn(held, rows, labels, weights, want_scores)
        if self.held.f.seen == 0:
            self._warn_if_nothing_is_stored(held.f)
        if not self.search.closed:
            held.forget()
        self.held = held
        if not want_scores:
            return None
        return np.array(answers) if self.lists_scores else answers

    def _viterbi_in_core(self) -> bool:
        return isinstance(self.kernel, Sequences) and self.search.argmax is viterbi

    def _learn_sequences(self, held: State, sequences: Any, labels: list[Any], weights: Any, want: bool) -> Any:
        """One pass with Viterbi's search; the best labels before each sample if wanted."""
        rows, start = _joined(sequences)
        tags, names, search, cost = list(held.names), held.names, self.search, None
        if search.cost is not None:

            def cost(i: int, rival: Symbols) -> float:
                return search.delta(labels[i], tuple(tags[number] for number in rival), f"row {i}")

        numbers = np.array([names[tag] for label in labels for tag in label], dtype=np.int32)
        best: Any = held.f.learn_sequences(rows, start, numbers, weights, cost, len(names), want)
        return _labels(best, start, tags) if want else []

    def _search_and_learn(
        self, held: State, rows: Any, labels: Sequence[object], weights: Any, want_scores: bool
    ) -> list[object]:
        samples, answers, search = self._samples(held, rows), [], self.search
        for i, label in enumerate(labels):
            weight = 1.0 if weights is None else float(weights[i])
            score = samples.at(i, average=False)
            if want_scores:
                answers.append(self._answer(samples.at(i, True) if search.average else score, samples, i, scores=True))
            if weight == 0:
                held.f.skip()
                continue
            rival, cost = search.rival(score, samples.shown(i), f"row {i}", label)
            samples.learn(label, rival, score(label) - score(rival), cost, weight)
        return answers

    def _samples(self, held: State, rows: Any) -> Samples:
        if isinstance(self.kernel, Sequences):
            return _SequenceSamples(held, rows)
        return _RowSamples(held, rows) if native(self.kernel) else _GivenSamples(held, rows, joint(self.kernel))

    def _answer(self, score: Score, samples: Samples, i: int, scores: bool) -> Any:
        """Prediction of a sample: all scores if requested and there is a list of labels, else the best label."""
        if scores and self.lists_scores:
            return [score(label) for label in score.labels]
        return self.search.best(score, samples.shown(i), f"row {i}")

    def _warn_if_nothing_is_stored(self, f: _core.JointExpansion) -> None:
        budget = self.search.budget
        if isinstance(budget, Project) and f.size == 0:
            # The first sample is a mistake always, because every score is 0: it was folded into nothing.
            warnings.warn(
                f"Project: tolerance={budget.tolerance!r} is not below the norm of any difference "
                "k((x, y), .) - k((x, r), .) of the first chunk, so nothing is stored; use a smaller one",
                UserWarning,
                stacklevel=5,
            )

    def answers(self, rows: Any, scores: bool) -> list[Any]:
        """Prediction of each sample: all scores if requested and there is a list of labels, else the best label."""
        held, average = self.held, self.search.average
        if self._in_core():
            table = held.f.row_scores(rows, len(held.names), average)
            if scores:
                return list(table)
            names = list(held.names)
            return [names[number] for number in table.argmax(axis=1)]
        if self._viterbi_in_core() and not scores:
            flat, start = _joined(rows)
            return _labels(held.f.best_sequences(flat, start, len(held.names), average), start, list(held.names))
        samples = self._samples(held, rows)
        return [self._answer(samples.at(i, average), samples, i, scores) for i in range(count_of(rows))]


def expansion(kernel: Any, search: Search, width: int, sparse: bool, single: bool, seed: int) -> _core.JointExpansion:
    """A hypothesis of the core for these parts."""
    rule, budget = search.rule, search.budget
    implicit = rule if isinstance(rule, Implicit) else Implicit()
    sized = budget if isinstance(budget, DropOldest | DropSmallest | DropRandom) else None
    settings = {
        "rule": type(rule).__name__,
        "squared": isinstance(rule, MarginProjection) and rule.squared,
        "C": float(implicit.C),
        "rate": float(implicit.rate),
        "reg": float(implicit.reg),
        "drop": type(budget).__name__,
        "size": 0 if sized is None else int(sized.size),
        "uniform": isinstance(budget, DropRandom) and budget.uniform,
        "tolerance": float(budget.tolerance) if isinstance(budget, Project) else 0.0,
        "average": search.average,
        "transitions": float(kernel.transitions) if isinstance(kernel, Sequences) else 0.0,
    }
    base = kernel.base if isinstance(kernel, Sequences) else kernel
    program = base.kernel_program() if native(kernel) else None
    return _core.JointExpansion(settings, program, width, sparse, single, seed)


def count_of(rows: Any) -> int:
    """How many samples there are."""
    return len(rows) if isinstance(rows, list) else inputs.extent(rows)[0]


# ---- samples that the core compares -----------------------------------------------------------------------------


class _RowSamples:
    """Rows with one label each, and a search of the user's."""

    def __init__(self, held: State, rows: Any) -> None:
        self._held, self._rows = held, rows
        self._core = _core.JointSamples(held.f, rows, np.arange(count_of(rows) + 1))

    def at(self, i: int, average: bool) -> Score:
        self._core.at(i)
        names = self._held.names
        return RowScore(names, f"row {i}", self._core.row_scores(max(len(names), 1), average)[0])

    def shown(self, i: int) -> Any:
        if not isinstance(self._rows, tuple):
            return self._rows[i]
        from scipy.sparse import csr_array

        start, columns, values, width = self._rows
        part = slice(start[i], start[i + 1])
        return csr_array((values[part], columns[part], [0, len(columns[part])]), shape=(1, width))

    def learn(self, label: object, rival: Any, margin: float, cost: float, weight: float) -> None:
        held = self._held
        self._core.learn(held.symbols(label, True), held.symbols(rival, True), margin, cost, weight)


def _joined(sequences: list[Floats]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The rows of all sequences, and where each sequence begins."""
    start = np.cumsum([0, *(len(x) for x in sequences)], dtype=np.int64)
    return np.concatenate(sequences), start


def _labels(numbers: Symbols, start: npt.NDArray[np.int64], tags: list[Label]) -> list[tuple[Label, ...]]:
    """The tags of each sequence."""
    found = [tags[number] for number in numbers.tolist()]
    return [tuple(found[first:end]) for first, end in pairwise(start.tolist())]


class _SequenceSamples:
    """Sequences of rows with one tag per row."""

    def __init__(self, held: State, sequences: list[Floats]) -> None:
        self._held, self._sequences = held, sequences
        self._core = _core.JointSamples(held.f, *_joined(sequences))

    def at(self, i: int, average: bool) -> SequenceScore:
        self._core.at(i)
        names, f = self._held.names, self._held.f
        rows = self._core.row_scores(len(names), average)
        return SequenceScore(names, f"row {i}", rows, f.transition_scores(len(names), average))

    def shown(self, i: int) -> Floats:
        return self._sequences[i]

    def learn(self, label: object, rival: Any, margin: float, cost: float, weight: float) -> None:
        held = self._held
        self._core.learn(held.symbols(label, False), held.symbols(rival, False), margin, cost, weight)


# ---- samples that the user's kernel compares --------------------------------------------------------------------


def joint(kernel: Any) -> Callable[[Any, Any, Any, Any], float]:
    """A kernel of Python code as a function k(x, label, x2, label2)."""
    if isinstance(kernel, Kernel):
        return lambda x, label, other, other_label: float(kernel([x], [other])[0, 0]) if label == other_label else 0.0
    function: Callable[[Any, Any, Any, Any], float] = kernel
    return function


class _GivenSamples:
    """Objects of any kind, and a kernel k(x, label, x2, label2) of the user's."""

    def __init__(self, held: State, objects: list[Any], function: Callable[[Any, Any, Any, Any], float]) -> None:
        self._held, self._objects, self._function = held, objects, function
        self._i = -1
        self._rows: dict[Label, Floats] = {}

    def at(self, i: int, average: bool) -> Score:
        if i != self._i:
            self._i, self._rows = i, {}
            f, names = self._held.f, list(self._held.names)
            ids = f.ids.tolist()
            self._stored = [
                (self._held.objects[ids[at]], names[number])
                for at, number in zip(f.of.tolist(), f.symbols.tolist(), strict=True)
            ]
        return _GivenScore(self._held.names, f"row {i}", self._held.f.weights(average), self.row)

    def shown(self, i: int) -> Any:
        return self._objects[i]

    def row(self, label: object) -> Floats:
        """Kernel values at all functions."""
        if label not in self._rows:
            self._rows[label] = np.array([self._value(label, *pair) for pair in self._stored], dtype=np.float64)
        return self._rows[label]

    def _value(self, label: object, other: object, other_label: object) -> float:
        value = float(self._function(self._objects[self._i], label, other, other_label))
        if not math.isfinite(value):
            raise ValueError(
                f"row {self._i}: the joint kernel returned {value} for the labels {label!r}, {other_label!r}"
            )
        return value

    def learn(self, label: object, rival: Any, margin: float, cost: float, weight: float) -> None:
        held, x = self._held, self._objects[self._i]
        y, r = int(held.symbols(label, True)[0]), int(held.symbols(rival, True)[0])
        labels = {y: label, r: rival}

        def cross(left: int, right: int) -> float:
            return self._value(labels[left], x, labels[right])

        seen = held.f.seen
        held.f.learn_given(lambda number: self.row(labels[number]), cross, y, r, margin, cost, weight)
        stored = held.f.ids
        if len(stored) and stored[-1] == seen:
            held.objects[seen] = x
        if len(held.objects) > len(stored):
            held.objects = {at: held.objects[at] for at in stored.tolist()}


class _GivenScore(Score):
    def __init__(self, names: dict[Label, int], place: str, weights: Floats, row: Callable[[Any], Floats]) -> None:
        super().__init__(names, place)
        self._weights, self._kernel_row = weights, row

    def _plain(self, label: object) -> float:
        return float(self._weights @ self._kernel_row(label)) if len(self._weights) else 0.0
