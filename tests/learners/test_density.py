"""Kernel density: the rule against its twin, the quantile of the last thousand scores, alarms, and what refuses it."""

from __future__ import annotations

import numpy as np
import pytest
from twin_cases import beside_the_twin, compositions

import gristmill
from gristmill import (
    Additive,
    Density,
    DropOldest,
    DropRandom,
    DropSmallest,
    Fleet,
    Forget,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    Laplacian,
    Merge,
    PairwiseAUC,
    Perceptron,
    Project,
    StructuredLearner,
    Unbounded,
)

X = np.random.default_rng(0).normal(size=(2500, 3))


@pytest.mark.parametrize(("task", "rule", "budget", "kind"), list(compositions("density")))
def test_the_core_is_the_twin(task, rule, budget, kind):
    beside_the_twin(task, rule, budget, kind)


def test_the_score_is_the_mean_kernel():
    weights = np.random.default_rng(1).uniform(0.1, 3.0, size=60)
    model = KernelNovelty(Gaussian(0.5), Density(), Unbounded()).fit(X[:60], sample_weight=weights)
    wanted = Gaussian(0.5)(X[100:120], X[:60]) @ weights / weights.sum()
    assert np.allclose(model.score_samples(X[100:120]), wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("budget", "total"),
    [(Unbounded(), 1), (DropOldest(40), 40 / 41), (DropRandom(40, uniform=True), 40 / 41)],
    ids=repr,
)
def test_the_coefficients_sum_to_one_unless_points_are_dropped(budget, total):
    model = KernelNovelty(Gaussian(0.5), Density(), budget, random_state=0).fit(X[:300])
    assert abs(model.dual_coef_.sum() - total) < 1e-12
    if total < 1:
        mean = Gaussian(0.5)(X[300:320], model.support_vectors_).mean(axis=1)
        assert np.allclose(model.score_samples(X[300:320]), total * mean, rtol=0, atol=1e-13)


@pytest.mark.parametrize("budget", [Merge(40), DropOldest(40), DropRandom(40, uniform=True)], ids=repr)
def test_the_offset_is_the_quantile_of_the_last_thousand_scores(budget, tmp_path):
    model = KernelNovelty(Laplacian(1.0), Density(nu=0.03), budget, random_state=4)
    scores, offset = [], 0.0
    for first in range(0, 2500, 50):
        for x in X[first : first + 50]:
            scores.append(model.score_one(x) + offset)
            model.learn_one(x)
            offset = model.offset_
        wanted = np.quantile(scores[-1000:], 0.03, method="weibull")
        assert abs(offset - wanted) <= 1e-12, first
        if first == 1700:  # the ring goes on where it was
            model.save(tmp_path / "density.gristmill")
            model = gristmill.load(tmp_path / "density.gristmill")
    whole = KernelNovelty(Laplacian(1.0), Density(nu=0.03), budget, random_state=4)
    said = whole.prequential(X)
    assert whole.offset_ == model.offset_
    assert np.array_equal(whole.dual_coef_, model.dual_coef_)
    assert not (said[:50] < 0).any()
    assert 0.02 <= (said[1000:] < 0).mean() <= 0.04


def test_an_error_in_the_middle_of_a_chunk_brings_the_scores_back():
    def fussy(a, b):
        if a[0] > 90 and b[0] > 90:
            raise ArithmeticError("too far out")
        return float(np.exp(-((a - b) ** 2).sum()))

    model = KernelNovelty(fussy, Density(nu=0.1), DropOldest(20)).fit(X[:80])
    offset, coef = model.offset_, model.dual_coef_
    bad = np.vstack([X[80:90], [[99.0, 0, 0]], X[90:95]])
    with pytest.raises(ArithmeticError):
        model.partial_fit(bad)
    assert model.offset_ == offset
    assert np.array_equal(model.dual_coef_, coef)
    model.partial_fit(X[80:130])
    assert model.offset_ == KernelNovelty(fussy, Density(nu=0.1), DropOldest(20)).fit(X[:130]).offset_


