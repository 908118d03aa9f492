"""Chapters 3 to 5 of the thesis again: the targets on made-up data, and the parts that judge."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.svm import SVC

from gristmill import Polynomial, Sigmoid, datasets
from gristmill.evaluate import progress
from papers import (
    TARGETS,
    landmark_classes,
    landmark_numbers,
    landmark_spectrum,
    maclaurin_error,
    maclaurin_table,
    thesis,
)
from papers.__main__ import main

RNG = np.random.default_rng(0)


def put(path, X, y, heads=None):
    heads = heads or [f"c{place}" for place in range(X.shape[1])]
    rows = [",".join([*(f"{v:.4f}" for v in x), str(label)]) for x, label in zip(X.tolist(), y, strict=True)]
    path.write_text(",".join([*heads, "target"]) + "\n" + "\n".join(rows) + "\n")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data home with what the quick targets read."""
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    X = RNG.normal(size=(240, 5))
    put(tmp_path / "spambase.csv", X, (X[:, 0] > 0).astype(int))
    objects = RNG.normal(size=(80, 2))
    alike = np.exp(-((objects[:, None] - objects[None]) ** 2).sum(axis=2))
    put(tmp_path / "sim-aural-sonar.csv", alike, np.where(objects[:, 0] > 0, 1, 2))
    lines = [f"{1 if x[0] > 0 else -1} 1:{x[0]:.4f} 2:{x[1]:.4f}" for x in X]
    (tmp_path / "cod-rna.libsvm").write_text("\n".join([*lines, *lines[:20]]) + "\n")
    put(tmp_path / "bodyfat.csv", X, X[:, 0] + X[:, 1])
    put(tmp_path / "winequality-red.csv", X, np.clip(np.round(X[:, 0] + 5), 3, 8).astype(int))
    return tmp_path


CLAIMS = {
    "thesis-table-3.1": "H0/1 trains faster than the exact kernel",
    "thesis-figure-3.1": "H0/1 drops more sharply than RF",
    "thesis-figure-3.2": "H0/1 errs less than RF with few features",
    "thesis-table-4.1": "FTUNE+D-S is one of the best",
    "thesis-figure-4.1": "diverse ones are better, BBS+D above BBS",
    "thesis-figure-4.2": "FTUNE-S is right more often than DBOOST",
    "thesis-spectrum": "BBS is one of the best beside changed spectra",
    "thesis-table-4.2": "FTUNE-S is right more often than DBOOST",
    "thesis-table-5.1": "ORLand errs less than KR",
    "thesis-figure-5.2": "RegLand-Sp errs less than RegLand",
    "thesis-figure-5.3": "Euclidean, up to 50 landmarks: RegLand errs less than KR",
    "thesis-figure-5.4": "Gaussian, up to 50 landmarks: ORLand errs less than KR",
}


