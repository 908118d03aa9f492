"""Joint kernels over input and label: the max-score code's numbers, ILK with costs, and what goes wrong."""

from __future__ import annotations

import itertools
import math
import pickle

import model_files
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from structured_twin import Twin, classes, sequences

import gristmill
from gristmill import (
    DropOldest,
    DropRandom,
    DropSmallest,
    Forget,
    Gaussian,
    Hinge,
    Implicit,
    KernelClassifier,
    Linear,
    Logistic,
    MarginProjection,
    Perceptron,
    Project,
    Romma,
    StructuredLearner,
    Unbounded,
    Window,
)
from gristmill.kernels import PythonKernel
from gristmill.structured import Sequences, viterbi
from gristmill.structured.search import SequenceScore

KERNEL = Gaussian(0.8)
LABELS = [0, 1, 2]
PARTS = {
    "perceptron": (Perceptron(), Unbounded()),
    "newest": (Perceptron(), DropOldest(20)),
    "projectron": (Perceptron(), Project(0.3)),
    "projectron++": (MarginProjection(), Project(0.3)),
    "squared": (MarginProjection(squared=True), Project(0.5)),
    "no tolerance": (MarginProjection(), Project(0.0)),
    "ilk": (Implicit(Hinge(), 0.5, 0.7, 0.1), Unbounded()),
    "silk": (Implicit(Hinge(), 0.5, 0.7, 0.1), DropSmallest(25)),
}


def stream(steps=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(steps, 3))
    return X, np.digitize(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=steps), [-0.4, 0.4])


def joint(x, label, other, other_label):
    return KERNEL(x, other) if label == other_label else 0.0


def search(score, x, exclude):
    return max((label for label in LABELS if label != exclude), key=score)


def hypothesis(model):
    held = model._held
    state = {name: value.tolist() for name, value in held.f.state().items()}
    del state["counters"][3]  # the seed, which is random where none is given
    return state, list(held.names), model.dual_coef_.tolist(), model.support_ids_.tolist()


@pytest.fixture(params=PARTS)
def parts(request):
    return PARTS[request.param]


# ---- the same as the max-score code ---------------------------------------------------------------------


@pytest.mark.parametrize("average", [False, True])
def test_a_kernel_on_inputs_is_the_multiclass_learner(parts, average):
    rule, budget = parts
    if average and budget.evicts:
        return
    kernel = Linear() if budget == Project(0.0) else KERNEL
    X, y = stream()
    wanted = KernelClassifier(kernel, rule, budget, average=average)
    model = StructuredLearner(kernel, LABELS, rule=rule, budget=budget, average=average)
    np.testing.assert_allclose(model.prequential(X, y), wanted.prequential(X, y, classes=LABELS), atol=1e-9)
    assert model.support_ids_.tolist() == wanted.support_ids_.tolist()
    np.testing.assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), wanted.decision_function(X), atol=1e-9)
    assert model.predict(X) == wanted.predict(X).tolist()
    np.testing.assert_array_equal(model.support_vectors_, wanted.support_vectors_)


def test_a_joint_kernel_and_a_search_are_the_same_learner(parts):
    rule, budget = parts
    X, y = stream(70)
    wanted = StructuredLearner(KERNEL, LABELS, rule=rule, budget=budget)
    scores = wanted.prequential(X, y)
    pairs = StructuredLearner(joint, LABELS, rule=rule, budget=budget)
    np.testing.assert_allclose(pairs.prequential(X, y), scores, atol=1e-9)
    for kernel in (KERNEL, joint, PythonKernel(lambda a, b: KERNEL(a, b))):
        found = StructuredLearner(kernel, argmax=search, rule=rule, budget=budget)
        assert found.prequential(X, y) == [LABELS[best] for best in scores.argmax(axis=1)]
        assert found.support_ids_.tolist() == wanted.support_ids_.tolist()
        columns = [found.classes_.index(label) for label in LABELS]
        np.testing.assert_allclose(found.dual_coef_[:, columns], wanted.dual_coef_, atol=1e-9)
        assert found.predict(X[:9]) == wanted.predict(X[:9])


