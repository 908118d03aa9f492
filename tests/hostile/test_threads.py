"""One thread learns and meets new classes; others predict, pickle, save and look. What they see is a state that was there.

A twin learns the same events alone first: every answer of every reader must be one that the twin gave at some event.
`make fuzz` runs more rounds of it against a build with sanitizers (GRISTMILL_FUZZ).
"""

from __future__ import annotations

import os
import pickle
import sys
import threading

import numpy as np
import public_learners
import pytest
from sklearn.base import clone

import gristmill
from gristmill import (
    DropOldest,
    Gaussian,
    KernelClassifier,
    Laplacian,
    Merge,
    PairwiseAUC,
    Perceptron,
    Project,
    Unbounded,
)
from gristmill.pairwise import Fifo

ROUNDS = max(1, int(os.environ.get("GRISTMILL_FUZZ", "1000")) // 1000)
BEFORE, EVENTS, ROWS = 12, 40, 64
#: compositions of the kernel learner beside the learners as they come
COMPOSED = {
    "merge": KernelClassifier(Gaussian(2.0), Perceptron(), Merge(9)),
    "project": KernelClassifier(Gaussian(2.0), Perceptron(), Project(0.3)),
    "average": KernelClassifier(Laplacian(1.0), Perceptron(), Unbounded(), average=True),
    "additive": KernelClassifier(gristmill.Additive(Laplacian(1.0)), Perceptron(), DropOldest(9)),
    "growing pairs": PairwiseAUC(Gaussian(1.0), buffer=Fifo(8), budget=Unbounded(), random_state=0),
}
NAMES = [*public_learners.public(), *COMPOSED]
LABELS = ["b", "c", "a", "d", "0"]  # the later ones sort before the earlier


def made(name):
    if name in COMPOSED:
        return clone(COMPOSED[name])
    return public_learners.made(name, **({"labels": LABELS} if name == "StructuredLearner" else {}))


def labels_of(name, count):
    """Two classes first, then one more from time to time where the learner takes them; numbers for a regressor."""
    if name.endswith("Regressor"):
        return np.random.default_rng(5).random(count)
    if name in ("PairwiseAUC", "OAM", "growing pairs"):
        return np.array(LABELS[:2])[np.arange(count) % 2]
    if name == "PairwiseLearner":
        return np.arange(count) % 3 / 2
    known = np.minimum(2 + np.maximum(np.arange(count) - BEFORE, 0) // 8, len(LABELS))
    return np.array(LABELS)[np.random.default_rng(5).integers(known)]


def said(model, rows):
    """Everything that a model says of rows, each as bytes: scores, answers."""
    found = {"answers": public_learners.answers(model, rows).tobytes()}
    for verb in ("decision_function", "predict", "transform"):
        if hasattr(model, verb):
            answer = np.asarray(getattr(model, verb)(rows))
            found[verb] = answer.tobytes() if answer.dtype.kind == "f" else tuple(answer.tolist())
    return found


def looks(model):
    """Each public fitted attribute."""
    return [name for name in dir(type(model)) if name[0] != "_" and name.endswith("_") and hasattr(model, name)]


class Watch:
    """Readers of one model, which keep what they saw until they are told to stop."""

    def __init__(self, model, rows, path, stream):
        self.model, self.rows, self.path, (self.X, self.y) = model, rows, path, stream
        self.done, self.errors, self.seen, self.ends = threading.Event(), [], {}, set()
        self.names = looks(model)
        self.threads = [
            threading.Thread(target=self.run, args=(f,)) for f in (self.ask, self.copy, self.look, self.file)
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        for thread in self.threads:
            thread.join()

    def run(self, action):
        while not self.done.is_set():
            try:
                action()
            except Exception as error:
                self.errors.append((action.__name__, error))
                return

    def keep(self, found):
        for verb, answer in found.items():
            self.seen.setdefault(verb, set()).add(answer)

    def ask(self):
        self.keep(said(self.model, self.rows))
        for verb in ("predict_one", "score_one"):
            if hasattr(self.model, verb):
                getattr(self.model, verb)(self.rows[0])

    def copy(self):
        self.finish(pickle.loads(pickle.dumps(self.model)))

    def file(self):
        self.model.save(self.path)
        self.finish(gristmill.load(self.path))

    def finish(self, other):
        """A copy from the middle of the stream has the scores of that moment, and learns the rest with the same result."""
        self.keep(said(other, self.rows))
        if other.n_seen_ < len(self.X):
            other.partial_fit(self.X[other.n_seen_ :], self.y[other.n_seen_ :])
        self.ends.add(public_learners.answers(other, self.rows).tobytes())

    def look(self):
        for name in self.names:
            getattr(self.model, name)
        repr(self.model)


@pytest.fixture(autouse=True)
def hasty():
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.filterwarnings("ignore:Project. tolerance")
@pytest.mark.parametrize("name", NAMES)
def test_readers_see_a_state_that_was_there(name, tmp_path):
    rng = np.random.default_rng(2)
    X, y, rows = rng.random((BEFORE + EVENTS, 4)), labels_of(name, BEFORE + EVENTS), rng.random((ROWS, 4))
    twin = made(name).partial_fit(X[:BEFORE], y[:BEFORE])
    states = {verb: {answer} for verb, answer in said(twin, rows).items()}
    for i in range(BEFORE, len(X)):
        twin.partial_fit(X[i : i + 1], y[i : i + 1])
        for verb, answer in said(twin, rows).items():
            states[verb].add(answer)
    for _ in range(ROUNDS):
        model = made(name).partial_fit(X[:BEFORE], y[:BEFORE])
        with Watch(model, rows, tmp_path / "model", (X, y)) as watch:
            for i in range(BEFORE, len(X)):
                with pytest.raises(ValueError, match=r"NaN|contains"):
                    model.partial_fit(np.full((1, 4), np.nan), y[i : i + 1])  # what is refused is not seen either
                if i % 2:
                    model.learn_one(X[i], y[i])
                else:
                    model.partial_fit(X[i : i + 1], y[i : i + 1])
        assert not watch.errors, watch.errors[0]
        for verb, answers in watch.seen.items():
            assert answers <= states[verb], f"{verb} gave {len(answers - states[verb])} answers that no state gives"
        assert said(model, rows) == said(twin, rows)
        assert watch.ends <= {public_learners.answers(twin, rows).tobytes()}, "a copy of the middle came to another end"
