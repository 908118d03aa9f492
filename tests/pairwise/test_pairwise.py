"""AUC, linear and kernelised, against the plain loop in Python; and the contract of the stream."""

from __future__ import annotations

import pickle

import model_files
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import gristmill
from gristmill import (
    DropOldest,
    DropRandom,
    DropSmallest,
    Fifo,
    Gaussian,
    Hinge,
    Linear,
    Logistic,
    Merge,
    PairwiseAUC,
    Reservoir,
    ReservoirX,
    Sigmoid,
    Unbounded,
)
from gristmill.pairwise import OAM, AUCPairs, ExponentialLoss, L1Ball, L2Ball, PairwiseLearner, SquaredHinge
from gristmill.pairwise.losses import margin_slope, margin_value

LOSSES = [Hinge(), Hinge(0.3), SquaredHinge(), Logistic(), ExponentialLoss()]
BUFFERS = [Fifo(1), Fifo(10), Reservoir(20), ReservoirX(13), ReservoirX(13, "bernoulli")]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 7))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.normal(size=400) > 0.3, 1, -1)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slopes_by_finite_differences(loss):
    u = np.random.default_rng(0).normal(size=50) * 2
    u = u[np.abs(u - getattr(loss, "margin", 9.0)) > 1e-3]
    step = 1e-6
    measured = (margin_value(loss, u + step) - margin_value(loss, u - step)) / (2 * step)
    np.testing.assert_allclose(margin_slope(loss, u), measured, rtol=1e-6, atol=1e-8)


def test_the_kink_of_the_hinge_is_not_active():
    assert margin_slope(Hinge(1.0), [1.0]).tolist() == [0.0]
    X = np.array([[0.0], [1.0], [0.0]])
    model = PairwiseAUC(buffer=Fifo(5), rate=np.sqrt(2)).fit(X[:2], [0, 1])  # w = 1: the pair has margin exactly 1
    assert model.coef_.tolist() == [1.0]
    model.partial_fit(X[2:], [0])
    assert model.coef_.tolist() == [1.0]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("buffer", BUFFERS, ids=str)
@pytest.mark.parametrize("how", [{"radius": 0.5}, {"reg": 0.5}, {"average": True}], ids=str)
def test_core_agrees_with_the_plain_loop_and_the_linear_kernel(data, loss, buffer, how):
    X, y = data
    rate = 0.03 if isinstance(loss, ExponentialLoss) else 0.3  # its slope has no bound
    common = {"loss": loss, "buffer": buffer, "rate": rate, "random_state": 3}
    linear = PairwiseAUC(**common, **how).fit(X, y)
    twin_how = {k: v for k, v in how.items() if k != "radius"}
    set_ = L2Ball(how["radius"]) if "radius" in how else None
    twin = PairwiseLearner(**{**common, "loss": AUCPairs(loss)}, projection=set_, **twin_how).fit(X, y)
    np.testing.assert_allclose(linear.coef_, twin.weights_, atol=1e-9)
    kernel = PairwiseAUC(Linear(), **common, **how, budget=Unbounded()).fit(X, y)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-9)
    assert kernel.buffer_auc_ == pytest.approx(linear.buffer_auc_, abs=1e-12)
    np.testing.assert_array_equal(kernel.buffer_ids_, linear.buffer_ids_)


def test_l1_ball(data):
    X, y = data
    core = PairwiseAUC(norm="l1", radius=0.5, random_state=1).fit(X, y)
    twin = PairwiseLearner(projection=L1Ball(0.5), random_state=1).fit(X, y)
    np.testing.assert_allclose(core.coef_, twin.weights_, atol=1e-12)
    assert (core.coef_ == 0).any()


