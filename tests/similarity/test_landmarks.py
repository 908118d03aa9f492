"""The map to similarities, the choice of landmarks, and what may go wrong with a user's function."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array

from gristmill import Gaussian, LandmarkClassifier, Landmarks, Manhattan, Sigmoid
from gristmill.similarity import SimilarityError
from gristmill.similarity.compare import Comparison, TrainingBlock
from gristmill.similarity.solvers.selection import diverse_landmarks

WORDS = ["grist", "mill", "stream", "kernel", "river", "stone", "wheel", "flour", "grain", "sack"]


def shared(a, b):
    return len(set(a) & set(b))


class Counted:
    """A similarity that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, a, b):
        self.calls += 1
        return -abs(a - b)


# ---- selection ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "gather"), [("mean", np.sum), ("min", np.min), ("max", np.max)])
def test_every_greedy_step_is_the_best_by_brute_force(mode, gather):
    X = np.random.default_rng(3).normal(size=(30, 2))
    similarity = Sigmoid(gamma=0.7, coef0=-0.2)
    chosen = diverse_landmarks(
        TrainingBlock(Comparison(similarity), X), np.arange(30), 8, np.random.default_rng(0), mode
    )
    assert len(set(chosen.tolist())) == 8
    matrix = similarity(X, X)
    for step in range(1, 8):
        before = chosen[:step]
        left = [i for i in range(30) if i not in before]
        best = min(left, key=lambda i: (gather(matrix[i, before]), i))
        assert chosen[step] == best


def test_the_printed_rule_takes_a_copy_and_the_corrected_one_does_not():
    # Landmarks 0 and 10.001: the printed rule then takes 10, a copy of the second; the mean prefers the
    # middle.
    points = [0.0, 10.001, 10.0, 5.0, -4.0]
    block = TrainingBlock(Comparison(lambda a, b: np.exp(-abs(a - b))), points)

    class First:
        def integers(self, _):
            return 0

    printed = diverse_landmarks(block, np.arange(4), 3, First(), "min")
    corrected = diverse_landmarks(block, np.arange(4), 3, First(), "mean")
    assert printed.tolist() == [0, 1, 2]
    assert corrected.tolist() == [0, 1, 3]


@pytest.mark.parametrize("selection", ["random", "diverse"])
def test_calls_are_counted_and_never_exceed_objects_times_landmarks(selection):
    similarity = Counted()
    X = np.random.default_rng(0).normal(size=60).tolist()
    model = Landmarks(similarity, n_landmarks=7, selection=selection, random_state=0)
    mapped = model.fit_transform(X)
    assert similarity.calls == model.n_evaluations_ == 60 * 7
    assert np.array_equal(model.transform(X), mapped)
    assert similarity.calls == 2 * 60 * 7


def test_classifier_calls_never_exceed_objects_times_landmarks():
    similarity = Counted()
    X = np.random.default_rng(0).normal(size=60)
    model = LandmarkClassifier(similarity, n_landmarks=8, selection="diverse", C="tune", random_state=0)
    model.fit(X.tolist(), X > 0)
    assert similarity.calls == model.n_evaluations_ == 60 * 8
    model.predict([0.5])
    assert similarity.calls == 61 * 8


def test_diverse_landmarks_are_more_diverse():
    X = np.random.default_rng(1).normal(size=(200, 3))

    def spread(selection):
        chosen = Landmarks(Gaussian(0.5), 15, selection, random_state=0).fit(X).landmarks_
        return Gaussian(0.5)(chosen, chosen).mean()

    assert spread("diverse") < spread("random")


# ---- the map -----------------------------------------------------------------------------------------------


def test_map_is_the_similarities_normalised_as_the_theory_asks():
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = Landmarks(Manhattan(), n_landmarks=9, random_state=0).fit(X)
    raw = Manhattan()(X, X[model.landmark_indices_])
    assert np.allclose(model.transform(X), raw / (np.abs(raw).max() * 3.0))
    assert np.linalg.norm(model.transform(X), axis=1).max() <= 1.0
    plain = Landmarks(Manhattan(), 9, normalize=False, random_state=0).fit(X)
    assert np.array_equal(plain.transform(X), raw)


def test_a_distance_is_a_similarity_with_its_sign_changed():
    X = np.random.default_rng(0).normal(size=(40, 2))

    def distance(a, b):
        return np.abs(a - b).sum()

    declared = Landmarks(distance, 6, "diverse", distance=True, random_state=2).fit_transform(X)
    assert np.allclose(declared, Landmarks(Manhattan(), 6, "diverse", random_state=2).fit_transform(X))