def test_two_labels_with_half_the_kernel_are_the_binary_learner(parts):
    rule, budget = parts
    X, y = stream()
    y = (y > 1).astype(int)
    binary = KernelClassifier(KERNEL, rule, budget)
    wanted = binary.prequential(X, y, classes=[0, 1])
    model = StructuredLearner(0.5 * KERNEL, [0, 1], rule=rule, budget=budget)
    found = model.prequential(X, y)
    np.testing.assert_allclose(found[:, 1] - found[:, 0], wanted, atol=1e-9)
    assert model.support_ids_.tolist() == binary.support_ids_.tolist()
    np.testing.assert_allclose(model.dual_coef_[:, [1]], binary.dual_coef_, atol=1e-9)


# ---- ILK with costs -------------------------------------------------------------------------------------


def test_an_implicit_step_by_hand():
    """Two labels that share features: k_yy + k_rr - 2 k_yr is neither 2 k nor k."""
    similar = {("a", "a"): 1.0, ("b", "b"): 1.0, ("c", "c"): 1.0, ("a", "b"): 0.5}

    def kernel(x, label, other, other_label):
        pair = (label, other_label) if (label, other_label) in similar else (other_label, label)
        return x * other * similar.get(pair, 0.0)

    costs = {("a", "b"): 0.3, ("a", "c"): 2.0, ("b", "a"): 1.0, ("b", "c"): 1.0}
    rule = Implicit(Hinge(), C=5.0, rate=0.5, reg=0.4)
    model = StructuredLearner(kernel, ["a", "b", "c"], cost=lambda y, r: costs[y, r], rule=rule, budget=Unbounded())
    model.learn_one(1.0, "a")  # the rival is c: cost 2, extent 1 + 1
    np.testing.assert_allclose(model.dual_coef_, [[1.0, 0.0, -1.0]])
    np.testing.assert_allclose(model.score_one(1.0), [1.0, 0.5, -1.0])
    model.learn_one(1.0, "b")  # a: 1 + 1 against c: 1 - 1, so a; extent 1 + 1 - 2/2
    keep = 1 / 1.2
    step = (1.0 - keep * (0.5 - 1.0)) / 1.0
    np.testing.assert_allclose(model.dual_coef_, [[keep, 0.0, -keep], [-step, step, 0.0]])
    model.learn_one(1.0, "a")
    assert model.n_support_ == 3


def test_the_cost_reaches_the_search():
    asked = {}

    def best(score, x, exclude):
        labels = [label for label in LABELS if label != exclude]
        asked[exclude] = {label: score(label) for label in LABELS}
        return max(labels, key=score)

    model = StructuredLearner(KERNEL, argmax=best, cost=lambda y, r: 10.0 * abs(y - r), rule=Implicit())
    model.learn_one([0.0, 0.0], 0)
    assert asked[0] == {0: 0.0, 1: 10.0, 2: 20.0}
    assert model.predict_one([0.0, 0.0]) == 0
    assert asked[None][2] == pytest.approx(-1.0)


def test_an_implicit_step_of_length_0_is_none():
    model = StructuredLearner(lambda *_: 1.0, ["a", "b"], budget=Unbounded())
    model.fit([1, 2, 3], ["a", "b", "a"])
    assert model.n_support_ == 0


@pytest.mark.parametrize("average", [False, True])
def test_the_core_agrees_with_the_twin(parts, average):
    rule, budget = parts
    if average and budget.evicts:
        return
    budget = Project(0.1) if budget == Project(0.0) else budget
    X, y = stream(70)
    twin = Twin(classes(KERNEL), lambda x: LABELS, rule, budget, average)
    wanted = np.array(twin.prequential(X, y.tolist()))
    model = StructuredLearner(KERNEL, LABELS, rule=rule, budget=budget, average=average)
    np.testing.assert_allclose(model.prequential(X, y), wanted, atol=1e-9)
    assert model.support_ids_.tolist() == sorted(set(twin.ids))


# ---- sequences with a tag per row -----------------------------------------------------------------------