def naive_kernel_auc(X, y, gamma, size, budget, rate, radius, merge):
    """OLP in an RKHS with Fifo and DropSmallest, every kernel value anew; points by place in the stream.

    What leaves is projected onto the stored point that is most like it (for a Gaussian the nearest one).
    """

    def k(i, j):
        return np.exp(-gamma * np.sum((X[i] - X[j]) ** 2))

    def f(i, coef):
        return sum(c * k(i, j) for j, c in coef.items())

    def inside(coef):
        norm = np.sqrt(sum(c * f(i, coef) for i, c in coef.items())) if coef else 0.0
        return {i: c * radius / norm for i, c in coef.items()} if norm > radius else coef

    coef, buffer = {}, []
    for t in range(len(X)):
        if buffer:
            slopes = {j: -1.0 for j in buffer if y[j] != y[t] and y[t] * (f(t, coef) - f(j, coef)) < 1}
            step = rate / np.sqrt(t + 1) / len(buffer) * y[t]
            for j, slope in slopes.items():
                coef[j] = coef.get(j, 0.0) + step * slope
            if slopes:
                coef[t] = -step * sum(slopes.values())
            coef = inside(coef)
        buffer = [*buffer, t][-size:]
        while len(outside := [i for i in coef if i not in buffer]) > budget:
            stored = sorted({*coef, *buffer})
            partner = {i: max((j for j in stored if j != i), key=lambda j: k(i, j)) for i in outside}
            cost = {i: coef[i] ** 2 * (1 - k(i, partner[i]) ** 2) if merge else abs(coef[i]) for i in outside}
            leaves = min(sorted(outside), key=cost.get)
            c = coef.pop(leaves)
            if merge:
                coef[partner[leaves]] = coef.get(partner[leaves], 0.0) + c * k(leaves, partner[leaves])
        coef = inside(coef)
    return coef


@pytest.mark.parametrize("budget", [Merge(10), DropSmallest(10)], ids=str)
def test_kernelised_auc_with_a_budget_agrees_with_the_naive_one(budget):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 2))
    y = np.where(np.sum(X**2, axis=1) > 1.4, 1, -1)
    model = PairwiseAUC(Gaussian(0.5), buffer=Fifo(8), budget=budget, rate=2.0, radius=1.5).fit(X, y)
    coef = naive_kernel_auc(X, y, 0.5, 8, 10, 2.0, 1.5, isinstance(budget, Merge))
    got = dict(zip(model.support_ids_.tolist(), model.dual_coef_[:, 0], strict=True))
    assert {i for i, c in got.items() if c != 0} == set(coef)
    for i, c in coef.items():
        assert got[i] == pytest.approx(c, abs=1e-9)
    assert model.n_support_ <= 18


def test_merging_costs_little_where_positives_are_rare():
    """Dropping the many small coefficients of the frequent class leaves an AUC near 0.6."""
    rng = np.random.default_rng(0)
    y = rng.random(6000) < 0.02
    X = rng.normal(size=(6000, 5))
    X[y, :2] += rng.choice([-1.5, 1.5], size=y.sum())[:, None]

    def area(budget):
        model = PairwiseAUC(Gaussian(0.1), buffer=ReservoirX(100), budget=budget, rate=10.0, random_state=0)
        scores = model.prequential(X, y)[1000:]
        return (scores[y[1000:], None] > scores[~y[1000:]]).mean()

    assert area(Merge(300)) > area(gristmill.Unbounded()) - 0.05
    assert area(Merge(300)) > area(DropSmallest(300)) + 0.1


def test_kept_scores_and_norm_are_those_of_the_expansion(data):
    X, y = data
    model = PairwiseAUC(
        Gaussian(0.3), buffer=ReservoirX(15), budget=DropRandom(12), rate=3.0, radius=2.0, random_state=0
    )
    model.partial_fit(X[:333], y[:333])
    report, points = model._engine.report(), model._engine.points()
    np.testing.assert_allclose(
        report["scores"], model._engine.score(np.ascontiguousarray(points[report["slots"]]))[0][:, 0], atol=1e-10
    )
    K = Gaussian(0.3)(model.support_vectors_)
    assert model.norm_ == pytest.approx(float(np.sqrt(model.dual_coef_[:, 0] @ K @ model.dual_coef_[:, 0])), abs=1e-9)
    assert model.norm_ <= 2.0 + 1e-9


@pytest.mark.parametrize("budget", [Merge(9), DropSmallest(9), DropOldest(9), DropRandom(9)], ids=str)
def test_memory_is_bounded_by_buffer_plus_budget(data, budget):
    X, y = data
    model = PairwiseAUC(Gaussian(0.3), buffer=ReservoirX(15), budget=budget, rate=3.0, random_state=0).fit(X, y)
    peak = model.memory_bytes_
    for _ in range(10):
        model.partial_fit(X, y)
        assert model.n_support_ <= 15 + 9
    assert model.memory_bytes_ <= peak + 8 * (15 + 9 + 1)


