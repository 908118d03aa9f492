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

from .cases import SPECIAL, random_model, relative, stream

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
        if not hasattr(model, "predict_interval"):
            assert (said[:, -1] == model.predict(rows)).all()


@pytest.mark.parametrize("seed", range(12))
def test_kernel_learners(seed, tmp_path):
    model, rows = random_model(seed)
    agree(model, rows, tmp_path, COMPILERS[seed % len(COMPILERS)])


@pytest.mark.parametrize(("rule", "budget"), SPECIAL)
def test_rules_and_budgets_that_go_together(rule, budget, tmp_path):
    X, two, _, _ = stream(4)
    agree(g.KernelClassifier(g.Gaussian(0.5), rule, budget, random_state=0).fit(X, two), X[:80] * 1.5, tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("scale", ["standard", "minmax", "rank", "relevance", None])
def test_prepared_numbers(scale, compiler, tmp_path):
    X, _, three, number = stream(3, count=700)
    far = X * [1.0, 1000.0, 0.01, 5.0] + 3.0
    agree(g.Prepared(g.KernelClassifier(), scale).fit(far, three), far[:60] * 3, tmp_path, compiler)
    agree(g.Prepared(g.KernelRegressor(), scale).fit(far, 100 * number), far[:60], tmp_path, compiler)


@pytest.mark.parametrize("base", [g.Spline(0), g.Spline(2), g.Laplacian(2.0)])
def test_additive_kernels(base, tmp_path):
    X, _, _, number = stream(5)
    agree(g.KernelRegressor(g.Additive(base, products=[(0, 1)])).fit(np.abs(X), number), np.abs(X[:60]), tmp_path)


@pytest.mark.parametrize("count", [1, 2, 600])
def test_density_with_and_without_neighbours(count, tmp_path):
    X, *_ = stream(4, count=600)
    agree(g.KernelNovelty(g.Gaussian(0.5)).fit(X[:count]), X[:100] * 2, tmp_path)
    near = g.KernelNovelty(g.Gaussian(0.5), g.Density(neighbours=0.05), g.DropRandom(200, uniform=True), random_state=0)
    agree(near.fit(X[:count]), X[:100] * 2, tmp_path, COMPILERS[-1])


@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_labels_of_random_compositions_in_single_precision(seed, tmp_path):
    model, rows = random_model(seed)
    found = answers(model, rows, tmp_path, "float32", COMPILERS[seed // 2 % len(COMPILERS)])
    if hasattr(model, "classes_"):
        assert (model.classes_[found[:, -1].astype(int)] == model.predict(rows)).mean() >= 0.999
    else:
        assert relative(found[:, 0], model.decision_function(rows)) < 1e-4


def test_single_precision_has_the_same_labels(tmp_path):
    X, two, _, _ = stream(6, count=2000)
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5))).fit(X[:1000] + 1000, two[:1000])
    said = answers(model, X[1000:] + 1000, tmp_path, "float32")
    assert (model.classes_[said[:, -1].astype(int)] == model.predict(X[1000:] + 1000)).mean() >= 0.999


@pytest.mark.parametrize("scale", ["rank", "rank-relevance"])
def test_columns_by_rank(tmp_path, scale):
    X, two, _, _ = stream(6, count=1500)
    X = np.hstack([np.exp(2 * X), np.full((len(X), 1), 3.0), (X[:, :1] > 0).astype(float)])
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.3)), scale).fit(X[:1400], two[:1400])
    rows = np.vstack([X[1400:], 1e6 * X[1400:], -X[1400:]])
    agree(model, rows, tmp_path)


def test_the_leader_of_a_race(tmp_path):
    X, two, _, _ = stream(6)
    agree(g.AutoClassifier().fit(X, two).leader_, X[:50], tmp_path, limit=1e-5)  # it stores single numbers


def test_one_class(tmp_path):
    X, *_ = stream(6)
    agree(g.KernelClassifier(g.Gaussian(0.5)).fit(X, ["only"] * len(X)), X[:20], tmp_path)


def test_json_holds_the_model():
    X, _, _, number = stream(7)
    model = g.KernelRegressor(g.Gaussian(0.5), budget=g.DropOldest(30)).fit(X, number)
    found = json.loads(to_json(model))
    (expert,) = found["experts"]
    points, coefs = np.array(expert["body"]["points"]), np.array(expert["body"]["coefs"])
    row = np.array(list(found["check_inputs"].values()))
    value = np.exp(-0.5 * ((points - row) ** 2).sum(axis=1)) @ coefs[:, 0] + expert["intercept"][0]
    assert relative(value, found["check"]["predict"]) <= 1e-12


