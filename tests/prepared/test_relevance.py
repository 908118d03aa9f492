"""`Prepared(scale="relevance")`: columns weighed by the gradient, renewed at positions of the stream that double."""

from __future__ import annotations

import itertools
import pickle

import model_files
import numpy as np
import pytest
from scipy.sparse import csr_array

import gristmill
from gristmill import (
    SGD,
    Additive,
    DropOldest,
    DropRandom,
    DropSmallest,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Merge,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Prepared,
    Project,
    Romma,
    Spline,
    Unbounded,
    Window,
    forgetron,
)
from gristmill.streams import relevance
from gristmill.streams.relevance import FIRST, RelevanceScaler


def stream(n: int = 2500, d: int = 12, seed: int = 0):
    """Two columns decide, on scales of their own; the others say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * X[:, 1]).astype(int)
    return X * np.geomspace(1e-3, 1e3, d) + 5.0, y


def relevant(budget=None, kernel=None, rule=None):
    return Prepared(
        KernelClassifier(kernel or Laplacian(0.25), rule, budget or Merge(200), random_state=0), "relevance"
    )


def same(a, b) -> bool:
    return (
        np.array_equal(a.support_vectors_, b.support_vectors_)
        and np.array_equal(a.dual_coef_, b.dual_coef_)
        and np.array_equal(a.support_ids_, b.support_ids_)
        and np.array_equal(a.intercept_, b.intercept_)
        and np.array_equal(a.relevance_, b.relevance_)
        and np.array_equal(a.scaler_.weights, b.scaler_.weights)
        and a.n_seen_ == b.n_seen_
    )


def test_it_finds_the_columns_that_matter_and_errs_less():
    X, y = stream()
    plain = Prepared(KernelClassifier(Laplacian(0.25), budget=Merge(200)))
    model = relevant()
    errors = [np.mean(np.sign(m.prequential(X, y))[1500:] != y[1500:]) for m in (plain, model)]
    assert set(np.argsort(model.relevance_)[-2:]) == {0, 1}
    assert model.relevance_.sum() == pytest.approx(1.0)
    assert errors[1] < 0.7 * errors[0]
    assert [found.position for found in model.relevance_history_] == [500, 1000, 2000]


@pytest.mark.parametrize(
    "budget", [Merge(150), DropSmallest(150), DropOldest(150), DropRandom(150), Unbounded()], ids=repr
)
@pytest.mark.parametrize("kernel", [Laplacian(0.25), Gaussian(0.05), Polynomial(2, 0.1, 1.0)], ids=repr)
def test_however_the_stream_is_cut(budget, kernel):
    X, y = stream(1300)
    whole = relevant(budget, kernel)
    said = whole.prequential(X, y)
    for cuts in ((499, 500, 501, 1000), (1, 250, 999, 1001), (500, 1000)):
        model = relevant(budget, kernel)
        bounds = [0, *cuts, len(X)]
        parts = [model.prequential(X[a:b], y[a:b]) for a, b in itertools.pairwise(bounds)]
        assert np.array_equal(np.concatenate(parts), said)
        assert same(model, whole)


def test_one_by_one():
    X, y = stream(1100)
    whole, model = relevant().fit(X, y), relevant()
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    assert same(model, whole)


@pytest.mark.parametrize(
    "rule", [Perceptron(), SGD(rate=0.5, reg=0.01, intercept=True), PassiveAggressive(C=0.1)], ids=repr
)
def test_classes_that_come_late_are_told_as_in_one_piece(rule):
    X, y = stream(1600)
    labels = np.where(y > 0, "b", "c")
    labels[:300] = "c"
    labels[700:] = np.where(X[700:, 1] > X[:, 1].mean(), labels[700:], "a")
    whole, model = relevant(rule=rule), relevant(rule=rule)
    said = whole.prequential(X, labels)
    assert said.shape == (1600, 3)
    bounds = [0, 200, 450, 800, 1600]
    parts = [model.prequential(X[a:b], labels[a:b]) for a, b in itertools.pairwise(bounds)]
    assert same(model, whole)
    assert np.array_equal(parts[-1], said[800:])
    assert np.array_equal(model.decision_function(X[:50]), whole.decision_function(X[:50]))
    # "c" came first, so f > 0 meant "b"; split, it is (-f/2 for "c", f/2 for "b"), in the order of the alphabet.
    assert np.array_equal(said[:200], np.column_stack([np.zeros(200), 0.5 * parts[0], -0.5 * parts[0]]))


@pytest.mark.parametrize("at", [499, 500, 750, 1000])
def test_saved_and_pickled_in_the_middle(tmp_path, at):
    X, y = stream(1300)
    whole = relevant().fit(X, y)
    model = relevant().fit(X[:at], y[:at])
    model.save(tmp_path / "model.gm")
    for copy in (gristmill.load(tmp_path / "model.gm"), pickle.loads(pickle.dumps(model))):
        assert same(copy, model)
        assert len(copy.relevance_history_) == len(model.relevance_history_)
        copy.partial_fit(X[at:], y[at:])
        assert same(copy, whole)


def test_a_damaged_file_is_refused(tmp_path):
    X, y = stream(600)
    relevant().fit(X, y).save(tmp_path / "model.gm")
    for name, value in (("relevance_weights", np.full(12, -1.0)), ("relevance_shares", np.zeros((2, 12)))):
        arrays, text = model_files.opened(tmp_path / "model.gm")
        arrays[name] = value
        (tmp_path / "forged").write_bytes(model_files.closed(arrays, text))
        with pytest.raises(gristmill.ModelFileError, match="relevance"):
            gristmill.load(tmp_path / "forged")


def test_single_precision_is_taken_as_it_comes():
    X, y = stream(1300)
    single = X.astype(np.float32)
    assert same(relevant().fit(single, y), relevant().fit(single.astype(np.float64), y))


def test_a_column_times_a_power_of_two_changes_no_bit():
    X, y = stream(1300)
    factors = 2.0 ** np.arange(-6, 6)
    a, b = relevant(), relevant()
    assert np.array_equal(a.prequential(X, y), b.prequential(X * factors, y))
    assert same(a, b)
    assert np.array_equal(a.gradient(X[:9]), b.gradient(X[:9] * factors) * factors)


def test_an_error_in_the_chunk_undoes_the_renewal():
    X, y = stream(1300)
    model, twin = relevant().fit(X[:400], y[:400]), relevant().fit(X[:400], y[:400])
    bad = X[400:].copy()
    bad[600, 3] = np.inf
    with pytest.raises(ValueError, match="inf is not a finite number"):
        model.partial_fit(bad, y[400:])
    with pytest.raises(ValueError, match=r"strings|numbers"):
        model.partial_fit(X[400:], [*y[400:-1].tolist(), "no number"])
    assert same(model, twin)
    # Learned on the way, and undone: a number too large for the kernel shows only when it is scaled by what was seen.
    assert same(model.partial_fit(X[400:], y[400:]), twin.partial_fit(X[400:], y[400:]))


def test_an_interrupt_after_a_renewal_undoes_it(monkeypatch):
    X, y = stream(1300)
    model, twin = relevant().fit(X[:400], y[:400]), relevant().fit(X[:400], y[:400])
    renew = RelevanceScaler.renew

    def interrupted(self, learner, owners):
        renew(self, learner, owners)
        if self.n_seen_ == 1000:
            raise KeyboardInterrupt

    monkeypatch.setattr(RelevanceScaler, "renew", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[400:], y[400:])
    assert same(model, twin)
    fresh = relevant()
    with pytest.raises(KeyboardInterrupt):
        fresh.partial_fit(X, y)
    assert not fresh.__sklearn_is_fitted__()
    monkeypatch.undo()
    assert same(model.partial_fit(X[400:], y[400:]), twin.partial_fit(X[400:], y[400:]))


def test_counters_ages_and_random_state_stay():
    X, y = stream(FIRST)
    model = relevant(DropRandom(100))
    model.fit(X[:-1], y[:-1])
    plain = Prepared(KernelClassifier(Laplacian(0.25), budget=DropRandom(100), random_state=0)).fit(X, y)
    model.partial_fit(X[-1:], y[-1:])
    before, after = plain.model_._engine.state(), model.model_._engine.state()
    assert model.relevance_history_[-1].taken
    for name in ("seen", "steps", "ids", "labels", "random_seed", "random_counter", "classes"):
        assert np.array_equal(before[name], after[name]), name


@pytest.mark.parametrize("kernel", [Laplacian(0.25), Gaussian(0.05)], ids=repr)
def test_a_renewal_is_what_a_plain_one_gives(kernel):
    """A part of three passes of PA-I from f = 0 over the stored points, the rest keeps the scores that they had."""
    X, y = stream(FIRST)
    model = relevant(DropSmallest(80), kernel, PassiveAggressive(C=0.5)).fit(X, y)
    plain = Prepared(KernelClassifier(kernel, PassiveAggressive(C=0.5), DropSmallest(80))).fit(X, y)
    assert model.relevance_history_[-1].taken
    old, points, labels = plain.support_vectors_, model.support_vectors_, y[model.support_ids_]
    assert points == pytest.approx(old * model.scaler_.weights, rel=1e-12)
    gram = kernel(points)
    learned = np.zeros(len(points))
    for _ in range(3):
        for i, label in enumerate(labels):
            loss = max(0.0, 1 - label * (gram[i] @ learned))
            learned[i] += label * min(0.5, loss / gram[i, i])
    present = plain.dual_coef_[:, 0]
    kept, scores = present.copy(), kernel(old) @ present
    for _ in range(2):
        for i in range(len(points)):
            kept[i] += (scores[i] - gram[i] @ kept - 0.3 * (kept[i] - present[i])) / 1.3
    share = min(0.5, 2 * np.linalg.norm(gram @ present - scores) / np.linalg.norm(scores))
    assert share > 0
    assert model.dual_coef_[:, 0] == pytest.approx(share * learned + (1 - share) * kept, abs=1e-9)


def test_a_renewal_of_numbers_is_what_a_plain_one_gives():
    """A part of three passes of PA from f = 0, the rest nearly keeps the scores, drawn to 0 by a ridge."""
    X, y = stream(FIRST)
    y = X[:, 0] * 300 + np.sin(X[:, 1])
    kernel, rule = Laplacian(0.25), PassiveAggressive(C=0.5, epsilon=0.1)
    model = Prepared(KernelRegressor(kernel, rule, DropOldest(80)), "relevance").fit(X, y)
    plain = Prepared(KernelRegressor(kernel, rule, DropOldest(80))).fit(X, y)
    assert model.relevance_history_[-1].taken
    labels, order = model.model_._engine.labels()  # in the units of the learner
    points, targets = model.support_vectors_, np.asarray(labels)[order, 0]
    gram, learned = kernel(points), np.zeros(len(points))
    for _ in range(3):
        for i, target in enumerate(targets):
            error = target - gram[i] @ learned
            learned[i] += np.sign(error) * min(0.5, max(0.0, abs(error) - 0.1) / gram[i, i])
    kept = plain.dual_coef_[:, 0].copy()
    scores = kernel(plain.support_vectors_) @ kept
    share = min(0.5, 2 * np.linalg.norm(gram @ kept - scores) / np.linalg.norm(scores))
    assert 0 < share < 0.5
    for _ in range(2):
        for i in range(len(points)):
            kept[i] += (scores[i] - gram[i] @ kept - 0.3 * kept[i]) / 1.3
    assert model.dual_coef_[:, 0] == pytest.approx(share * learned + (1 - share) * kept, abs=1e-9)


def test_where_nothing_changes_a_classifier_keeps_what_it_has(monkeypatch):
    X, y = stream(FIRST)
    monkeypatch.setattr(relevance, "_weights", lambda shares: np.ones(len(shares)))
    monkeypatch.setattr(relevance, "SLACK", 9.0)
    monkeypatch.setattr(relevance, "STEADY", -1.0)  # however little has changed
    model = relevant().fit(X, y)
    plain = Prepared(KernelClassifier(Laplacian(0.25), budget=Merge(200), random_state=0)).fit(X, y)
    assert model.relevance_history_[-1].taken
    assert model.dual_coef_ == pytest.approx(plain.dual_coef_, abs=1e-9)


def test_weights_that_hardly_changed_stay(monkeypatch):
    X, y = stream(1300)
    monkeypatch.setattr(relevance, "_weights", lambda shares: 1 + 0.001 * np.arange(len(shares)))
    model = relevant()
    plain = Prepared(KernelClassifier(Laplacian(0.25), budget=Merge(200), random_state=0))
    assert np.array_equal(model.prequential(X, y), plain.prequential(X, y))
    assert [found.taken for found in model.relevance_history_] == [False, False]
    assert model.relevance_.sum() == pytest.approx(1)


def test_weights_of_very_many_points_stay(monkeypatch):
    X, y = stream(1300)
    monkeypatch.setattr(relevance, "MOST", 150)
    model, plain = relevant(Unbounded()), Prepared(KernelClassifier(Laplacian(0.25), budget=Unbounded()))
    assert np.array_equal(model.prequential(X, y), plain.prequential(X, y))
    assert [found.taken for found in model.relevance_history_] == [False, False]
    assert model.relevance_.max() > 2 * model.relevance_.min()  # what matters is still told


def test_how_much_of_the_weights_moved():
    old, fresh = np.array([1.0, 1.0, 1.0, 1.0]), np.array([2.0, 0.0, 2.0, 0.0])
    assert relevance._moved(old, fresh) == pytest.approx(0.5)
    assert relevance._moved(old, 7 * old) == pytest.approx(0)


def test_a_norm_is_the_norm_afterwards():
    X, y = stream(FIRST + 100)
    model = relevant(DropSmallest(80), Gaussian(0.05), Romma()).fit(X[:FIRST], y[:FIRST])
    assert model.relevance_history_[-1].taken
    for _ in range(2):
        coefs = model.dual_coef_[:, 0]
        assert model.norm_**2 == pytest.approx(coefs @ Gaussian(0.05)(model.support_vectors_) @ coefs, rel=1e-9)
        model.partial_fit(X[FIRST:], y[FIRST:])


def test_weights_that_do_not_help_are_not_taken(monkeypatch):
    X, y = stream(1300)
    monkeypatch.setattr(relevance, "SLACK", -1.0)  # nothing helps that much
    model = relevant()
    plain = Prepared(KernelClassifier(Laplacian(0.25), budget=Merge(200), random_state=0))
    assert np.array_equal(model.prequential(X, y), plain.prequential(X, y))
    assert [found.taken for found in model.relevance_history_] == [False, False]
    assert model.scaler_.weights.tolist() == [1.0] * 12
    assert np.array_equal(model.dual_coef_, plain.dual_coef_)


def test_the_median_distance_stays_what_it_was():
    X, y = stream(FIRST)
    model = relevant(Unbounded()).fit(X, y)
    points = model.support_vectors_
    assert len(points) > 256
    old = points / model.scaler_.weights

    def median(rows):
        some = rows[[i * len(rows) // 256 for i in range(0, 256, 2)]]
        return np.median((np.abs(some[:, None] - some[None])).sum(axis=2)[np.triu_indices(128, 1)])

    assert median(points) == pytest.approx(median(old), rel=1e-9)


def test_no_weight_is_nearly_nothing():
    X, y = stream()
    weights = relevant().fit(X, y).scaler_.weights
    assert weights.min() >= 0.05 * weights.max() * (1 - 1e-12)
    assert weights.max() > 3 * weights.min()


def test_numbers_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 15))
    y = np.sin(2 * X[:, 3]) + 0.5 * X[:, 7]
    parts = Gaussian(0.05), PassiveAggressive(C=1.0, epsilon=0.05), Merge(300)
    plain, model = Prepared(KernelRegressor(*parts)), Prepared(KernelRegressor(*parts), "relevance")
    errors = [np.abs(m.prequential(X, y) - y)[1250:].mean() for m in (plain, model)]
    assert set(np.argsort(model.relevance_)[-2:]) == {3, 7}
    assert errors[1] < 0.8 * errors[0]


def test_memory_is_bounded():
    X, y = stream(4100)
    model = relevant(Merge(100)).fit(X[:3900], y[:3900])
    before = model.memory_bytes_
    model.partial_fit(X[3900:], y[3900:])
    assert model.memory_bytes_ - before == 8 * 12  # one more line of history


def test_frozen_scaling():
    X, y = stream(1300)
    whole = Prepared(KernelClassifier(Laplacian(0.25), budget=Merge(100)), "relevance", warmup=300).fit(X, y)
    model = Prepared(KernelClassifier(Laplacian(0.25), budget=Merge(100)), "relevance", warmup=300)
    model.partial_fit(X[:700], y[:700]).partial_fit(X[700:], y[700:])
    assert same(model, whole)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (KernelNovelty(), "needs labels"),
        (KernelClassifier(Additive(Spline())), "learns each by itself"),
        (KernelClassifier(lambda a, b: 1.0), "Python function"),
        (KernelClassifier(Gaussian(1.0), Perceptron(), Unbounded(), average=True), "average=True"),
        (KernelClassifier(budget=Window(100)), "Window"),
        (KernelClassifier(budget=Project(0.1), rule=Perceptron()), "Project"),
        (forgetron(Gaussian(1.0), 10), "Forget"),
        (gristmill.PairwiseAUC(), "kernel learner"),
    ],
)
def test_refused_by_name(model, why):
    X, y = stream(30)
    prepared = Prepared(model, "relevance")
    with pytest.raises(ValueError, match=why):
        prepared.fit(X, y)
    assert not prepared.__sklearn_is_fitted__()


def test_several_passes_are_refused():
    X, y = stream(600)
    model = Prepared(KernelClassifier(passes=2), "relevance")
    with pytest.raises(ValueError, match="use passes=1"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="use passes=1"):
        relevant().fit(X, y, passes=3)
    assert not model.__sklearn_is_fitted__()


def test_sparse_rows_have_weights_up_to_a_width(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 12)) * (rng.uniform(size=(1300, 12)) < 0.5)
    y = X[:, 3] > 0.3 * X[:, 7]
    whole = relevant().fit(csr_array(X), y)
    assert set(np.argsort(whole.relevance_)[-2:]) == {3, 7}
    model = relevant().partial_fit(csr_array(X[:700]), y[:700])
    model.save(tmp_path / "sparse.gristmill")
    model = gristmill.load(tmp_path / "sparse.gristmill").partial_fit(csr_array(X[700:]), y[700:])
    assert same(model, whole)
    assert np.array_equal(model.predict(csr_array(X)), whole.predict(csr_array(X)))
    assert model.gradient(csr_array(X[:3])).shape == (3, 12)
    assert list(model.explain(csr_array(X[:1])).relevance) == [f"x{at}" for at in range(12)]


def test_sparse_rows_wider_than_that_are_refused():
    y = stream(30)[1]
    model = relevant()
    with pytest.raises(TypeError, match=r"at most 1,024 columns, and these .* have 1,025"):
        model.fit(csr_array((30, 1025)), y)
    assert not model.__sklearn_is_fitted__()


def test_relevance_is_of_relevance_alone():
    X, y = stream(30)
    assert not hasattr(Prepared(KernelClassifier()).fit(X, y), "relevance_")
    assert not hasattr(relevant(), "relevance_")
    with pytest.raises(AttributeError, match='relevance_history_ is there with scale="relevance", once'):
        _ = relevant().relevance_history_
    assert relevant().fit(X, y).relevance_.tolist() == [1 / 12] * 12


@pytest.mark.parametrize("over_time", [False, True])
def test_pictures(over_time):
    from gristmill.evaluate import RelevanceDisplay

    X, y = stream(1100)
    model = relevant().fit(X, y)
    display = RelevanceDisplay.from_estimator(model).plot(over_time=over_time, most=10)
    if over_time:
        assert len(display.lines_) == 10
        assert display.lines_[0].get_xdata().tolist() == [500, 1000]
    else:
        assert [bar.get_width() for bar in display.bars_] == sorted(model.relevance_, reverse=True)[:10]
        assert {label.get_text() for label in display.ax_.get_yticklabels()[:2]} == {"x0", "x1"}
    with pytest.raises(ValueError, match="12 columns"):
        RelevanceDisplay.from_estimator(model, names=["a"])
