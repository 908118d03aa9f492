"""CONTRIBUTING.md tells the truth: what a new part touches is where it says, and its example is built and learns."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
TOUCHED = re.findall(r"^\| (\w[\w ]*) \| `([^`]+)` \| (.+) \|$", TEXT, re.MULTILINE)


@pytest.mark.parametrize(("part", "file", "beside"), TOUCHED)
def test_a_new_part_goes_where_it_is_said_to_go(part, file, beside):
    source = (ROOT / file).read_text()
    for anchor in re.findall(r"`([^`]+)`", beside):
        assert anchor == "visit" or anchor in source, f"{file} has no {anchor}"


def test_a_new_part_touches_few_files():
    assert Counter(part for part, _, _ in TOUCHED) == {"rule": 3, "budget": 4, "kernel": 5, "saved field": 1}


def changes():
    """File -> pairs of what stands there and what is to stand there instead, in the order of the example."""
    found = {}
    for block in re.search(r"```diff\n(.*?)```\n", TEXT, re.DOTALL)[1].split("--- ")[1:]:
        file, *lines = block.splitlines()
        for line in lines:
            if not line.startswith("+"):
                kept = [line[1:]] if line.startswith(" ") else []
                found.setdefault(file, []).append((line[1:], kept))
            else:
                found[file][-1][1].append(line[1:])
    return found


def test_the_example_touches_the_files_that_are_listed():
    assert set(changes()) == {file for part, file, _ in TOUCHED if part != "saved field"}


RUN = """
import sys
# An editable install finds its own sources before PYTHONPATH.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
import gristmill, numpy as np
from gristmill import Cauchy, DropMiddle, KernelClassifier
from gristmill.rules import CarefulPerceptron

class InPython:
    def __call__(self, trial):
        if trial.label * trial.score > 0.1:
            return None
        return gristmill.Step(coefficient=trial.label * trial.weight / trial.step**0.25)

X = np.random.default_rng(0).normal(size=(400, 3))
y = X[:, 0] * X[:, 1] > 0
model = KernelClassifier(Cauchy(0.5), CarefulPerceptron(0.1), DropMiddle(50))
said = model.prequential(X, y)
assert model.n_support_ == 50
same = gristmill.from_bytes(model.to_bytes())
assert (same.decision_function(X) == model.decision_function(X)).all()
assert same._run.core.state()["rule.escapes"][0] > 0
np.testing.assert_allclose(Cauchy(0.5)(X, X), 1 / (1 + 0.5 * ((X[:, None] - X) ** 2).sum(-1)), rtol=1e-12)
twin = KernelClassifier(lambda x, z: 1 / (1 + 0.5 * ((x - z) ** 2).sum()), InPython(), DropMiddle(50))
np.testing.assert_allclose(twin.prequential(list(X), y), said, rtol=1e-8)
try:
    model.gradient(X)
except ValueError as error:
    assert "not finite" in str(error)
else:
    raise AssertionError("the gradient of a kernel that has none")
"""


@pytest.mark.alone
def test_the_example_in_cpp_is_built_and_learns(tmp_path):
    """A rule with a saved field, a budget and a kernel: one build of them all, without optimisation."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copy(ROOT / "CMakeLists.txt", tmp_path)
    for file, pairs in changes().items():
        source = (tmp_path / file).read_text()
        for old, new in pairs:
            assert source.count(old + "\n") == 1, f"{file} has {old!r} {source.count(old)} times"
            source = source.replace(old + "\n", "\n".join([*new, ""]))
        (tmp_path / file).write_text(source)
    build = tmp_path / "build"
    for command in (
        ["cmake", "-S", tmp_path, "-B", build, "-DCMAKE_BUILD_TYPE=None", f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", build, "--target", "_core", "--parallel", str(os.cpu_count())],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for module in [*build.glob("_core*.so"), *build.glob("_core*.pyd")]:
        shutil.copy(module, tmp_path / "src" / "gristmill")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
