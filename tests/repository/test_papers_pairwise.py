"""The targets of chapter 6 on small made-up data, and how they judge."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill import datasets
from papers import TARGETS, pairwise_auc, pairwise_kernels, pairwise_metric, thesis
from papers.__main__ import main

WIDTHS = {
    "heart": 13, "diabetes": 8, "german": 24, "ionosphere": 34, "svmguide1": 4, "spambase": 57, "breast-cancer": 9,
    "fourclass": 2, "cod-rna": 8, "a9a": 123, "ijcnn1": 22,
}  # fmt: skip
SPARSE = ("fourclass", "cod-rna", "a9a", "ijcnn1")


def call(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data home with made-up files of the right widths, the first column telling the classes apart."""
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    for name, width in WIDTHS.items():
        y = rng.choice([-1, 1], size=160)
        X = rng.normal(size=(160, width)) + np.eye(width)[0] * y[:, None]
        if name in SPARSE:
            lines = [
                f"{label} " + " ".join(f"{place + 1}:{value:.3f}" for place, value in enumerate(row))
                for row, label in zip(X.tolist(), y.tolist(), strict=True)
            ]
            (tmp_path / f"{name}.libsvm").write_text("\n".join(lines) + "\n")
            continue
        if name == "breast-cancer":  # a sample number, which would give the labels away
            X = np.column_stack([1000 * y, X])
        write_csv(tmp_path / f"{name}.csv", X, np.where(y > 0, "yes", "no"))
    for name, count in (("usps-train", 400), ("usps-test", 60)):
        y = rng.integers(3, size=count)
        write_csv(tmp_path / f"{name}.csv", rng.normal(size=(count, 50)) + 3 * np.eye(50)[y], y)
    return tmp_path


def write_csv(path, X, y):
    heads = ",".join([*(f"f{place}" for place in range(X.shape[1])), "label"])
    lines = [
        ",".join([*(f"{value:.3f}" for value in row), str(label)]) for row, label in zip(X.tolist(), y, strict=True)
    ]
    path.write_text("\n".join([heads, *lines]) + "\n")


@pytest.mark.parametrize(
    ("name", "rows", "claims"),
    [
        ("thesis-figure-6", 5 * 11, 6),
        ("thesis-figure-6.2", 5 * 6, 6),
        ("thesis-figure-6.3", 5 * 3, 6),
        ("pairwise-metric", 6, 6),
        ("pairwise-kernels", 7, 16),
    ],
)
def test_targets_on_made_up_data(name, rows, claims, home):
    result = call(name, "--quick", "--json", "--pictures", str(home))
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found["tables"][0]["rows"]) == rows
    assert len(found["claims"]) == claims
    assert (home / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_figures_are_parts_of_the_whole():
    for name, sets in {**pairwise_auc.FIGURES, "thesis-figure-6": pairwise_auc.SETS}.items():
        assert TARGETS[name][3] == sets
    assert tuple(pairwise_kernels._VIEWS) == TARGETS["pairwise-kernels"][3]
    assert set(WIDTHS) == set(pairwise_auc.SETS)
    for name, views in pairwise_kernels._VIEWS.items():
        assert sum(views) in (0, WIDTHS[name])


def test_the_sample_number_is_no_feature(home):
    X, y = thesis.arrays("breast-cancer")
    assert X.shape == (160, WIDTHS["breast-cancer"])
    assert np.abs(X).max() < 100
    assert len(X) == len(y) == len(datasets.load("breast-cancer").arrays()[1])


def test_split_scales_by_the_training_part_alone():
    rng = np.random.default_rng(1)
    X, y = np.column_stack([rng.normal(5, 3, size=200), np.ones(200)]), np.arange(200)
    train, train_y, test, test_y = thesis.split(X, y, seed=0, most=50)
    assert (len(train), len(test)) == (50, 80)
    assert not set(train_y) & set(test_y)
    assert np.allclose(train.mean(axis=0), 0)
    assert np.allclose(train.std(axis=0), [1, 0])
    raw, _, _, _ = thesis.split(X, y, seed=0, most=50, scaled=False)
    assert np.array_equal(raw, X[train_y])


def test_most_sets_in_three_values():
    assert pairwise_auc._most("", [True, True, None]).holds is True
    assert pairwise_auc._most("", [True, False, False]).holds is False
    assert pairwise_auc._most("", [True, None, None]).holds is None
    assert "holds on 1, does not hold on 2, cannot tell on 0" in pairwise_auc._most("", [True, False, False]).ours


def test_competitive_is_within_a_hundredth():
    rival = np.array([[0.9, 0.9], [0.8, 0.8], [0.85, 0.85]])
    assert pairwise_auc._competitive(rival - 0.001, rival) is True
    assert pairwise_auc._competitive(rival - 0.05, rival) is False
    noise = np.array([[0.03, 0.03], [-0.03, -0.03], [0.0, 0.0]])
    assert pairwise_auc._competitive(rival - 0.01 + noise, rival) is None


def test_the_test_part_has_no_say_in_a_tie():
    assert pairwise_kernels._chosen([(0.2, 0.1), (0.1, 0.4), (0.1, 0.3)]) == 0.4


def test_a_metric_is_judged_over_runs_and_points():
    rng = np.random.default_rng(0)
    before = (rng.random((5, 400)) < 0.3).astype(float)
    after = before * (rng.random((5, 400)) < 0.5)
    judge = pairwise_metric._better
    assert judge("", {"Euclid": before, "PairwiseMetric": after}).holds is True
    assert judge("", {"Euclid": after, "PairwiseMetric": before}).holds is False
    # one run that differs says nothing about the next order of the stream
    once = before.copy()
    once[0] = 0
    assert judge("", {"Euclid": before, "PairwiseMetric": once}).holds is None