def models():
    yield PairwiseAUC(buffer=ReservoirX(11), rate=0.3, random_state=5)
    yield PairwiseAUC(buffer=Reservoir(11), average=True, radius=0.7, loss=Logistic(), random_state=5)
    yield PairwiseAUC(buffer=Fifo(11), reg=0.1, opposite_only=True, norm="l1", radius=0.6)
    yield PairwiseAUC(Gaussian(0.2), buffer=ReservoirX(11), budget=DropSmallest(15), radius=1.5, random_state=5)
    yield PairwiseAUC(Gaussian(0.2), buffer=ReservoirX(11), budget=DropRandom(15), reg=0.01, random_state=5)
    yield PairwiseAUC(Gaussian(0.2), buffer=ReservoirX(11), budget=Merge(15), average=True, random_state=5)
    yield PairwiseAUC(Gaussian(0.2), buffer=Fifo(11), budget=Unbounded(), average=True)
    yield OAM("gra", C=0.05, size=20, random_state=5)
    yield OAM("seq", C=0.05, size=20, random_state=5)


def fingerprint(model, X):
    return (
        *model.decision_function(X).tolist(),
        model.buffer_auc_,
        *model.buffer_ids_.tolist(),
        model.n_pairs_,
    )


@pytest.mark.parametrize("model", list(models()), ids=str)
def test_however_the_stream_is_cut_the_model_is_the_same(data, model, tmp_path):
    X, y = data
    whole = model.fit(X, y)
    expected = fingerprint(whole, X)
    one_by_one = type(model)(**model.get_params(deep=False))
    for x, label in zip(X, y, strict=True):
        one_by_one.learn_one(x, label)
    assert fingerprint(one_by_one, X) == expected
    chunks = type(model)(**model.get_params(deep=False))
    said = []
    for first, last in ((0, 1), (1, 3), (3, 40), (40, 41), (41, 300), (300, 400)):
        said.append(chunks.prequential(X[first:last], y[first:last]))
        if last == 41:
            chunks.save(tmp_path / "m.safetensors")
            chunks = gristmill.load(tmp_path / "m.safetensors")
        if last == 300:
            chunks = pickle.loads(pickle.dumps(chunks))
    assert fingerprint(chunks, X) == expected
    again = type(model)(**model.get_params(deep=False))
    np.testing.assert_array_equal(again.prequential(X, y), np.concatenate(said))


def test_prequential_says_what_was_thought_before(data):
    X, y = data
    model = PairwiseAUC(buffer=ReservoirX(10), random_state=0)
    said = model.prequential(X[:50], y[:50])
    twin = PairwiseAUC(buffer=ReservoirX(10), random_state=0)
    for i in range(50):
        assert said[i] == twin.score_one(X[i])
        twin.learn_one(X[i], y[i])


def test_buffer_auc_is_the_share_of_pairs_in_order_of_the_rarer_class(data):
    X, y = data
    model = PairwiseAUC(buffer=Fifo(10), rate=0.3)
    shares = {-1: [], 1: []}
    for i in range(80):
        if i:
            ids = model.buffer_ids_
            others = ids[y[ids] != y[i]]
            if len(others):
                margin = y[i] * (model.score_one(X[i]) - model.decision_function(X[others]))
                shares[y[i]].append(np.mean((margin > 0) + 0.5 * (margin == 0)))
        model.learn_one(X[i], y[i])
    rarer = min(shares.values(), key=len)
    assert model.buffer_auc_ == pytest.approx(np.mean(rarer), abs=1e-12)


@pytest.mark.parametrize("make", [lambda: PairwiseAUC(rate=0.1, random_state=0), lambda: OAM(C=0.01, random_state=0)])
def test_buffer_auc_is_not_flattered_by_the_few_rare_points_in_the_buffer(make):
    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.02).astype(int)
    X = rng.normal(size=(20_000, 10)) + 0.8 * np.outer(y, np.ones(10))
    best = 0.9632  # Phi(0.8 sqrt(10) / sqrt(2))
    assert best - 0.03 < make().fit(X, y).buffer_auc_ < best + 0.01


def test_names_of_the_classes_do_not_matter(data):
    X, y = data
    one = PairwiseAUC(buffer=ReservoirX(10), random_state=0).fit(X, y)
    two = PairwiseAUC(buffer=ReservoirX(10), random_state=0).fit(X, np.where(y > 0, "a", "b"))
    np.testing.assert_array_equal(one.coef_, -two.coef_)
    assert roc_auc_score(y, one.decision_function(X)) > 0.85


def test_one_step_lowers_the_loss_and_the_first_event_moves_nothing(data):
    X, y = data
    model = PairwiseAUC(buffer=Fifo(30), rate=0.01).fit(X[:1], y[:1])
    assert not model.coef_.any()
    assert model.waiting_
    w = model.fit(X[:30], y[:30]).coef_
    loss = AUCPairs()
    before = loss.value(w, X[30], y[30], X[:30], y[:30])
    model.learn_one(X[30], y[30])
    assert loss.value(model.coef_, X[30], y[30], X[:30], y[:30]) < before