def tagged(count=60, seed=0, most=4):
    """Sequences of one to four rows whose tags follow each other in a cycle, mostly."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        tags = (rng.integers(3) + np.arange(rng.integers(1, most + 1)) + (rng.random() < 0.1)) % 3
        X.append(np.eye(3)[tags] + rng.normal(size=(len(tags), 3)))
        y.append(tuple(int(tag) for tag in tags))
    return X, y


def every(x):
    return list(itertools.product(LABELS, repeat=len(x)))


def hamming(y, r):
    return float(sum(a != b for a, b in zip(y, r, strict=True)))


def exhaustive(score, x, exclude):
    return max((label for label in every(x) if label != exclude), key=lambda label: round(score(label), 9))


SEQUENCES = {**PARTS, "projectron": (Perceptron(), Project(0.8)), "squared": (MarginProjection(True), Project(1.5))}
SEQUENCES["projectron++"] = (MarginProjection(), Project(0.8))
del SEQUENCES["no tolerance"]


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("cost", [None, hamming])
def test_sequences_agree_with_the_twin(name, cost):
    rule, budget = SEQUENCES[name]
    if cost is not None and not isinstance(rule, Implicit):
        return
    X, y = tagged(25, most=3)
    twin = Twin(sequences(KERNEL, 0.6), every, rule, budget, cost=cost)
    wanted = twin.prequential(X, y, scores=False)
    model = StructuredLearner(Sequences(KERNEL, 0.6), LABELS, exhaustive, cost, rule, budget)
    assert model.prequential(X, y) == wanted
    assert model.support_ids_.tolist() == sorted(set(twin.ids))
    table = np.zeros((sum(len(x) for x in model.support_vectors_), 3))
    ends = np.cumsum([len(x) for x in model.support_vectors_])
    first = dict(zip(model.support_ids_.tolist(), [0, *ends[:-1]], strict=True))
    for (_, tags), at, c in zip(twin.points, twin.ids, twin.coef, strict=True):
        for t, tag in enumerate(tags):
            table[first[at] + t, tag] += c
    np.testing.assert_allclose(model.dual_coef_, table, atol=1e-9)
    held = model._held
    for x in X[:5]:
        score = model._engine._samples(held, [x]).at(0, average=False)
        for label in every(x)[:9]:
            assert score(label) == pytest.approx(twin.score(x, label), abs=1e-9)


def test_viterbi_is_the_exhaustive_search():
    rng = np.random.default_rng(1)
    for length in (1, 2, 3, 5):
        for _ in range(40):
            rows, transitions = rng.normal(size=(length, 3)), rng.normal(size=(3, 3))
            score = SequenceScore({0: 0, 1: 1, 2: 2}, "row 0", rows, transitions)
            x = np.zeros((length, 1))
            exclude = tuple(int(tag) for tag in rng.integers(3, size=length))
            best = viterbi(score, x, None)
            assert best == max(every(x), key=score)
            for barred in (exclude, best):
                assert viterbi(score, x, barred) == max((label for label in every(x) if label != barred), key=score)


def searched(score, x, exclude):
    """Viterbi's search as a function of the user's, which runs in Python."""
    return viterbi(score, x, exclude)


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("cost", [None, hamming])
@pytest.mark.parametrize("average", [False, True])
def test_the_search_in_the_core_is_the_search_in_python(name, cost, average):
    rule, budget = SEQUENCES[name]
    if (cost is not None and not isinstance(rule, Implicit)) or (average and budget.evicts):
        return
    X, y = tagged(120, most=12)
    weights = np.where(np.arange(120) % 7 == 3, 0.0, 1.0)
    core, python = (
        StructuredLearner(Sequences(KERNEL, 0.6), LABELS, argmax, cost, rule, budget, average)
        for argmax in (None, searched)
    )
    assert core.prequential(X, y, weights) == python.prequential(X, y, weights)
    assert core.support_ids_.tolist() == python.support_ids_.tolist()
    np.testing.assert_allclose(core.dual_coef_, python.dual_coef_, atol=1e-12)
    assert core.predict(X) == python.predict(X)


def test_a_cost_that_fails_changes_nothing():
    X, y = tagged(60)
    asked = []

    def cost(label, rival):
        asked.append((label, rival))
        return -1.0 if len(asked) == 70 else 1.0

    model = StructuredLearner(Sequences(KERNEL), LABELS, cost=cost).fit(X[:30], y[:30])
    before = hypothesis(model)
    assert all(label in y and type(rival) is tuple and len(rival) == len(label) for label, rival in asked)
    with pytest.raises(ValueError, match=r"row 39: cost\(.*\) must be a number >= 0, got -1"):
        model.partial_fit(X[:60], y[:60])
    assert hypothesis(model) == before


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_however_they_are_cut_and_saved(name, tmp_path):
    rule, budget = SEQUENCES[name]
    X, y = tagged(90)
    model = StructuredLearner(Sequences(KERNEL, 0.6), LABELS, rule=rule, budget=budget)
    whole, single, cut = (clone(model) for _ in range(3))
    said = whole.prequential(X, y)
    parts = []
    for a, b in ((0, 1), (1, 50), (50, 51), (51, 90)):
        parts += cut.prequential(X[a:b], y[a:b])
        cut = pickle.loads(pickle.dumps(cut))
        cut.save(tmp_path / "model")
        cut = gristmill.load(tmp_path / "model")
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    assert parts == said
    assert hypothesis(cut) == hypothesis(whole) == hypothesis(single)
    assert cut.predict(X) == whole.predict(X) == [whole.predict_one(x) for x in X]
    assert whole.n_features_in_ == cut.n_features_in_ == 3


def test_transitions_matter():
    X, y = tagged(300)
    wrong = {}
    for transitions in (0.0, 1.0):
        model = StructuredLearner(Sequences(Gaussian(0.3), transitions), LABELS, cost=hamming)
        found = model.prequential(X, y)
        wrong[transitions] = sum(hamming(a, b) for a, b in zip(y[100:], found[100:], strict=True))
    assert wrong[1.0] < 0.7 * wrong[0.0]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([np.zeros((2, 3)), np.zeros((2, 3))], [(0, 1), (0,)], "row 1: a sequence of 2 rows has 1 tags"),
        ([np.zeros((2, 3)), np.zeros((2, 2))], [(0, 1), (0, 1)], "row 1: a row has 2 features, and the model 3"),
        ([np.zeros((2, 3)), np.zeros(3)], [(0, 1), (0, 1, 2)], "row 1: a sequence must be a table with rows"),
        ([np.zeros((2, 3)), np.full((1, 3), np.nan)], [(0, 1), (0,)], "row 1: X contains NaN.*position 0, column 0"),
        ([np.zeros((2, 3))], [(0, 7)], "row 0: the tag 7 is not in labels"),
        ([np.zeros((2, 3))], [5], "row 0: a label must be one tag per row"),
        ([[["a", "b", "c"]]], [(0,)], "row 0: a sequence must be a table of numbers"),
        ([np.full((1, 3), 1e200)], [(0,)], "row 0"),
    ],
)
def test_bad_sequences_change_nothing(X, y, message):
    model = StructuredLearner(Sequences(Linear()), LABELS).fit(*tagged(20))
    before = hypothesis(model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.partial_fit(X, y)
    assert hypothesis(model) == before


def test_a_search_over_sequences_must_return_tags():
    X, y = tagged(5)
    for found, message in (
        (lambda x: (9,) * len(x), "tags of labels"),
        (lambda x: (0,) * (len(x) + 1), "tags of labels"),
    ):
        model = StructuredLearner(Sequences(KERNEL), LABELS, argmax=lambda score, x, exclude, f=found: f(x))
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    with pytest.raises(ValueError, match="give labels, the list of all tags"):
        StructuredLearner(Sequences(KERNEL), argmax=exhaustive).fit(X, y)
    with pytest.raises(TypeError, match="base must be a kernel of gristmill"):
        Sequences(lambda a, b: 1.0)
    with pytest.raises(TypeError, match="too many labels"):
        StructuredLearner(Sequences(KERNEL), LABELS).fit(X, y).decision_function(X)


def test_sequences():
    """Tags of a word under a kernel that sums over letters, with a search of the user's own."""

    def kernel(word, tags, other, other_tags):
        pairs = (
            (a == c and b == d) for a, b in zip(word, tags, strict=True) for c, d in zip(other, other_tags, strict=True)
        )
        return sum(pairs) / 10

    def best(score, word, exclude):
        found = ()
        for i in range(len(word)):
            found += (max("CV", key=lambda tag: score((*found, tag, *("?" * (len(word) - i - 1))))),)
        return found if found != exclude else (*found[:-1], "C" if found[-1] == "V" else "V")

    words = ["grist", "mill", "rig", "slim", "stream", "kernel"] * 6
    tags = [tuple("V" if letter in "aeiou" else "C" for letter in word) for word in words]
    hamming = lambda y, r: float(sum(a != b for a, b in zip(y, r, strict=True)))  # noqa: E731
    for rule, budget, cost in (
        (Perceptron(), Unbounded(), None),
        (MarginProjection(), Project(0.05), None),
        (Implicit(), DropSmallest(30), hamming),
    ):
        model = StructuredLearner(kernel, argmax=best, cost=cost, rule=rule, budget=budget)
        said = model.prequential(words, tags)
        assert sum(a == b for a, b in zip(said, tags, strict=True)) > 15
        assert model.predict(words[:6]) == tags[:6]
        assert model.predict(["rill"]) == [tuple("CVCC")]


