"""The law of the buffers, by counting."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chisquare

from gristmill import Fifo, PairwiseAUC, Reservoir, ReservoirX, _core

METHODS = ("skip", "binomial", "bernoulli")


def runs(buffer, steps, count, seed=0):
    """Buffers after so many steps of so many independent streams, as tuples of places."""
    policy = buffer.core_spec()
    return [tuple(_core.BufferPolicy(policy, seed * count + i).run(steps).tolist()) for i in range(count)]


def uniform_p_value(samples, outcomes):
    index = {outcome: k for k, outcome in enumerate(outcomes)}
    counts = np.zeros(len(outcomes))
    for sample in samples:
        counts[index[sample]] += 1
    return chisquare(counts).pvalue


def test_fifo_keeps_the_last():
    for steps in range(1, 12):
        kept = sorted(i for i in _core.BufferPolicy(Fifo(4).core_spec(), 0).run(steps) if i >= 0)
        assert kept == list(range(max(0, steps - 4), steps))


@pytest.mark.parametrize("steps", [4, 7])
def test_reservoir_keeps_every_subset_equally_often(steps):
    samples = [tuple(sorted(s)) for s in runs(Reservoir(3), steps, 6000)]
    assert uniform_p_value(samples, list(combinations(range(steps), 3))) > 1e-3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [3, 4, 6])
def test_reservoir_x_keeps_independent_uniform_draws(method, steps):
    """The joint law of the s places is uniform on [t]^s: s draws with replacement, from t = s + 1 on."""
    samples = runs(ReservoirX(2, method), steps, 6000, seed=steps)
    assert uniform_p_value(samples, list(product(range(steps), repeat=2))) > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_reservoir_x_is_an_exact_copy_until_it_is_full(method):
    assert runs(ReservoirX(5, method), 5, 3) == [(0, 1, 2, 3, 4)] * 3


@pytest.mark.parametrize("method", METHODS)
def test_pattern_of_replacement_has_the_binomial_law(method):
    """P[exactly these k places] = t^-k (1 - 1/t)^(s - k), so the three methods are equal in law."""
    size, t, count = 3, 6, 6000
    counts = {pattern: 0 for pattern in product((0, 1), repeat=size)}
    for seed in range(count):
        policy = _core.BufferPolicy(ReservoirX(size, method).core_spec(), 7 * count + seed)
        for _ in range(t - 1):
            policy.offer(None, 0.0)
        slots, _ = policy.offer(None, 0.0)
        counts[tuple(int(j in slots) for j in range(size))] += 1
    expected = [count * t ** -sum(p) * (1 - 1 / t) ** (size - sum(p)) for p in counts]
    assert chisquare(list(counts.values()), expected).pvalue > 1e-3


def test_skip_ahead_is_uniform_far_down_the_stream():
    last = np.concatenate([runs(ReservoirX(20), 2000, 150)]).ravel()
    counts, _ = np.histogram(last, bins=20, range=(0, 2000))
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("buffer", [Fifo(3), Reservoir(3), *(ReservoirX(3, m) for m in METHODS)])
def test_state_goes_on_where_it_stopped(buffer):
    one = _core.BufferPolicy(buffer.core_spec(), 5)
    for _ in range(40):
        one.offer(None, 0.0)
    two = _core.BufferPolicy(buffer.core_spec(), 0)
    two.restore(one.state())
    assert [one.offer(None, 0.0) for _ in range(60)] == [two.offer(None, 0.0) for _ in range(60)]


class KeepFirstOfEachSign:
    """A buffer that looks at the label."""

    size = 2

    def __init__(self):
        self.seen = set()

    def offer(self, step, x, label, filled):
        if label in self.seen:
            return None
        self.seen.add(label)
        return filled


class Wrong:
    size = 2

    def __init__(self, answer):
        self.answer = answer

    def offer(self, step, x, label, filled):
        return 0 if step < 3 else self.answer


def test_python_buffer_that_looks_at_the_stream():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.array([0] * 5 + [1] * 5 + [0, 1] * 10)
    buffer = KeepFirstOfEachSign()
    model = PairwiseAUC(buffer=buffer).fit(X, y)
    assert model.buffer_ids_.tolist() == [0, 5]
    assert buffer.seen == set()  # the model has its own
    twin = PairwiseAUC(buffer=buffer)
    for x, label in zip(X, y, strict=True):
        twin.learn_one(x, label)
    np.testing.assert_array_equal(model.coef_, twin.coef_)


@pytest.mark.parametrize(("answer", "error"), [(5, IndexError), (-1, IndexError), ("a", Exception)])
def test_python_buffer_that_answers_nonsense_changes_nothing(answer, error):
    X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    model = PairwiseAUC(buffer=Wrong(answer)).fit(X[:2], y[:2])
    before = model.coef_, model.n_seen_
    with pytest.raises(error):
        model.partial_fit(X, y)
    assert (model.coef_, model.n_seen_) == before


class Nosy:
    """A buffer that calls the model which is calling it."""

    size = 2
    model = None

    def offer(self, step, x, label, filled):
        if step > 3:
            Nosy.model.coef_  # noqa: B018  the access is the point
        return 0


def test_python_buffer_that_calls_its_own_model_gets_an_error_not_a_deadlock():
    Nosy.model = PairwiseAUC(buffer=Nosy()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(RuntimeError, match="must not call the model"):
        Nosy.model.partial_fit([[0.0]] * 5, [0, 1, 0, 1, 0])
    assert Nosy.model.n_seen_ == 2
    Nosy.model = None


def test_looking_while_another_thread_learns():
    from threading import Thread

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20000, 5)), rng.integers(2, size=20000)
    model = PairwiseAUC(buffer=ReservoirX(50), random_state=0).fit(X[:10], y[:10])
    learning = Thread(target=model.partial_fit, args=(X, y))
    learning.start()
    while learning.is_alive():
        assert np.isfinite(model.coef_).all()
        assert 10 <= len(model.buffer_ids_) <= 50
        assert np.isfinite(model.decision_function(X[:5])).all()
    learning.join()
    assert model.n_seen_ == 20010


@pytest.mark.parametrize("make", [Fifo, Reservoir, ReservoirX])
@pytest.mark.parametrize("size", [0, -1, 2.5, True, "3"])
def test_size_must_be_a_whole_number(make, size):
    with pytest.raises((ValueError, TypeError), match="size must be a whole number >= 1"):
        make(size)


def test_method_must_be_known():
    with pytest.raises(TypeError, match="method must be one of"):
        ReservoirX(3, "sometimes")