@pytest.mark.parametrize("name", list(CLAIMS))
def test_every_target_prints_its_claims_and_draws(name, home):
    result = CliRunner().invoke(
        main, [name, "--quick", "--json", "--pictures", str(home / "out")], catch_exceptions=False
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert any(CLAIMS[name] in claim["says"] for claim in found["claims"])
    assert not any(claim["judged"] for claim in found["claims"])
    assert all(len(row) == len(table["heads"]) for table in found["tables"] for row in table["rows"])
    assert (home / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_every_data_set_of_the_targets_has_a_name():
    wanted = {data for *_, needs in TARGETS.values() for data in needs}
    assert wanted - set(datasets.names()) == {"waving-trees"}  # a clip, which the target reads itself


def test_a_missing_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    result = CliRunner().invoke(main, ["thesis-table-4.1", "--quick"])
    assert result.exit_code == 2
    assert "sim-aural-sonar.csv is not in the data home" in result.stderr


# ---- the parts ---------------------------------------------------------------------------------------------


def test_splits_are_apart_and_capped():
    train, test = thesis.shares(100, 0.6, seed=3)
    assert sorted([*train, *test]) == list(range(100))
    few, same = thesis.shares(100, 0.6, seed=3, most=10)
    assert few.tolist() == train[:10].tolist()
    assert same.tolist() == test.tolist()


def test_scaling_looks_at_training_rows_only():
    X = np.column_stack([RNG.normal(3, 2, size=50), np.full(50, 7.0)])
    train = np.arange(30)
    other = X.copy()
    other[30:] *= 100
    for scaled in (thesis.z_scores, thesis.unit_norms):
        assert np.array_equal(scaled(X, train)[:30], scaled(other, train)[:30])
        assert np.isfinite(scaled(X, train)).all()
    assert np.linalg.norm(thesis.unit_norms(X, train)[:30], axis=1).max() == pytest.approx(1.0)
    assert thesis.z_scores(X, train)[:30, 0].std() == pytest.approx(1.0)


def test_repeats_and_distances():
    X, y = thesis.without_repeats(np.array([[1.0, 2.0], [0.0, 4.0], [1.0, 2.0]]), np.array([1, 0, 1]))
    assert (X.tolist(), y.tolist()) == ([[0.0, 4.0], [1.0, 2.0]], [0, 1])
    assert thesis.mean_distance(np.array([[0.0], [1.0], [3.0]])) == pytest.approx((1 + 3 + 2) / 3)


def test_steps_tick_under_a_bar_and_without(monkeypatch, capsys):
    assert list(thesis.steps([1, 2, 3], "three")) == [1, 2, 3]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(thesis, "wanted", lambda _: True)
    assert list(thesis.steps(["a", "b"], "two")) == ["a", "b"]
    with progress.live([], 2, "two", show=True) as tick:
        tick(2)


def test_one_of_the_best_is_lost_only_to_a_clear_rival():
    ours = np.array([0.80, 0.82, 0.81, 0.79])
    assert thesis.among_best("x", ours, {"a": ours + np.array([0.01, -0.02, 0.02, -0.01])}).holds is True
    lost = thesis.among_best("x", ours, {"a": ours - 0.1, "b": ours + np.array([0.05, 0.06, 0.05, 0.06])})
    assert lost.holds is False
    assert lost.ours.endswith("better: b")
    assert thesis.among_best("x", ours[:1], {"a": ours[:1] + 0.1}).holds is None


def test_agreement_with_a_printed_number():
    ours = np.array([0.50, 0.52, 0.48, 0.50])
    assert thesis.as_printed("x", ours, (0.51, 0.02), 5, 0.05).holds is True
    assert thesis.as_printed("x", ours, (0.60, 0.02), 5, 0.05).holds is False
    assert thesis.as_printed("x", ours, (0.55, 0.02), 5, 0.05).holds is None
    assert thesis.as_printed("x", ours, (0.90, 0.90), 5, 0.09).holds is None  # too wide a spread to tell
    assert thesis.as_printed("x", ours[:1], (0.90, 0.1), 5, 0.1).holds is None


def test_the_baseline_is_kernel_regression():
    X, y = RNG.normal(size=(25, 3)), RNG.normal(size=25)
    k = Sigmoid(0.5, -1.0)
    said = landmark_numbers.kernel_regression(k, X[:20], y[:20], X[20:])
    for x, value in zip(X[20:], said, strict=True):
        weights = [k(x, other) for other in X[:20]]
        assert value == pytest.approx(sum(w * t for w, t in zip(weights, y[:20], strict=True)) / sum(weights))
    nothing = landmark_numbers.kernel_regression(lambda a, b: np.zeros((len(a), len(b))), X, y, X[:2])
    assert np.isnan(nothing).all()
    labels = landmark_numbers.rounded_regression(k, X[:20], np.repeat([1, 2], 10), X[20:])
    assert set(labels) <= {1.0, 2.0}


def test_value_differences_by_hand():
    """Values a, b of one attribute and c, d of another; P(class | value) with half a count for each class."""
    X = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], dtype=float)
    y = np.array(["p", "p", "q", "q"])
    train = np.array([0, 1, 2])
    distances = landmark_classes.value_differences(X, np.array(["u", "u", "v", "v"]), y, train)
    a, b = 2.5 / 3, 0.5 / 2  # P(p | a): two of two, P(p | b): none of one
    c, d = 1.5 / 3, 1.5 / 2
    first, second = 2 * (a - b) ** 2, 2 * (c - d) ** 2  # two classes, and their gaps are equal
    assert distances[0, 3] == pytest.approx(np.sqrt(first + second))
    assert distances[0, 1] == pytest.approx(np.sqrt(second))
    assert np.array_equal(distances, distances.T)


def test_the_exact_machine_is_libsvm():
    X = RNG.normal(size=(120, 3)) / 4
    y = X[:, 0] + X[:, 1] ** 2 > 0
    ours = maclaurin_table._Exact(Polynomial(3), 5.0).fit(X[:80], y[:80])
    theirs = SVC(C=5.0, kernel="poly", degree=3, gamma=1.0, coef0=1.0).fit(X[:80], y[:80])
    assert np.array_equal(ours.predict(X[80:]), theirs.predict(X[80:]))


def test_the_printed_law_is_mostly_the_zero_map_and_unbiased():
    X = maclaurin_error._ball(30, 4, 0)
    kernel = Polynomial(10, coef0=0.0)
    zero = float(np.abs(kernel(X, X)).mean())
    errors = [maclaurin_error._error("t^10", X, "RF as printed", 100, seed) for seed in range(40)]
    assert np.mean(np.isclose(errors, zero)) > 0.8  # 95 % of the time no column of degree 10 is drawn
    assert np.linalg.norm(X, axis=1).max() <= 1


def test_changed_spectra_with_all_objects_are_the_changed_matrix():
    """The features of the target, without their common scale, give the clipped matrix to the SVM."""
    objects = RNG.normal(size=(40, 2))
    alike = objects @ np.diag([1.0, -0.3]) @ objects.T
    y = np.where(objects[:, 0] > 0, 1, 2)
    model = landmark_spectrum.Tuned("clip", 300, 0).fit(alike, y)
    values, vectors = np.linalg.eigh(alike)
    scale = model._model[2]
    features = model._features(model._model, alike) * scale
    np.testing.assert_allclose(features @ features.T, vectors @ np.diag(np.maximum(values, 0)) @ vectors.T, atol=1e-9)
    assert landmark_spectrum.negative_share(np.diag([3.0, -1.0])) == pytest.approx(0.25)


def test_a_quick_run_judges_nothing(home):
    shown = CliRunner().invoke(main, ["thesis-spectrum", "--quick"]).stdout
    assert "it judges no claim" in shown
    verdicts = {line.split(":")[0] for line in shown.splitlines() if "(paper: " in line}
    assert verdicts == {"not judged"}