# ---- manners --------------------------------------------------------------------------------------------


def test_however_the_stream_is_cut(parts):
    rule, budget = parts
    X, y = stream()
    whole = StructuredLearner(KERNEL, LABELS, rule=rule, budget=budget, random_state=3).fit(X, y)
    cut = StructuredLearner(KERNEL, LABELS, rule=rule, budget=budget, random_state=3)
    for a, b in ((0, 1), (1, 70), (70, 71), (71, 200)):
        cut.partial_fit(X[a:b], y[a:b])
    single = clone(whole)
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    assert hypothesis(cut) == hypothesis(whole) == hypothesis(single)


def test_a_random_budget_is_seeded_and_full():
    X, y = stream()
    runs = [
        StructuredLearner(KERNEL, LABELS, rule=Perceptron(), budget=DropRandom(10), random_state=s).fit(X, y)
        for s in (1, 1, 2)
    ]
    assert hypothesis(runs[0]) == hypothesis(runs[1]) != hypothesis(runs[2])
    assert runs[0].n_support_ == 10
    size = runs[0].memory_bytes_
    assert runs[0].partial_fit(X, y).memory_bytes_ == size


def test_pickle_and_file(tmp_path, parts):
    rule, budget = parts
    X, y = stream()
    names = np.array(["low", "middle", "high"])
    model = StructuredLearner(KERNEL, names, rule=rule, budget=budget).fit(X[:120], names[y[:120]])
    model.save(tmp_path / "model")
    copies = pickle.loads(pickle.dumps(model)), gristmill.load(tmp_path / "model")
    model.partial_fit(X[120:], names[y[120:]])
    for copy in copies:
        copy.partial_fit(X[120:], names[y[120:]])
        assert hypothesis(copy) == hypothesis(model)
        assert copy.predict(X) == model.predict(X)


