"""Pairs of landmarks, transfer functions, their tuning, and boosted stumps."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs, make_classification
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

from gristmill import Gaussian, LandmarkClassifier, LandmarkPairClassifier, Sigmoid, load
from gristmill.similarity import Identity, Ramp, Sign
from gristmill.similarity.solvers.boost import adaboost, boosted_pairs
from gristmill.similarity.solvers.linear import hold_out

X2, Y2 = make_classification(200, 6, n_informative=4, random_state=0)
X3, Y3 = make_blobs(240, 4, centers=4, cluster_std=3.0, random_state=1)


# ---- transfer functions ------------------------------------------------------------------------------------


def test_identity_and_sign_are_the_limits_of_the_ramp():
    t = np.linspace(-1, 1, 201)
    assert np.array_equal(Ramp(1.0)(t), Identity()(t))
    assert np.array_equal(Ramp(1e12)(t), Sign()(t))
    assert Ramp(7.0)(0.0) == Sign()(0.0) == 0.0


@pytest.mark.parametrize("f", [Ramp(3.0), Identity(), Sign()])
def test_swapping_a_pair_flips_the_sign(f):
    t = np.random.default_rng(0).uniform(-2, 2, 100)
    assert np.array_equal(f(-t), -f(t))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (np.abs, "not antisymmetric"),
        (lambda t: t + 0.1, "not antisymmetric"),
        (lambda t: 1.0 / t, "not finite"),
        (lambda t: 0.5, "the same shape"),
        ("ramp", "transfer must be"),
        ([], "transfer must be"),
        (7, "transfer must be"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_transfer_function_that_is_none_is_refused(f, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LandmarkPairClassifier(Gaussian(0.1), 10, transfer=f, C=1.0, random_state=0).fit(X2, Y2)


def test_a_transfer_function_of_ones_own():
    model = LandmarkPairClassifier(Gaussian(0.1), 20, transfer=np.tanh, random_state=0).fit(X2, Y2)
    assert model.transfer_ == [np.tanh]
    assert model.score(X2, Y2) > 0.8


# ---- the classifier against plain loops --------------------------------------------------------------------


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("selection", ["random", "diverse"])
def test_decision_values_are_those_of_plain_loops(per_class, selection):
    k = Sigmoid(0.05, -0.5)
    model = LandmarkPairClassifier(k, 12, per_class=per_class, selection=selection, random_state=0)
    model.fit(X3, Y3)
    new = X3[:5] + 0.1
    scores = model.decision_function(new)
    assert model.pairs_.shape == (4, 12, 2)
    for i, x in enumerate(new):
        for c in range(4):
            total = model.intercept_[c]
            for j in range(12):
                plus, minus = (model.landmarks_[model.pairs_[c, j, side]] for side in (0, 1))
                difference = (k(x, plus) - k(x, minus)) / model.scale_
                total += model.coef_[c, j] * float(model.transfer_[c](difference))
            assert scores[i, c] == pytest.approx(total, abs=1e-10)
    assert np.array_equal(model.predict(new), model.classes_[scores.argmax(axis=1)])


def test_pairs_hold_one_object_of_each_side_and_none_held_out():
    model = LandmarkPairClassifier(Gaussian(0.1), 15, random_state=0).fit(X3, Y3)
    labels = Y3[model.landmark_indices_]
    for c in range(4):
        assert np.all(labels[model.pairs_[c, :, 0]] == c)
        assert np.all(labels[model.pairs_[c, :, 1]] != c)
    rng = np.random.default_rng(0)
    held = hold_out(Y3, 0.2, rng)
    assert not np.isin(model.landmark_indices_, np.flatnonzero(held)).any()


def test_diverse_pairs_use_at_most_as_many_objects_as_pairs():
    model = LandmarkPairClassifier(Gaussian(0.1), 20, selection="diverse", random_state=0).fit(X3, Y3)
    assert model.n_landmarks_ <= 20
    assert model.n_evaluations_ <= len(X3) * 20


def test_the_choice_is_the_best_on_validation_with_ties_to_the_first():
    model = LandmarkPairClassifier(Gaussian(0.1), 25, random_state=0).fit(X2, Y2)
    table = model.validation_scores_
    assert table.shape == (6, 4)
    slope, cost = np.unravel_index(np.argmax(table), table.shape)
    assert model.transfer_ == [Ramp((1.0, 5.0, 10.0, 50.0, 100.0, 1000.0)[slope])]
    assert [(1.0, 10.0, 100.0, 1000.0)[cost]] == model.C_
    each = LandmarkPairClassifier(Gaussian(0.02), 25, per_class=True, random_state=0).fit(X3, Y3)
    assert each.validation_scores_.shape == (4, 6, 4)
    for c in range(4):
        slope, cost = np.unravel_index(np.argmax(each.validation_scores_[c]), (6, 4))
        assert each.C_[c] == (1.0, 10.0, 100.0, 1000.0)[cost]


def test_identity_pairs_are_a_machine_over_single_landmarks():
    """Appendix A.2: with the identity the score is linear in the similarities themselves."""
    model = LandmarkPairClassifier(Gaussian(0.1), 20, transfer="identity", C=1.0, random_state=0).fit(X2, Y2)
    singles = np.zeros(model.n_landmarks_)
    for weight, (plus, minus) in zip(model.coef_[0], model.pairs_[0], strict=True):
        singles[plus] += weight
        singles[minus] -= weight
    direct = Gaussian(0.1)(X2, model.landmarks_) / model.scale_ @ singles + model.intercept_[0]
    assert np.allclose(model.decision_function(X2), direct)


def test_sign_pairs_ask_only_which_of_two_is_nearer():
    """Appendix A.1: any increasing map of the similarity gives the same model, as in Wang, Yang and Feng."""
    near = LandmarkPairClassifier(Gaussian(0.1), 30, transfer="sign", solver="boost", random_state=0)
    far = LandmarkPairClassifier(
        lambda a, b: np.sum((a - b) ** 2), 30, transfer="sign", solver="boost", distance=True, random_state=0
    )
    assert np.allclose(near.fit(X2, Y2).decision_function(X2), far.fit(X2, Y2).decision_function(X2))


# ---- Balcan and Blum ---------------------------------------------------------------------------------------


def test_landmark_classifier_is_liblinear_over_normalised_similarities():
    k = Sigmoid(0.1, -1.0)

    def objective(w, b, values, signs):
        slack = np.maximum(0.0, 1.0 - signs * (values @ w + b))
        return 0.5 * (w @ w + b * b) + 10.0 * slack @ slack

    for X, y in ((X2, Y2), (X3, Y3)):
        model = LandmarkClassifier(k, 20, C=10.0, random_state=0).fit(X, y)
        values = k(X, X[model.landmark_indices_])
        values = values / np.abs(values).max()
        assert np.allclose(model.decision_function(X).reshape(len(X), -1), values @ model.coef_.T + model.intercept_)
        twin = LinearSVC(C=10.0, dual=False, tol=1e-8).fit(values, y)
        for p, (w, b) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
            signs = np.where(y == (1 if len(model.coef_) == 1 else p), 1.0, -1.0)
            least = objective(twin.coef_[p], twin.intercept_[p], values, signs)
            assert least == pytest.approx(objective(w, b, values, signs), rel=1e-4)


def test_diverse_landmarks_come_from_each_class():
    model = LandmarkClassifier(Gaussian(0.1), 10, "diverse", random_state=0).fit(X3, Y3)
    assert np.bincount(Y3[model.landmark_indices_]).tolist() == [2, 2, 2, 2]


def test_C_is_chosen_on_held_out_objects():
    model = LandmarkClassifier(Gaussian(0.1), 20, C=[0.001, 5.0], random_state=0).fit(X2, Y2)
    assert (0.001, 5.0)[int(np.argmax(model.validation_scores_))] == model.C_


def test_sparse_selection_finds_the_landmarks_that_matter():
    rng = np.random.default_rng(0)
    matrix = rng.uniform(-1, 1, size=(300, 300))
    y = (2 * matrix[:, 17] - 1.5 * matrix[:, 140] + matrix[:, 260] > 0).astype(int)
    model = LandmarkClassifier("precomputed", 300, C=10.0, n_nonzero=3, random_state=0).fit(matrix, y)
    assert model.landmark_indices_.tolist() == [17, 140, 260]
    assert model.score(matrix[:, [17, 140, 260]], y) > 0.95


@pytest.mark.parametrize("make", [LandmarkClassifier, LandmarkPairClassifier])
def test_sgd_beneath(make):
    model = make(Gaussian(0.1), 30, C=10.0, solver="sgd", random_state=0).fit(X2, Y2)
    assert model.score(X2, Y2) > 0.75


def test_probabilities_by_scikit_learns_wrapper():
    wrapped = CalibratedClassifierCV(LandmarkClassifier(Gaussian(0.1), 20, C=10.0, random_state=0), cv=3)
    chances = wrapped.fit(X2, Y2).predict_proba(X2)
    assert chances[Y2 == 1, 1].mean() > 0.6 > 0.4 > chances[Y2 == 0, 1].mean()


def test_cross_validation_cuts_a_precomputed_matrix_on_both_sides():
    K = Gaussian(0.1)(X2, X2)
    looked = cross_val_score(LandmarkClassifier("precomputed", 20, random_state=0), K, Y2, cv=3)
    direct = cross_val_score(LandmarkClassifier(Gaussian(0.1), 20, random_state=0), X2, Y2, cv=3)
    assert np.allclose(looked, direct)


@pytest.mark.parametrize("make", [LandmarkClassifier, LandmarkPairClassifier])
def test_one_class_only_is_refused(make):
    with pytest.raises(ValueError, match="1 class"):
        make(Gaussian(1.0)).fit([[0.0], [1.0]], [3, 3])


def test_pairs_need_labels_of_landmarks():
    with pytest.raises(ValueError, match="must be square"):
        LandmarkPairClassifier("precomputed", 5).fit(np.zeros((8, 5)), [0, 1] * 4)
    with pytest.raises(ValueError, match="all of one class"):
        LandmarkPairClassifier(Gaussian(1.0), 2, selection=[0, 2], C=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 0])


def test_bad_costs_and_too_few_objects_to_validate():
    with pytest.raises(ValueError, match="C must be"):
        LandmarkClassifier(Gaussian(1.0), C=-1).fit(X2, Y2)
    with pytest.raises(ValueError, match="too few objects"):
        LandmarkPairClassifier(Gaussian(1.0), 2).fit([[0.0], [1.0]], [0, 1])


# ---- boosting ----------------------------------------------------------------------------------------------


def test_boosting_against_a_plain_loop():
    rng = np.random.default_rng(0)
    stumps = np.sign(rng.normal(size=(40, 6)))
    stumps[rng.random((40, 6)) < 0.1] = 0.0
    y = np.sign(stumps @ [2.0, -1.0, 0.5, 0, 0, 0] + 0.1 + rng.normal(size=40))
    mass, weights = [1 / 40] * 40, [0.0] * 6
    for _ in range(10):
        edges = [sum(m * yi * h for m, yi, h in zip(mass, y, stumps[:, j], strict=True)) for j in range(6)]
        j = max(range(6), key=lambda j: abs(edges[j]))
        step = 0.5 * np.log((1 + edges[j]) / (1 - edges[j]))
        weights[j] += step
        mass = [m * np.exp(-step * yi * h) for m, yi, h in zip(mass, y, stumps[:, j], strict=True)]
        mass = [m / sum(mass) for m in mass]
    assert np.allclose(adaboost(stumps, y, 10), weights)
    losses = [np.exp(-y * (stumps @ adaboost(stumps, y, r))).mean() for r in range(8)]
    assert all(b <= a for a, b in pairwise(losses))


def test_a_perfect_stump_ends_boosting():
    y = np.array([1.0, -1.0, 1.0])
    weights = adaboost(np.column_stack([y, -y * [1, 1, -1]]), y, 50)
    assert weights[0] > 10
    assert weights[1] == 0


# ---- boosting over fresh pairs -----------------------------------------------------------------------------


def fresh(**options):
    return LandmarkPairClassifier(Gaussian(0.1), 30, transfer="boost", random_state=0, **options)


def naive_boosted_pairs(K, y, sides, rounds, candidates, rng):
    """The same in plain loops, drawing the same pairs."""
    mass, pairs, weights, offset = np.full(len(y), 1 / len(y)), [], [], 0.0
    for _ in range(rounds):
        drawn = list(zip(*(rng.choice(s, candidates, p=mass[s] / mass[s].sum()) for s in sides), strict=True))
        stumps = [np.sign(K[:, plus] - K[:, minus]) for plus, minus in drawn] + [np.ones(len(y))]
        edges = [float((mass * y * stump).sum()) for stump in stumps]
        best = max(range(len(stumps)), key=lambda j: abs(edges[j]))
        step = np.arctanh(edges[best])
        if best == candidates:
            offset += step
        else:
            pairs.append(drawn[best])
            weights.append(step)
        mass = mass * np.exp(-step * y * stumps[best])
        mass /= mass.sum()
    return pairs, weights, offset


def test_fresh_pairs_against_a_plain_loop():
    y = np.where(Y2 == 1, 1.0, -1.0)
    K = Gaussian(0.1)(X2)
    sides = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    pairs, weights, offset = boosted_pairs(lambda p: K[:, p], y, sides, 12, 20, np.random.default_rng(3))
    naive, steps, constant = naive_boosted_pairs(K, y, sides, 12, 20, np.random.default_rng(3))
    taken = len(naive)
    assert len(pairs) == len(weights) == 12
    assert pairs[:taken].tolist() == [list(map(int, pair)) for pair in naive]
    assert np.allclose(weights[:taken], steps)
    assert not weights[taken:].any()
    assert offset == pytest.approx(constant)


def test_the_scores_are_the_weighted_signs_of_the_pairs():
    model = fresh(candidates=50).fit(X2, Y2)
    K = Gaussian(0.1)(X2, model.landmarks_)
    plus, minus = model.pairs_[0].T
    scores = np.sign(K[:, plus] - K[:, minus]) @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(model.decision_function(X2), scores)
    assert model.transfer_ == [Sign()]
    assert set(Y2[model.landmark_indices_[plus]]) == {1}
    assert set(Y2[model.landmark_indices_[minus]]) == {0}


def test_fresh_pairs_learn_more_than_those_drawn_beforehand():
    fixed, best = (fresh(candidates=candidates).fit(X2[:120], Y2[:120]) for candidates in (None, 100))
    losses = [np.exp(-np.where(Y2 == 1, 1, -1)[:120] * m.decision_function(X2[:120])).mean() for m in (fixed, best)]
    assert losses[1] < 0.6 * losses[0]
    assert best.score(X2[120:], Y2[120:]) >= fixed.score(X2[120:], Y2[120:])


def test_boost_without_candidates_is_the_sign_with_boosted_weights():
    both = [
        fresh(),
        LandmarkPairClassifier(Gaussian(0.1), 30, transfer="sign", solver="boost", random_state=0),
    ]
    scores = [model.fit(X3, Y3).decision_function(X3) for model in both]
    assert np.array_equal(*scores)


def test_fresh_pairs_of_many_classes_diverse_landmarks_and_a_function():
    model = fresh(candidates=30, selection="diverse").fit(X3, Y3)
    assert model.pairs_.shape == (4, 30, 2)
    assert model.n_landmarks_ <= 30
    assert model.score(X3, Y3) > 0.6
    calls = []

    def near(a, b):
        calls.append((a, b))
        return -abs(a - b)

    words = [float(n) for n in range(30)]
    model = LandmarkPairClassifier(near, 5, transfer="boost", candidates=10, random_state=0)
    model.fit(words, [n >= 15 for n in range(30)])
    assert len(calls) == len(set(calls))  # no value of a function is computed twice
    assert model.score(words, [n >= 15 for n in range(30)]) == 1.0


def test_objects_that_cannot_be_told_apart_get_one_pair_of_no_weight():
    pairs, weights, offset = boosted_pairs(
        lambda p: np.ones((4, len(p))), np.array([1.0, 1.0, -1.0, -1.0]), [np.array([0, 1]), np.array([2, 3])], 3, 5,
        np.random.default_rng(0),
    )  # fmt: skip
    assert pairs.shape == (3, 2)
    assert not weights.any()
    assert offset == 0.0


def test_fresh_pairs_are_the_same_again_and_after_saving(tmp_path):
    first, second = (fresh(candidates=20).fit(X3, Y3) for _ in range(2))
    assert np.array_equal(first.decision_function(X3), second.decision_function(X3))
    first.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.candidates == 20
    assert np.array_equal(loaded.decision_function(X3), first.decision_function(X3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": 0, "transfer": "boost"}, "candidates must be a whole number >= 1.*got 0"),
        ({"candidates": 2.5, "transfer": "boost"}, "candidates must be .*got 2.5"),
        ({"candidates": 200}, "go with transfer='boost', got transfer='tune'"),
        ({"candidates": 200, "transfer": "sign", "solver": "boost"}, "go with transfer='boost'"),
        ({"transfer": "boost", "solver": "sgd"}, "no use for solver='sgd'"),
    ],
)
def test_candidates_without_boosting_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LandmarkPairClassifier(Gaussian(0.1), 10, **options).fit(X2, Y2)
