"""Stream learners: against a plain twin, however the stream is cut, in constant memory."""

import numpy as np
import pytest

import gristmill
from gristmill import Gaussian, Manhattan
from gristmill.similarity import SimilarityError, StreamLandmarkClassifier, StreamLandmarkRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])]
Y = np.sin(2 * X[:, 0])


def state(model):
    return model._engine.state()


def same(one, other):
    return set(one) == set(other) and all(np.array_equal(one[name], other[name]) for name in one)


def twin(k, X, labels, size, C, seed):
    """The classifier in plain Python: one list of landmarks, dictionaries of weights."""
    rng = np.random.default_rng(np.random.default_rng(seed).integers(2**63))
    landmarks, means, met, weights, offset, seen, said = [], [], [], {}, {}, set(), []
    for t, (x, label) in enumerate(zip(X, labels, strict=True)):
        raw = [k(x, l) for l in landmarks]
        f = [r - m if n else 0.0 for r, m, n in zip(raw, means, met, strict=True)]
        for c in set(labels):
            weights.setdefault(c, [0.0] * size)
            offset.setdefault(c, 0.0)
        score = {c: sum(w * v for w, v in zip(weights[c], f, strict=False)) + offset[c] for c in weights}
        said.append(score)
        seen.add(label)
        rivals = sorted(c for c in seen if c != label)
        if rivals:
            rival = max(rivals, key=lambda c: score[c])
            loss = 1 - score[label] + score[rival]
            if loss > 0:
                step = min(C, loss / (2 * (sum(v * v for v in f) + 1)))
                for c, s in ((label, step), (rival, -step)):
                    weights[c] = [w + s * (f[i] if i < len(f) else 0.0) for i, w in enumerate(weights[c])]
                    offset[c] += s
        for i, r in enumerate(raw):
            met[i] += 1
            means[i] += (r - means[i]) / met[i]
        if len(landmarks) < size:
            landmarks.append(x), means.append(0.0), met.append(0)
        else:
            place = int(rng.integers(t + 1))
            if place < size:
                landmarks[place], means[place], met[place] = x, 0.0, 0
                for c in weights:
                    weights[c][place] = 0.0
    return landmarks, said


def test_against_a_plain_twin():
    model = StreamLandmarkClassifier(Manhattan(), 12, C=0.5, random_state=3)
    said = model.prequential(X, LABELS)
    landmarks, twins = twin(Manhattan(), X, LABELS, 12, 0.5, 3)
    assert np.array_equal(model.landmarks_, landmarks)
    came = 1 + max(int(np.argmax(np.asarray(LABELS) == c)) for c in "abc")  # before that, a class to come scores below
    assert np.allclose(said[came:], [[score[c] for c in "abc"] for score in twins[came:]], atol=1e-9)


@pytest.mark.parametrize("freeze", [None, 50])
@pytest.mark.parametrize(
    ("make", "y"),
    [
        (lambda freeze: StreamLandmarkClassifier(Gaussian(0.5), 15, freeze=freeze, random_state=1), LABELS),
        (lambda freeze: StreamLandmarkRegressor(Gaussian(0.5), 15, freeze=freeze, random_state=1), Y),
        (lambda freeze: StreamLandmarkRegressor(lambda a, b: a @ b, 15, freeze=freeze, random_state=1), Y),
    ],
)
def test_however_the_stream_is_cut_the_model_is_the_same(make, y, freeze, tmp_path):
    whole = make(freeze).fit(X, y)
    one_by_one, chunks = make(freeze), make(freeze)
    said = []
    for x, target in zip(X, y, strict=True):
        said.append(one_by_one.predict_one(x))
        one_by_one.learn_one(x, target)
    for part in np.split(np.arange(200), [1, 7, 64, 130]):
        chunks.partial_fit(X[part], y[part])
        if chunks.similarity == Gaussian(0.5):
            chunks.save(tmp_path / "model")
            chunks = gristmill.load(tmp_path / "model")
            chunks.random_state = whole.random_state
    assert same(state(whole), state(one_by_one))
    assert same(state(whole), state(chunks))
    if y is Y:
        assert np.array_equal(make(freeze).prequential(X, y), said)
        assert np.array_equal(whole.predict(X[:9]), [whole.predict_one(x) for x in X[:9]])


def test_landmarks_are_a_uniform_sample_of_the_stream():
    counts = np.zeros(40)
    for seed in range(300):
        model = StreamLandmarkRegressor(lambda a, b: 0.0, 5, random_state=seed)
        model.fit(list(range(40)), np.zeros(40))
        assert model.landmarks_ == model.landmark_ids_.tolist()
        counts[model.landmarks_] += 1
    # Each event stays with probability 1/8; five standard deviations of that share over 300 runs.
    assert np.abs(counts / 300 - 1 / 8).max() < 5 * np.sqrt(1 / 8 * 7 / 8 / 300)


def test_frozen_landmarks_stay():
    model = StreamLandmarkClassifier(Gaussian(0.5), 10, freeze=30, random_state=0).fit(X, LABELS)
    assert model.landmark_ids_.max() < 30


def test_memory_does_not_grow():
    model = StreamLandmarkClassifier(Gaussian(0.5), 10, random_state=0)
    model.partial_fit(X[:1], LABELS[:1], classes=["a", "b", "c"])
    first = model.memory_bytes_
    for _ in range(10):
        model.partial_fit(X, LABELS)
    assert model.memory_bytes_ == first
    assert model.n_seen_ == 2001
    assert len(model.landmarks_) == 10


def test_a_class_may_come_late():
    order = np.argsort(LABELS, kind="stable")
    early = StreamLandmarkClassifier(Gaussian(0.5), 10, random_state=0).fit(X[order], LABELS[order])
    late = StreamLandmarkClassifier(Gaussian(0.5), 10, random_state=0)
    for i in order:
        late.learn_one(X[i], LABELS[i])
    assert late.classes_.tolist() == ["a", "b", "c"]
    assert np.array_equal(early.decision_function(X), late.decision_function(X))
    with pytest.raises(ValueError, match="'d', which is not in classes"):
        late.partial_fit(X[:1], ["d"], classes=["a", "b", "c"])


def test_a_bad_event_changes_nothing():
    def picky(a, b):
        if a == 13.0:
            raise RuntimeError("unlucky")
        return -abs(a - b)

    model = StreamLandmarkRegressor(picky, 4, random_state=0).fit([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    before = state(model)
    kept = {name: np.copy(value) if name != "_rng" else value for name, value in before.items()}
    with pytest.raises(SimilarityError, match=r"object 5 .* raised RuntimeError: unlucky"):
        model.partial_fit([4.0, 5.0, 13.0], [4.0, 5.0, 6.0])
    assert same(state(model), kept)
    with pytest.raises(ValueError, match="no meaning on a stream"):
        StreamLandmarkRegressor("precomputed").fit([[1.0]], [1.0])
    with pytest.raises(TypeError, match="n_landmarks must be"):
        StreamLandmarkRegressor(n_landmarks="many").fit([[1.0]], [1.0])


def test_learning_pays():
    wrong = StreamLandmarkClassifier(Manhattan(), 40, random_state=0)
    many = RNG.normal(size=(1500, 3))
    labels = (many[:, 0] + many[:, 1] > 0).astype(int)
    errors = (wrong.prequential(many, labels) > 0).astype(int) != labels
    assert errors[-500:].mean() < 0.15
