"""n_jobs: the same bits for any number of threads; safe after fork; as many as scikit-learn's convention says."""

from __future__ import annotations

import os
import threading

import joblib
import numpy as np
import public_learners
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import gristmill
from gristmill import (
    SGD,
    Additive,
    DropOldest,
    DropRandom,
    DropSmallest,
    FeatureLearner,
    Fleet,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Merge,
    Polynomial,
    RandomMaclaurin,
    Unbounded,
    _core,
    compress,
    ilk_novelty,
    projectron_pp,
)
from gristmill._common.threads import allowed, resolved

RNG = np.random.default_rng(7)
X = RNG.normal(size=(1500, 40))
TWO = X[:, 0] * X[:, 1] > 0
MANY = (X[:, :5].argmax(axis=1) + X[:, 5] > 0.5).astype(int) + 2 * (X[:, 2] > 1)

MODELS = {
    "drop": (KernelClassifier(Gaussian(0.02), budget=DropOldest(700), random_state=0), MANY),
    "merge": (KernelClassifier(Laplacian(0.02), budget=Merge(500), random_state=0), TWO),
    "sum": (KernelRegressor(Gaussian(0.02) + Polynomial(2, 0.1, 1.0), budget=DropOldest(600), random_state=0), X[:, 0]),
    "mean": (KernelClassifier(Gaussian(0.02), budget=Unbounded(), average=True, random_state=0), MANY),
    "span": (projectron_pp(Gaussian(0.02), 0.3, random_state=0), MANY),
    "trees": (KernelClassifier(Additive(Laplacian(1.0)), random_state=0), MANY),
    "features": (FeatureLearner(RandomMaclaurin(Polynomial(2), 300, random_state=0), random_state=0), TWO),
}


def everything(model, y, rows=X):
    said = model.prequential(rows, y)
    return [said, model.decision_function(rows), model.predict(rows), model.decision_function(rows[:7])]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [np.float64, np.float32, csr_array])
def test_the_same_bits_for_any_number_of_threads(name, kind):
    model, y = MODELS[name]
    if kind is csr_array and name == "trees":
        kind = np.float64
    rows = csr_array(X * (np.abs(X) > 1)) if kind is csr_array else X.astype(kind)
    alone = everything(clone(model), y, rows)
    for n_jobs in (2, 5):
        for a, b in zip(alone, everything(clone(model).set_params(n_jobs=n_jobs), y, rows), strict=True):
            np.testing.assert_array_equal(a, b)


def test_threads_are_used_where_there_is_work_and_not_where_there_is_little():
    model = KernelClassifier(Gaussian(0.02), budget=DropOldest(700), n_jobs=3).fit(X, TWO)
    before = threading.active_count(), len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 3
    model.predict(X)
    if os.path.isdir("/proc/self/task"):
        assert len(os.listdir("/proc/self/task")) >= 3
    assert threading.active_count() == before[0]  # they are the core's own


#: budgets that let the others look ahead while events are learned, and enough work for it
WIDE = RNG.normal(size=(2000, 50))
AHEAD = {
    "oldest": DropOldest(800),
    "smallest": DropSmallest(800),
    "random": DropRandom(800),
    "sample": DropRandom(800, uniform=True),
    "all": Unbounded(),
}


@pytest.mark.parametrize("kernel", [Gaussian(0.02), Laplacian(0.02), 0.5 * Polynomial(2, 0.1, 1.0) + Gaussian(0.1)])
@pytest.mark.parametrize("name", AHEAD)
def test_looking_ahead_beside_the_events_changes_nothing(name, kernel):
    y = WIDE[:, :4].argmax(axis=1)
    for kind in (np.float64, np.float32, csr_array):
        rows = csr_array(WIDE * (np.abs(WIDE) > 0.3)) if kind is csr_array else WIDE.astype(kind)
        model = KernelClassifier(kernel, budget=AHEAD[name], random_state=0)
        alone, threaded = clone(model), clone(model).set_params(n_jobs=3)
        np.testing.assert_array_equal(alone.prequential(rows, y), threaded.prequential(rows, y))
        alone.partial_fit(rows[:300], y[:300])
        for first in range(0, 300, 60):  # what waited has been stored
            threaded.partial_fit(rows[first : first + 60], y[first : first + 60])
        assert alone.to_bytes() == threaded.set_params(n_jobs=1).to_bytes()
        assert alone.memory_bytes_ == threaded.memory_bytes_


def test_an_error_in_mid_chunk_undoes_what_waits():
    y = WIDE[:, 0] * WIDE[:, 1] > 0
    model = KernelClassifier(Gaussian(0.02), budget=DropOldest(800), n_jobs=3).fit(WIDE, y)
    before = model.to_bytes()
    rows = WIDE.copy()
    rows[1500, 3] = 1e200
    with pytest.raises(ValueError, match="row 1500"):
        model.partial_fit(rows, y)
    assert model.to_bytes() == before
    steps = KernelClassifier(Gaussian(0.02), SGD(rate=0.1), DropOldest(800), n_jobs=3).fit(WIDE, y)
    before, weights = steps.to_bytes(), np.ones(len(y))
    weights[1500] = 1e300
    with pytest.raises(ValueError, match="row 1500: the coefficients would overflow"):
        steps.partial_fit(WIDE, y, sample_weight=weights)
    assert steps.to_bytes() == before