def test_opposite_only_takes_the_mean_over_opposite_pairs():
    X, y = np.array([[0.0], [0.5], [1.0]]), [0, 0, 1]
    plain = PairwiseAUC(buffer=Fifo(5)).fit(X, y).coef_[0]
    only = PairwiseAUC(buffer=Fifo(5), opposite_only=True).fit(X, y).coef_[0]
    assert plain == pytest.approx(only)  # both stored points are of the other class
    X, y = np.array([[0.0], [9.0], [1.0]]), [0, 1, 1]
    slow = PairwiseAUC(buffer=Fifo(5), loss=Logistic(), rate=1e-6).fit(X, y).coef_[0]
    fast = PairwiseAUC(buffer=Fifo(5), loss=Logistic(), rate=1e-6, opposite_only=True).fit(X, y).coef_[0]
    first = 1e-6 / np.sqrt(2) * 4.5
    assert fast - first == pytest.approx(2 * (slow - first), rel=1e-4)


def test_oam_gra_by_hand():
    """C_t = C max(1, n_other / size_other), halved; the pairs with margin at most 1, each x - x' added."""
    X, y = np.array([[0.0], [2.0], [3.0], [1.0]]), [0, 1, 1, 0]
    model = OAM("gra", C=0.1, size=4)
    steps = [0.0, 0.05 * 2]  # event 1 meets no one; event 2: w = 0.05 * (2 - 0)
    steps.append(steps[-1] + 0.05 * 3)  # margin 0.1 * 3 <= 1
    w = steps[-1]
    steps.append(w + 0.05 * sum(2 - 1 if x == 2 else 3 - 1 for x in (2.0, 3.0) if w * (x - 1) <= 1))
    for x, label, expected in zip(X, y, steps, strict=True):
        model.learn_one(x, label)
        assert float(model.coef_[0]) == pytest.approx(expected, abs=1e-12)


def test_oam_seq_by_hand():
    X, y = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]]), [0, 1, 1]
    model = OAM("seq", C=100.0, size=4).fit(X, y)
    w = np.zeros(2)
    for x in X[1:]:
        w = w + max(0.0, 1 - w @ x) / (x @ x) * x
    np.testing.assert_allclose(model.coef_, w, atol=1e-12)
    capped = OAM("seq", C=0.02, size=4).fit(X, y)
    np.testing.assert_allclose(capped.coef_, 0.01 * (X[1] + X[2]), atol=1e-12)


def test_oam_weighs_a_pair_by_what_it_stands_for():
    X, y = np.r_[np.zeros(10), 1.0][:, None], np.r_[np.zeros(10), 1].astype(int)
    model = OAM("gra", C=0.02, size=4).fit(X, y)
    assert float(model.coef_[0]) == pytest.approx(0.01 * (10 / 2) * 2)  # 10 seen, 2 kept, 2 pairs


def test_random_feature_map(data):
    from sklearn.kernel_approximation import RBFSampler

    X, _ = data
    circle = (np.sum(X[:, :2] ** 2, axis=1) > 1.4).astype(int)
    sampler = RBFSampler(gamma=0.3, n_components=100, random_state=0)
    model = PairwiseAUC(features=sampler, buffer=ReservoirX(30), rate=5.0, random_state=0).fit(X[:, :2], circle)
    assert roc_auc_score(circle, model.decision_function(X[:, :2])) > 0.95
    assert not hasattr(sampler, "random_weights_")
    chunks = PairwiseAUC(features=sampler, buffer=ReservoirX(30), rate=5.0, random_state=0)
    for first in range(0, 400, 37):
        chunks.partial_fit(X[first : first + 37, :2], circle[first : first + 37])
    np.testing.assert_allclose(chunks.coef_, model.coef_, atol=1e-12)


def test_kernel_on_objects():
    def shared(a, b):
        return len(set(a) & set(b)) / 3.0

    words, y = ["abc", "xyz", "abd", "xyw", "acd", "yzw"] * 5, [0, 1] * 15
    model = PairwiseAUC(shared, buffer=Fifo(6)).fit(words, y)
    assert roc_auc_score(y, model.decision_function(words)) == 1.0
    with pytest.raises(TypeError, match="pickle it instead"):
        model.save("nowhere.safetensors")