def command(*words):
    done = CliRunner().invoke(main, ["export", *map(str, words)])
    return done.exit_code, done.output


def test_the_command(tmp_path):
    X, two, _, _ = stream(8)
    model = g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.DropOldest(30)).fit(X, two)
    saved = tmp_path / "model.safetensors"
    model.save(saved)
    for name in ("out.onnx", "7 pumps.h", "out.json"):
        assert command(saved, tmp_path / name)[0] == 0
        assert (tmp_path / name).stat().st_size > 1000
    assert "m7_pumps_scores(" in (tmp_path / "7 pumps.h").read_text()
    assert command(saved, tmp_path / "learns.h", "--learn", "--number", "float32", "--name", "pump")[0] == 0
    assert "pump_learn(" in (tmp_path / "learns.h").read_text()


def test_the_command_refuses_and_leaves_everything_as_it_was(tmp_path):
    X, two, _, _ = stream(8)
    saved = tmp_path / "model.json"  # a model file of that name
    g.KernelClassifier(g.Gaussian(0.5), g.Romma(), g.Unbounded()).fit(X, two).save(saved)
    (tmp_path / "old.h").write_text("mine")
    (tmp_path / "forged.safetensors").write_bytes(b"\x08" + b"\0" * 100)
    (tmp_path / "folder.h").mkdir()
    (tmp_path / "link.onnx").symlink_to(tmp_path / "nowhere")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for words, why in [
        ((saved, tmp_path / "out.txt"), "must end in"),
        ((saved, tmp_path / "out"), "must end in"),
        ((saved, saved), "model itself"),
        ((saved, saved, "--force"), "model itself"),
        ((saved, tmp_path / "old.h"), "--force"),
        ((saved, tmp_path / "link.onnx"), "--force"),
        ((saved, tmp_path / "folder.h"), "directory"),
        ((saved, tmp_path / "no" / "out.h"), "no folder"),
        ((saved, tmp_path / "out.onnx", "--learn"), "--learn"),
        ((saved, tmp_path / "out.json", "--name", "x"), "--name"),
        ((saved, tmp_path / "out.h", "--name", "a b"), "a b"),
        ((saved, tmp_path / "out.h", "--learn"), "Romma"),
        ((saved, tmp_path / "out.h", "--number", "float16"), "float16"),
        ((tmp_path / "forged.safetensors", tmp_path / "out.h"), "forged.safetensors"),
        ((tmp_path / "absent.safetensors", tmp_path / "out.h"), "absent.safetensors"),
    ]:
        code, output = command(*words)
        assert code == 2, output
        assert why in " ".join(output.split()), output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert command(saved, tmp_path / "old.h", "--force")[0] == 0
    assert (tmp_path / "old.h").read_text().startswith("/* old.h")


def test_names_and_labels_of_any_kind(tmp_path):
    """Comments, strings and column names that could end a comment or a string early, or be a trigraph."""
    X, two, _, _ = stream(8)
    labels = np.where(two == "a", 'a"*/ ??/ ???/ \\*/ /\\* \\\n', "\u00fc\u2028%s")
    frame = [{"*/ /* int x;": a, "b\n#error no": b} for a, b in X[:, :2]]
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.DropOldest(30))).fit(frame, labels)
    for learn in (False, True):
        (tmp_path / "gm.h").write_text(to_c(model, learn=learn, name="gm"))
        lines = ["#include <stdio.h>", '#include "gm.h"', "int main(void) {"]
        lines += ["    static const char *const names[] = GM_CLASS_NAMES;", '    printf("%s|%s", names[0], names[1]);']
        (tmp_path / "main.c").write_text("\n".join([*lines, "    return 0;", "}", ""]))
        assert (tmp_path / "gm.h").read_text().isascii()
        for compiler in COMPILERS:
            subprocess.run(
                [compiler, *STRICT, str(tmp_path / "main.c"), "-o", str(tmp_path / "names"), "-lm"], check=True
            )
            said = subprocess.run([str(tmp_path / "names")], capture_output=True, check=True).stdout.decode()
            assert said == "|".join(model.classes_)


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