def test_decay_forgets():
    far = np.vstack([X[:300], X[:300] + 20])
    old, new = (
        KernelNovelty(Gaussian(0.5), Density(decay=decay), Unbounded()).fit(far).score_samples(X[:50]).mean()
        for decay in (0.0, 0.02)
    )
    assert new < 0.01 * old


def test_strange_events_score_low():
    rng = np.random.default_rng(3)
    rows = np.vstack([rng.normal(size=(970, 4)), rng.uniform(-6, 6, size=(30, 4))])
    order = rng.permutation(1000)
    for budget in (Merge(300), DropRandom(300, uniform=True)):
        said = KernelNovelty(Gaussian(0.5), Density(), budget, random_state=0).prequential(rows[order])
        strange = order >= 970
        assert (said[strange][:, None] < said[~strange][None]).mean() > 0.97


def test_memory_counts_the_scores_and_stays():
    model = KernelNovelty(Gaussian(0.5), Density(), DropOldest(30)).fit(X[:50])
    bytes_then = model.memory_bytes_
    assert bytes_then > 10_000
    assert model.partial_fit(X).memory_bytes_ == bytes_then
    small = KernelNovelty(Gaussian(0.5), Density(), Merge("64 kB")).fit(X)
    assert 55_000 < small.memory_bytes_ <= 64_000


def test_what_cannot_run_it_says_so():
    for other, match in (
        (lambda: KernelClassifier(Gaussian(1.0), Density()).fit(X, X[:, 0] > 0), "Density is a rule for novelty"),
        (lambda: KernelNovelty(Gaussian(1.0), Density(), DropSmallest(5)).fit(X), "every event the same coefficient"),
        (lambda: KernelNovelty(Gaussian(1.0), Density(), Project(0.1)).fit(X), "not with Density"),
        (lambda: KernelNovelty(Gaussian(1.0), Density(), Forget(9)).fit(X), "not with Density"),
        (lambda: KernelNovelty(Additive(Laplacian(1.0)), Density(), DropOldest(9)).fit(X), "Density changes terms"),
        (lambda: Fleet(KernelNovelty(Gaussian(1.0), Density(), DropOldest(9)), 3).partial_fit(X), "cannot run Density"),
        (lambda: Density(decay=1.0), r"decay must be a number in \[0, 1\), got 1.0"),
        (lambda: Density(nu=0.0), r"nu must be a number in \(0, 1\), got 0.0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            other()


# ---- neighbours -----------------------------------------------------------------------------------------------------


def farness(value):
    return np.log(max(-np.log(max(value, 1e-290)), 0.0) + 1e-3)


def local_twin(kernel, rows, share, size):
    """Scores of a window of the newest, each said before its event was stored."""
    stored, reaches, said = [], [], []
    for x in rows:
        values = kernel(x[None], np.array(stored))[0] if stored else np.empty(0)
        own, score = np.nan, 1.0
        if stored:
            last = np.sort(values)[::-1][min(len(stored), max(2, int(share * len(stored) + 0.5))) - 1]
            own, near = farness(last), np.array(reaches)[values >= last]
            near = near[~np.isnan(near)]
            score = np.exp(near.mean() - own) if len(near) else 1.0
        said.append(score)
        stored, reaches = [*stored, x][-size:], [*reaches, own][-size:]
    return np.array(said)


@pytest.mark.parametrize("share", [0.02, 0.2])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.2)], ids=repr)
def test_the_local_score_is_that_of_the_twin(kernel, share):
    rows = X[:400].round(1)  # some are there twice
    rows[200:260] = rows[100:160]
    model = KernelNovelty(kernel, Density(neighbours=share), DropOldest(120))
    scores, offset = [], 0.0
    for x in rows:
        scores.append((model.score_one(x) if len(scores) else 1.0) + offset)
        model.learn_one(x)
        offset = model.offset_
    np.testing.assert_allclose(scores, local_twin(kernel, rows, share, 120), rtol=1e-9)


