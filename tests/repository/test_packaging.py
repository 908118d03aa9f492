"""What a release says about itself is said once and is true."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import gristmill

ROOT = Path(__file__).parent.parent.parent


def test_one_version():
    assert importlib.metadata.version("gristmill") == gristmill.__version__
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == gristmill.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == gristmill.__version__


def test_the_licence_is_an_spdx_name():
    described = importlib.metadata.metadata("gristmill")
    assert described["License-Expression"] == "BSD-3-Clause"
    assert described.get_all("License-File") == ["LICENSE"]


def _declared(text: str) -> list[str]:
    """Each definition of a stub without its docstring, so that a stubgen that lays out lines in another way still agrees."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return [ast.unparse(node) for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]


def test_the_stub_of_the_core_is_current(tmp_path):
    stub = tmp_path / "_core.pyi"
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "gristmill._core", "-o", str(stub)], check=True
    )
    kept = (ROOT / "src" / "gristmill" / "_core.pyi").read_text(encoding="utf-8")
    assert _declared(stub.read_text(encoding="utf-8")) == _declared(kept), "make stub writes it anew"


def test_what_is_tried_of_a_wheel_is_there():
    path = ROOT / "tools" / "try_wheel.py"
    spec = importlib.util.spec_from_file_location("try_wheel", path)
    assert spec is not None
    assert spec.loader is not None
    chore = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chore)
    for name in chore.SHOWN:
        file, test = name.split("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), name
    assert all((ROOT / page).is_file() for page in chore.PAGES)