def test_a_damaged_file(tmp_path):
    X, y = stream(60)
    model = StructuredLearner(KERNEL, LABELS, rule=Perceptron(), budget=Project(0.3)).fit(X, y)
    model.save(tmp_path / "model")
    arrays, text = model_files.opened(tmp_path / "model")
    for name, value in {
        "of": arrays["of"] + 1000,
        "symbols": arrays["symbols"] + 3,
        "first_symbol": arrays["first_symbol"] + 1,
        "first_row": arrays["first_row"][:-1].copy(),
        "ids": arrays["ids"][::-1].copy(),
        "coef": np.full_like(arrays["coef"], np.nan),
        "factor": -arrays["factor"],
        "points": arrays["points"][1:].copy(),
        "counters": arrays["counters"][:2].copy(),
        "total": arrays["total"].astype(np.float32),
    }.items():
        (tmp_path / "forged").write_bytes(model_files.closed({**arrays, name: value}, text))
        with pytest.raises(gristmill.ModelFileError, match="fit"):
            gristmill.load(tmp_path / "forged")


def test_code_is_not_saved(tmp_path):
    X, y = stream(20)
    for options, named in (
        ({"kernel": joint, "labels": LABELS}, "kernel="),
        ({"kernel": KERNEL, "argmax": search}, "argmax="),
        ({"kernel": KERNEL, "labels": LABELS, "cost": lambda a, b: 1.0}, "cost="),
        ({"kernel": PythonKernel(lambda a, b: KERNEL(a, b)), "labels": LABELS}, "kernel="),
    ):
        model = StructuredLearner(**options).fit(X, y)
        with pytest.raises(TypeError, match=f"{named}.*holds no code"):
            model.save(tmp_path / "model")
    model = StructuredLearner(KERNEL, [(0,), (1,), (2,)]).fit(X, [(label,) for label in y.tolist()])
    with pytest.raises(TypeError, match="not a plain value"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_sparse_and_single_precision():
    X, y = stream()
    X *= np.random.default_rng(0).random(X.shape) < 0.6
    wanted = StructuredLearner(KERNEL, LABELS).prequential(X, y)
    sparse = StructuredLearner(KERNEL, LABELS)
    np.testing.assert_allclose(sparse.prequential(csr_array(X), y), wanted, atol=1e-9)
    sparse.learn_one(csr_array(X[:1]), 0)
    np.testing.assert_allclose(sparse.decision_function(X), sparse.decision_function(csr_array(X)))
    single = StructuredLearner(KERNEL, LABELS)
    np.testing.assert_allclose(single.prequential(X.astype(np.float32), y), wanted, atol=1e-3)
    assert single.support_vectors_.dtype == np.float32


def test_weights():
    X, y = stream()
    some = np.arange(200) % 3 > 0
    left = StructuredLearner(KERNEL, LABELS, budget=Unbounded()).fit(X, y, sample_weight=some.astype(float))
    right = StructuredLearner(KERNEL, LABELS, budget=Unbounded()).fit(X[some], y[some])
    assert left.dual_coef_.tolist() == right.dual_coef_.tolist()
    assert left.n_seen_ == 200


def test_before_anything_was_learned():
    model = StructuredLearner(KERNEL, LABELS)
    assert model.predict_one([0.0]) is None
    assert model.score_one([0.0]).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    with pytest.raises(NotFittedError):
        _ = model.n_support_
    with pytest.raises(TypeError, match="list of all labels"):
        StructuredLearner(KERNEL, argmax=search).decision_function([[0.0]])


# ---- what goes wrong ------------------------------------------------------------------------------------

X0, Y0 = stream(40)


class Broken:
    """A kernel, search or cost that works for a while."""

    def __init__(self, works, breaks):
        self.works, self.breaks, self.broken = works, breaks, False

    def __call__(self, *arguments):
        return self.breaks(*arguments) if self.broken else self.works(*arguments)


def raising(*_):
    raise RuntimeError("out of order")


@pytest.mark.parametrize("rule", [Perceptron(), MarginProjection(), Implicit()], ids=repr)
@pytest.mark.parametrize(
    ("part", "breaks", "message"),
    [
        ("kernel", raising, "out of order"),
        ("kernel", lambda *_: math.nan, "row 0: the joint kernel returned nan"),
        ("kernel", lambda *_: math.inf, "row 0: the joint kernel returned inf"),
        ("kernel", lambda *_: "x", "could not convert"),
        ("argmax", raising, "out of order"),
        ("argmax", lambda score, x, exclude: None, "row 0: argmax must return a label"),
        ("argmax", lambda score, x, exclude: exclude, "row 0: argmax must return a label other than"),
        ("argmax", lambda score, x, exclude: 7, "row 0: argmax returned 7, which is not in labels"),
        ("argmax", lambda score, x, exclude: [1], "must be hashable"),
        ("argmax", lambda score, x, exclude: math.nan, "NaN is not a label"),
        ("cost", raising, "out of order"),
        ("cost", lambda *_: math.nan, "row 0: cost.* got nan"),
        ("cost", lambda *_: -1.0, "row 0: cost.* got -1"),
    ],
)
def test_a_part_of_the_users_that_fails_leaves_the_model_as_it_was(rule, part, breaks, message):
    if part == "cost" and not isinstance(rule, Implicit):
        return
    works = {"kernel": joint, "argmax": search, "cost": lambda y, r: 1.0}
    options = {name: works[name] for name in works if name != "cost" or isinstance(rule, Implicit)}
    broken = options[part] = Broken(works[part], breaks)
    budget = Unbounded() if isinstance(rule, Implicit) else Project(0.3)
    model = StructuredLearner(labels=LABELS, rule=rule, budget=budget, **options).fit(X0[:20], Y0[:20])
    before, attributes = hypothesis(model), set(vars(model))
    # The second event of the chunk is the one that fails, where a part can tell.
    broken.broken = True
    for learn in (model.partial_fit, model.prequential, model.fit):
        with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
            learn(X0[20:], Y0[20:])
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        model.learn_one(X0[20], Y0[20])
    broken.broken = False
    assert hypothesis(model) == before
    assert set(vars(model)) == attributes
    straight = StructuredLearner(labels=LABELS, rule=rule, budget=budget, **{**options, part: works[part]})
    assert hypothesis(model.partial_fit(X0[20:], Y0[20:])) == hypothesis(straight.fit(X0, Y0))


def test_a_failure_in_the_middle_of_a_chunk():
    calls = {"left": 300}

    def kernel(*pair):
        calls["left"] -= 1
        return math.nan if calls["left"] == 0 else joint(*pair)

    model = StructuredLearner(kernel, LABELS, rule=Perceptron(), budget=Unbounded())
    with pytest.raises(ValueError, match=r"row \d+: the joint kernel returned nan"):
        model.fit(X0, Y0)
    assert model._run is None
    calls["left"] = math.inf
    model.fit(X0[:5], Y0[:5])
    before = hypothesis(model)
    calls["left"] = 300
    with pytest.raises(ValueError, match="the joint kernel returned nan"):
        model.partial_fit(X0[5:], Y0[5:])
    assert hypothesis(model) == before


def test_a_part_must_not_call_the_model():
    def meddling(score, x, exclude):
        model.learn_one(x, 0)
        return search(score, x, exclude)

    model = StructuredLearner(KERNEL, LABELS, argmax=meddling)
    with pytest.raises(RuntimeError, match="must not call the model"):
        model.fit(X0, Y0)
    assert model._run is None


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X0, Y0[:-1], "40 events and y 39 labels"),
        (X0, [*Y0[:-1], 9], "row 39: the label 9 is not in labels"),
        (X0, [[label] for label in Y0], "row 0: a label must be hashable"),
        (X0, None, "requires y"),
        (X0[:, :2], Y0, "2 features"),
        (np.where(np.arange(40)[:, None] == 7, np.nan, X0), Y0, "row 7, column 0 is nan"),
        (csr_array(np.where(np.arange(40)[:, None] == 7, np.inf, X0)), Y0, "row 7, column 0 is inf"),
        (X0[:0], Y0[:0], "0 sample"),
        (1e200 * X0, Y0, "row 0 is too large"),
    ],
)
def test_bad_input(X, y, message):
    model = StructuredLearner(Linear(), LABELS, rule=Perceptron(), budget=Unbounded()).fit(X0, Y0)
    before = hypothesis(model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.partial_fit(X, y)
    assert hypothesis(model) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": None}, "give labels.* or argmax"),
        ({"labels": [1]}, "at least two different"),
        ({"labels": [1, 1]}, "at least two different"),
        ({"labels": "ab"}, "must be a list"),
        ({"labels": [[1], [2]]}, "hashable"),
        ({"kernel": 3}, "kernel must be"),
        ({"argmax": 3}, "argmax must be callable"),
        ({"cost": 3}, "cost must be callable"),
        ({"rule": Romma()}, "rule must be Perceptron"),
        ({"rule": MarginProjection()}, "use budget=Project"),
        ({"rule": Implicit(Logistic())}, "needs the loss Hinge"),
        ({"rule": Implicit(Hinge(2.0))}, "needs the loss Hinge"),
        ({"budget": Project(0.1)}, "not with Implicit"),
        ({"budget": Window(3)}, "budget must be one of"),
        ({"rule": Perceptron(), "budget": Forget(3)}, "budget must be one of"),
        ({"rule": Perceptron(), "cost": lambda a, b: 1.0}, "cost belongs to the rule Implicit"),
        ({"average": True}, "average=True needs"),
    ],
)
def test_parts_that_make_no_sense_together(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        StructuredLearner(**{"kernel": KERNEL, "labels": LABELS, **options}).fit(X0, Y0)


def test_a_tolerance_above_every_norm_warns():
    model = StructuredLearner(joint, LABELS, rule=Perceptron(), budget=Project(1.5))
    with pytest.warns(UserWarning, match=r"tolerance=1\.5 is not below"):
        model.fit(X0, Y0)
    assert model.n_support_ == 0