def test_sparse_rows_agree(data):
    from scipy.sparse import csr_array

    X, y = data
    X = np.where(np.abs(X) > 1, X, 0.0)
    for kernel in (None, Gaussian(0.2)):
        dense = PairwiseAUC(kernel, buffer=ReservoirX(9), random_state=0).fit(X, y)
        sparse = PairwiseAUC(kernel, buffer=ReservoirX(9), random_state=0).fit(csr_array(X), y)
        np.testing.assert_array_equal(dense.decision_function(X), sparse.decision_function(csr_array(X)))


# ---- bad input ------------------------------------------------------------------------------------------


def test_one_class_learns_nothing_and_says_so(data):
    X, _ = data
    for model in (PairwiseAUC(), PairwiseAUC(Gaussian(1.0)), OAM()):
        model.fit(X[:20], np.ones(20))
        assert model.waiting_
        assert model.n_pairs_ == 0
        assert np.isnan(model.buffer_auc_)
        assert not model.decision_function(X).any()
        assert (model.predict(X) == 1).all()
        model.partial_fit(X[20:60], np.zeros(40))
        assert not model.waiting_


def test_a_third_class_is_refused_and_changes_nothing(data):
    X, y = data
    for model in (PairwiseAUC(), PairwiseAUC(Gaussian(1.0)), OAM()):
        model.fit(X, y)
        before = fingerprint(model, X)
        with pytest.raises(ValueError, match=r"3 classes, \[.*7"):
            model.partial_fit(X[:3], [1, -1, 7])
        assert fingerprint(model, X) == before


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_number_is_named_and_changes_nothing(data, value):
    X, y = data
    bad = X.copy()
    bad[5, 3] = value
    for model in (
        PairwiseAUC(random_state=0),
        PairwiseAUC(Gaussian(1.0), random_state=0),
        OAM(random_state=0),
    ):
        model.fit(X, y)
        before = fingerprint(model, X)
        with pytest.raises(ValueError, match="row 5, column 3"):
            model.partial_fit(bad, y)
        with pytest.raises(ValueError, match="column 3"):
            model.learn_one(bad[5], y[5])
        assert fingerprint(model, X) == before


def test_divergence_is_an_error_and_undone(data):
    X, y = data
    model = PairwiseAUC(loss=ExponentialLoss(), rate=1.0).fit(X[:5], y[:5])
    before = fingerprint(model, X)
    with pytest.raises(ValueError, match="smaller rate"):
        model.partial_fit(1e200 * X, y)
    assert fingerprint(model, X) == before


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"rate": 0.0}, "rate must be a number > 0"),
        ({"rate": np.nan}, "rate must be a number > 0"),
        ({"radius": -1.0}, "radius must be a number > 0 or None"),
        ({"reg": -0.1}, "reg must be a number >= 0"),
        ({"norm": "l3"}, "norm must be 'l2' or 'l1'"),
        ({"loss": gristmill.Squared()}, "loss must be Hinge"),
        ({"loss": Hinge(1.0, nu=0.5)}, "does not adapt"),
        ({"buffer": 100}, "buffer must be a buffer such as"),
        ({"kernel": Gaussian(1.0), "norm": "l1"}, "for linear scorers"),
        ({"kernel": Gaussian(1.0), "average": True, "budget": DropOldest(5)}, "use budget=Merge"),
        ({"kernel": Gaussian(1.0), "budget": gristmill.Window(5)}, "budget must be Merge"),
    ],
)
def test_parameters_out_of_range(data, how, words):
    X, y = data
    model = PairwiseAUC(**how)
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(X, y)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("how", [{"C": 0.0}, {"method": "both"}, {"size": 1}])
def test_oam_parameters_out_of_range(data, how):
    with pytest.raises((ValueError, TypeError), match=next(iter(how))):
        OAM(**how).fit(*data)


def test_an_indefinite_kernel_gets_a_warning(data):
    with pytest.warns(UserWarning, match="not positive definite"):
        PairwiseAUC(Sigmoid(0.1)).fit(*data)


@pytest.mark.parametrize("damage", ["seen", "buffer_ids", "weights", "right_positive"])
def test_a_damaged_file_is_refused(data, tmp_path, damage):
    path = tmp_path / "m.safetensors"
    PairwiseAUC(random_state=0).fit(*data).save(path)
    arrays, text = model_files.opened(path)
    arrays[damage] = arrays[damage][:-1].copy()
    path.write_bytes(model_files.closed(arrays, text))
    with pytest.raises(gristmill.ModelFileError):
        gristmill.load(path)