def test_the_local_score_is_the_same_however_the_stream_is_cut(tmp_path):
    def fresh():
        return KernelNovelty(Gaussian(0.3), Density(neighbours=0.05), DropRandom(90, uniform=True), random_state=1)

    whole, cut, said, start = fresh(), fresh(), [], 0
    expected = whole.prequential(X[:900])
    for stop in (1, 2, 77, 400, 900):
        said.append(cut.prequential(X[start:stop]))
        cut.save(tmp_path / "local")
        cut, start = gristmill.load(tmp_path / "local"), stop
    np.testing.assert_array_equal(expected, np.concatenate(said))
    np.testing.assert_array_equal(whole.decision_function(X[900:1000]), cut.decision_function(X[900:1000]))
    before, bad = whole.decision_function(X[:50]), X[:40].copy()
    bad[30, 1] = np.inf
    with pytest.raises(ValueError, match="row 30"):
        whole.partial_fit(bad)
    np.testing.assert_array_equal(whole.decision_function(X[:50]), before)


def test_what_lies_beside_a_dense_group_is_strange_locally():
    rng = np.random.default_rng(4)
    dense = rng.random(2000) < 0.5
    rows = np.where(dense[:, None], 0.05 * rng.normal(size=(2000, 2)), 6 + 2.0 * rng.normal(size=(2000, 2)))
    odd = dense & (rng.random(2000) < 0.06)
    turn = rng.uniform(0, 2 * np.pi, size=odd.sum())
    rows[odd] = 0.6 * np.column_stack([np.cos(turn), np.sin(turn)])
    wide, local = (
        KernelNovelty(
            Gaussian(2.0), Density(neighbours=share), DropRandom(500, uniform=True), random_state=0
        ).prequential(rows)[200:]
        for share in (0.0, 0.02)
    )

    def told(said):
        return (said[odd[200:]][:, None] < said[~odd[200:]][None]).mean()

    assert told(local) > 0.9 > told(wide)


def test_what_a_local_score_cannot_do_is_refused():
    model = KernelNovelty(Gaussian(1.0), Density(neighbours=0.1), DropOldest(50)).fit(X[:200])
    with pytest.raises(ValueError, match="no gradient"):
        model.gradient(X[:2])
    with pytest.raises(TypeError, match="not a sum"):
        model.explain(X[0])
    with pytest.raises(TypeError, match="not a sum"):
        gristmill.compress(model, 10)
    with pytest.raises(ValueError, match="no average"):
        KernelNovelty(Gaussian(1.0), Density(neighbours=0.1), Merge(9), average=True).fit(X)
    with pytest.raises(ValueError, match=r"neighbours must be a number in \[0, 1\)"):
        Density(neighbours=1.0)


# ---- the reservoir --------------------------------------------------------------------------------------------------


def test_a_reservoir_is_a_uniform_sample_of_all_that_came():
    size, events, runs = 10, 60, 600
    counts = np.zeros(events)
    for seed in range(runs):
        model = KernelNovelty(Gaussian(1.0), Density(), DropRandom(size, uniform=True), random_state=seed)
        counts[model.fit(X[:events]).support_ids_] += 1
    share = size / events
    spread = np.sqrt(runs * share * (1 - share))
    assert np.abs(counts - runs * share).max() < 4 * spread
    chi2 = ((counts - runs * share) ** 2).sum() / (runs * share * (1 - share))
    assert 30 < chi2 < 100  # 59 expected, standard deviation 11


def test_a_reservoir_of_structures_is_uniform_too():
    labels, counts = ["a", "b"], np.zeros(30)
    for seed in range(100):
        budget = DropRandom(5, uniform=True)
        model = StructuredLearner(Gaussian(1.0), labels, rule=Perceptron(), budget=budget, random_state=seed)
        rows = 1000.0 * np.arange(30)[:, None]  # too far apart to learn from each other: every event asks to come in
        model.fit(rows, ["b"] * 30)
        counts[model.support_ids_] += 1
    assert counts.sum() == 500
    assert counts.min() >= 5
    assert counts.max() <= 32


def test_who_cannot_sample_uniformly_says_so():
    with pytest.raises(ValueError, match="uniform=True"):
        Fleet(KernelClassifier(Gaussian(1.0), Perceptron(), DropRandom(5, uniform=True)), 2).check_parameters()
    with pytest.raises(ValueError, match="buffer samples"):
        PairwiseAUC(Gaussian(1.0), budget=DropRandom(5, uniform=True)).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="uniform must be True or False"):
        DropRandom(5, uniform=2)
