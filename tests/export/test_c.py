"""C headers, compiled strictly by gcc and clang, answer as the library does."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill as g
from gristmill.cli import main
from gristmill.export import ExportError, to_c, to_json

from .cases import random_model, relative, stream

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

PROGRAM = """
#include <stdio.h>
#include "gm.h"
int main(void) {
    gm_num x[GM_FEATURES], work[GM_WORK], scores[GM_OUTPUTS];
    int j, fine = 1;
    printf("%d\\n", gm_check(work));
    while (fine) {
        for (j = 0; j < GM_FEATURES; ++j) {
            double read;
            if (scanf("%lf", &read) != 1) { fine = 0; break; }
            x[j] = (gm_num)read;
        }
        if (!fine) break;
        gm_scores(x, work, scores);
        for (j = 0; j < GM_OUTPUTS; ++j) printf("%.17g ", (double)scores[j]);
#ifdef GM_CLASSES
        {
            gm_num shares[GM_CLASSES];
            gm_probabilities(x, work, shares);
            for (j = 0; j < GM_CLASSES; ++j) printf("%.17g ", (double)shares[j]);
        }
        printf("%d", gm_predict(x, work));
#elif !defined(GM_NUMBERS)
        printf("%d", gm_predict(x, work));
#endif
        printf("\\n");
    }
    return 0;
}
"""


def answers(model, rows, folder, number="float64", compiler="gcc"):
    """Scores in the library's order, probabilities and predictions, from a compiled program."""
    (folder / "gm.h").write_text(to_c(model, number=number, name="gm"))
    (folder / "main.c").write_text(PROGRAM)
    regression = not hasattr(model, "classes_") and hasattr(model, "predict_interval")
    extra = ["-DGM_NUMBERS"] if regression else []
    program = folder / f"program-{compiler}"
    subprocess.run([compiler, *STRICT, *extra, str(folder / "main.c"), "-o", str(program), "-lm"], check=True)
    text = "\n".join(" ".join(repr(float(value)) for value in row) for row in rows)
    lines = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == "1", "the built-in check fails"
    return np.array([[float(part) for part in line.split()] for line in lines[1:]])


def agree(model, rows, folder, compiler="gcc", limit=1e-12):
    said = answers(model, rows, folder, compiler=compiler)
    expected = model.decision_function(rows).reshape(len(rows), -1)
    outputs = expected.shape[1]
    if hasattr(model, "classes_"):
        shares, place = said[:, outputs:-1], said[:, -1].astype(int)
        assert relative(shares, model.predict_proba(rows)) <= limit
        assert (model.classes_[place] == model.predict(rows)).all()
        if outputs == 1:
            assert relative(np.abs(said[:, :1]), np.abs(expected)) <= limit
    else:
        assert relative(said[:, :outputs], expected) <= limit


@pytest.mark.parametrize("seed", range(12))
def test_kernel_learners(seed, tmp_path):
    model, rows = random_model(seed)
    agree(model, rows, tmp_path, COMPILERS[seed % len(COMPILERS)])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("scale", ["standard", "minmax", "relevance", None])
def test_prepared_numbers(scale, compiler, tmp_path):
    X, _, three, number = stream(3, count=700)
    far = X * [1.0, 1000.0, 0.01, 5.0] + 3.0
    agree(g.Prepared(g.KernelClassifier(), scale).fit(far, three), far[:60] * 3, tmp_path, compiler)
    agree(g.Prepared(g.KernelRegressor(), scale).fit(far, 100 * number), far[:60], tmp_path, compiler)


@pytest.mark.parametrize("base", [g.Spline(0), g.Spline(2), g.Laplacian(2.0)])
def test_additive_kernels(base, tmp_path):
    X, _, _, number = stream(5)
    agree(g.KernelRegressor(g.Additive(base, products=[(0, 1)])).fit(np.abs(X), number), np.abs(X[:60]), tmp_path)


def test_single_precision_has_the_same_labels(tmp_path):
    X, two, _, _ = stream(6, count=2000)
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5))).fit(X[:1000] + 1000, two[:1000])
    said = answers(model, X[1000:] + 1000, tmp_path, "float32")
    assert (model.classes_[said[:, -1].astype(int)] == model.predict(X[1000:] + 1000)).mean() >= 0.999


def test_json_holds_the_model():
    X, _, _, number = stream(7)
    model = g.KernelRegressor(g.Gaussian(0.5), budget=g.DropOldest(30)).fit(X, number)
    found = json.loads(to_json(model))
    (expert,) = found["experts"]
    points, coefs = np.array(expert["body"]["points"]), np.array(expert["body"]["coefs"])
    row = np.array(list(found["check_inputs"].values()))
    value = np.exp(-0.5 * ((points - row) ** 2).sum(axis=1)) @ coefs[:, 0] + expert["intercept"][0]
    assert relative(value, found["check"]["predict"]) <= 1e-12


def test_the_command(tmp_path):
    X, two, _, _ = stream(8)
    model = g.KernelClassifier(g.Gaussian(0.5), budget=g.DropOldest(30)).fit(X, two)
    model.save(tmp_path / "model.safetensors")
    for name in ("out.onnx", "out.h", "out.json"):
        done = CliRunner().invoke(main, ["export", str(tmp_path / "model.safetensors"), str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).stat().st_size > 1000
    done = CliRunner().invoke(main, ["export", str(tmp_path / "model.safetensors"), str(tmp_path / "out.txt")])
    assert done.exit_code == 2
    assert "out.txt" in done.output


def test_what_c_cannot_hold_is_refused_by_name():
    X, two, _, _ = stream(9)
    table = [{"hue": hue, "size": size} for hue, size in zip(two, X[:, 0], strict=True)]
    for model, name in [
        (g.AutoClassifier().fit(X, two), "leader_"),
        (g.FeatureLearner(g.RandomMaclaurin(n_components=20), g.Perceptron()).fit(X / 9, two), "random features"),
        (g.Prepared(g.KernelClassifier()).fit(table, two), "hue"),
    ]:
        with pytest.raises(ExportError, match=name):
            to_c(model)
