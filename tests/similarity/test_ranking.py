"""Ranking: gains, NDCG, query groups."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from gristmill import Gaussian, LandmarkRanker
from gristmill.similarity.solvers.gains import gains_of, ndcg, normalised

RNG = np.random.default_rng(2)
X = RNG.normal(size=(120, 3))
QID = np.repeat(np.arange(12), 10)
R = np.clip(np.round(3 - 2 * np.abs(X[:, 0])), 0, None)


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_ndcg_is_scikit_learns(gain):
    for _ in range(50):
        relevances = RNG.integers(0, 4, 8)
        scores = RNG.normal(size=8)
        theirs = ndcg_score(gains_of(relevances, gain)[None], scores[None])
        assert ndcg(relevances, scores, gain) == pytest.approx(theirs)
        tied = np.round(scores)
        theirs = ndcg_score(gains_of(relevances, gain)[None], tied[None])
        assert ndcg(relevances, tied, gain, ties="average") == pytest.approx(theirs)


def test_ndcg_is_in_the_unit_interval_best_at_the_truth_and_blind_to_increasing_maps():
    for _ in range(50):
        relevances, scores = RNG.integers(0, 4, 6), RNG.normal(size=6)
        assert 0.0 <= ndcg(relevances, scores) <= 1.0
        assert ndcg(relevances, scores) == ndcg(relevances, np.exp(scores))
        if relevances.any():
            assert ndcg(relevances, relevances) == pytest.approx(1.0)
    assert ndcg([0, 0, 0], [1.0, 2.0, 3.0]) == 0.0


def test_normalised_gains_are_those_of_the_formula():
    relevances = [0, 3, 1]
    best = 7 / np.log2(2) + 1 / np.log2(3)
    assert np.allclose(normalised(gains_of(relevances, "exponential")), np.array([0, 7, 1]) / best)
    assert np.array_equal(normalised(np.zeros(3)), np.zeros(3))


def test_weights_minimise_the_squared_loss_on_normalised_gains():
    model = LandmarkRanker(Gaussian(0.5), 20, C=3.0, random_state=0).fit(X, R, qid=QID)
    values = Gaussian(0.5)(X, model.landmarks_) / model.scale_
    targets = np.concatenate([normalised(2.0 ** R[q == QID] - 1) for q in range(12)])
    design = np.column_stack([values, np.ones(120)])
    ridge = np.diag(np.append(np.ones(20), 0.0))
    solution = np.linalg.solve(ridge + 6.0 * design.T @ design, 6.0 * design.T @ targets)
    assert np.allclose(model.predict(X), design @ solution, atol=1e-8)


def test_order_of_rows_and_names_of_queries_do_not_matter():
    names = np.array([f"query {q}" for q in QID])
    shuffled = RNG.permutation(120)
    position = np.argsort(shuffled)
    chosen = np.arange(0, 120, 6)
    one = LandmarkRanker(Gaussian(0.5), selection=chosen).fit(X, R, qid=QID)
    other = LandmarkRanker(Gaussian(0.5), selection=position[chosen])
    other.fit(X[shuffled], R[shuffled], qid=names[shuffled])
    assert np.allclose(one.predict(X), other.predict(X), atol=1e-8)
    score = one.score(X, R, qid=QID)
    assert score == pytest.approx(other.score(X[shuffled], R[shuffled], qid=names[shuffled]))
    queries = [(2.0 ** R[q == QID] - 1, one.predict(X[q == QID])) for q in range(12)]
    assert score == pytest.approx(np.mean([ndcg_score(g[None], s[None]) for g, s in queries]))


def test_queries_of_one_document_are_passed_over():
    qid = np.append(QID, 99)
    extra, relevance = np.vstack([X, [[9.0, 9.0, 9.0]]]), np.append(R, 3.0)
    chosen = np.arange(0, 120, 6)
    with_it = LandmarkRanker(Gaussian(0.5), selection=chosen).fit(extra, relevance, qid=qid)
    without = LandmarkRanker(Gaussian(0.5), selection=chosen).fit(X, R, qid=QID)
    assert np.allclose(with_it.predict(X), without.predict(X))
    assert with_it.score(extra, relevance, qid=qid) == pytest.approx(without.score(X, R, qid=QID))
    with pytest.raises(ValueError, match="single document"):
        LandmarkRanker(Gaussian(0.5)).fit(X[:3], R[:3], qid=[0, 1, 2])


def test_bad_relevances_and_queries():
    with pytest.raises(ValueError, match=r"y\[1\] is -1"):
        LandmarkRanker().fit([[0.0], [1.0]], [0, -1])
    with pytest.raises(ValueError, match="gain='linear'"):
        LandmarkRanker().fit([[0.0], [1.0]], [0, 5000])
    with pytest.raises(ValueError, match="as many"):
        LandmarkRanker().fit([[0.0], [1.0]], [0, 1], qid=[1])
    with pytest.raises(TypeError, match="gain must be"):
        LandmarkRanker(gain="cubic").fit([[0.0], [1.0]], [0, 1])