def test_dense_sparse_and_single_precision_agree():
    X = np.random.default_rng(0).normal(size=(40, 5)) * (np.random.default_rng(1).random((40, 5)) < 0.4)
    model = Landmarks(Gaussian(0.3), 8, random_state=0)
    dense = model.fit_transform(X)
    assert np.allclose(model.transform(csr_array(X)), dense, atol=1e-12)
    assert np.allclose(model.transform(X.astype(np.float32)), dense, atol=1e-6)
    assert np.allclose(model.fit(csr_array(X)).transform(X), dense, atol=1e-12)


def test_asymmetric_similarity_has_the_landmark_second():
    X = [1.0, 2.0, 5.0]
    model = Landmarks(lambda a, b: a - 2 * b, 1, selection=[2], normalize=False).fit(X)
    assert model.transform([3.0]) == [[3.0 - 10.0]]


def test_strings_and_workers():
    alone = Landmarks(shared, 4, random_state=0).fit_transform(WORDS)
    with parallel_config(backend="threading"):
        assert np.array_equal(Landmarks(shared, 4, random_state=0, n_jobs=2).fit_transform(WORDS), alone)


def test_progress_bar(capsys):
    Landmarks(shared, 4, progress=True, random_state=0).fit(WORDS)
    assert "similarities" in capsys.readouterr().out


def test_more_landmarks_than_objects_takes_all():
    model = Landmarks(shared, n_landmarks=500).fit(WORDS)
    assert model.n_landmarks_ == len(WORDS)


# ---- precomputed -------------------------------------------------------------------------------------------


def test_precomputed_rows_against_all_objects_or_landmarks_only():
    X = np.random.default_rng(0).normal(size=(50, 3))
    new = np.random.default_rng(1).normal(size=(7, 3))
    k = Sigmoid(0.3, -1.0)
    direct = Landmarks(k, 9, "diverse", random_state=4).fit(X)
    looked = Landmarks("precomputed", 9, "diverse", random_state=4).fit(k(X, X))
    assert np.array_equal(direct.landmark_indices_, looked.landmark_indices_)
    assert np.allclose(looked.transform(k(new, X)), direct.transform(new))
    assert np.allclose(looked.transform(k(new, X[looked.landmark_indices_])), direct.transform(new))
    given = Landmarks("precomputed", 9).fit(k(X, X[direct.landmark_indices_]))
    assert np.allclose(given.transform(k(new, X[direct.landmark_indices_])), direct.transform(new))


def test_precomputed_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"square.*got 5 x 4"):
        Landmarks("precomputed", 2).fit(np.zeros((5, 4)))
    model = Landmarks("precomputed", 2, random_state=0).fit(np.eye(5))
    with pytest.raises(ValueError, match="all 5 training objects or against the 2 landmarks"):
        model.transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.transform(np.full((1, 5), np.nan))


# ---- bad similarities and parameters -----------------------------------------------------------------------


def failing(a, b):
    if "z" in a:
        raise KeyError("no z")
    return 1.0


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (failing, "object 2 and landmark 1 .* raised KeyError: 'no z'"),
        (lambda a, b: float("nan") if "z" in a else 1.0, "object 2 and landmark 1 .* is nan"),
        (lambda a, b: float("inf") if "z" in a else 1.0, "object 2 and landmark 1 .* is inf"),
        (lambda a, b: "1" if "z" in a else 1.0, "object 2 and landmark 1 .* is '1', which is not a number"),
        (lambda a, b: None if "z" in a else 1.0, "not a number"),
        (lambda a, b: 1j if "z" in a else 1.0, "not a number"),
        (lambda a, b: np.ones(2) if "z" in a else 1.0, "not a number"),
    ],
)
def test_a_failing_similarity_names_both_objects_and_leaves_nothing_half_fitted(similarity, message):
    words = ["a", "b", "z"]
    model = Landmarks(similarity, 1, selection=[1])
    with pytest.raises(SimilarityError, match=message):
        model.fit(words)
    assert set(vars(model)) == set(model.get_params())
    model.fit(["a", "b"])
    before = dict(vars(model))
    with pytest.raises(SimilarityError, match=message):
        model.fit(words)
    assert vars(model) == before
    with pytest.raises(SimilarityError):
        model.transform(["z"])


def test_a_native_kernel_that_overflows_is_named_too():
    from gristmill import Exponential

    with pytest.raises(SimilarityError, match="object 1 and landmark 1"):
        Landmarks(Exponential(0.01), 1, selection=[1]).fit([[0.0], [50.0]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"similarity": "cosine"}, "similarity must be"),
        ({"similarity": 3}, "similarity must be"),
        ({"n_landmarks": 0}, "n_landmarks must be"),
        ({"n_landmarks": 2.5}, "n_landmarks must be"),
        ({"selection": "best"}, "selection must be"),
        ({"selection": [0, 0]}, "holds one twice"),
        ({"selection": [0, 99]}, "for 10 objects"),
        ({"distance": "yes"}, "distance must be"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Landmarks(**{"similarity": shared, **parameters}).fit(WORDS)