def test_passes_over_a_batch_are_the_same():
    y = WIDE[:, 0] * WIDE[:, 1] > 0
    model = KernelClassifier(Gaussian(0.02), budget=Unbounded(), passes=2, random_state=0)
    alone, threaded = clone(model).fit(WIDE, y), clone(model).set_params(n_jobs=2).fit(WIDE, y)
    assert alone.to_bytes() == threaded.set_params(n_jobs=1).to_bytes()


def test_compress_is_the_same():
    model = KernelClassifier(Gaussian(0.02), budget=Unbounded(), random_state=0).fit(X, MANY)
    alone, error = compress(model, 100)
    threaded, again = compress(model.set_params(n_jobs=3), 100)
    assert error == again
    np.testing.assert_array_equal(alone.dual_coef_, threaded.dual_coef_)


def test_very_wide_rows_are_the_same():
    rng = np.random.default_rng(0)
    rows = csr_array(rng.random((600, 5000)) * (rng.random((600, 5000)) < 0.01))
    y = np.arange(600) % 3
    model = KernelClassifier(Gaussian(0.5), budget=Unbounded())
    for a, b in zip(
        everything(clone(model), y, rows), everything(clone(model).set_params(n_jobs=2), y, rows), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_fleets_are_the_same():
    frames = np.random.default_rng(0).normal(size=(80, 300, 3)).astype(np.float32)
    said = [
        Fleet(ilk_novelty(Gaussian(0.5), C=0.1, reg=0.005, size=10), 300, n_jobs=n).prequential(frames)
        for n in (1, 3, -1)
    ]
    np.testing.assert_array_equal(said[0], said[1])
    np.testing.assert_array_equal(said[0], said[2])


def test_a_child_process_begins_anew():
    model = KernelClassifier(Gaussian(0.02), budget=DropOldest(700), n_jobs=3).fit(X, TWO)
    expected = model.decision_function(X)
    child = os.fork()
    if child == 0:  # the threads of the parent are not here
        fine = np.array_equal(model.decision_function(X), expected)
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(model.decision_function(X), expected)


def test_many_callers_share_the_pool():
    model = KernelClassifier(Gaussian(0.02), budget=DropOldest(700), n_jobs=2).fit(X, TWO)
    expected, wrong = model.decision_function(X), []

    def ask():
        for _ in range(5):
            if not np.array_equal(model.decision_function(X), expected):
                wrong.append(1)

    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_bad_row_is_the_first_one_and_changes_nothing():
    model = KernelClassifier(Polynomial(3, 1.0, 1.0), budget=DropOldest(700), n_jobs=3).fit(X, TWO)
    rows = X.copy()
    rows[[700, 1400], 3] = 1e200
    alone = clone(model).set_params(n_jobs=1).fit(X, TWO)
    words = []
    for one in (model, alone):
        with pytest.raises(ValueError, match="row 700") as found:
            one.predict(rows)
        words.append(str(found.value))
    assert words[0] == words[1]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "many", True])
def test_what_is_no_number_of_jobs_is_refused(n_jobs):
    for model in (KernelClassifier(n_jobs=n_jobs), FeatureLearner(n_jobs=n_jobs)):
        with pytest.raises((ValueError, TypeError), match="n_jobs must be a whole number other than 0"):
            model.fit(X[:50], TWO[:50])


def test_scikit_learns_convention_and_the_limits_of_others(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = joblib.cpu_count()
    assert [resolved(n) for n in (None, 1, 3, -1)] == [1, 1, 3, cores]
    with joblib.parallel_config("threading", n_jobs=2):
        assert resolved(None) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert resolved(8) == 2
    assert resolved(1) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert resolved(8) == 3
    with allowed(2):
        assert _core.threads_allowed() == 2
    assert _core.threads_allowed() == 1


def test_it_may_change_in_mid_stream_and_is_kept_in_files(tmp_path):
    model = KernelClassifier(Gaussian(0.02), random_state=0).fit(X[:200], TWO[:200])
    model.set_params(n_jobs=2).partial_fit(X[200:400], TWO[200:400])
    model.save(tmp_path / "model")
    assert gristmill.load(tmp_path / "model").n_jobs == 2


def test_every_kernel_learner_has_it():
    names = [
        name
        for name, kind in public_learners.public().items()
        if issubclass(kind, gristmill.learners.base.KernelLearner)
    ]
    assert len(names) >= 3
    assert all("n_jobs" in public_learners.made(name).get_params() for name in names)
