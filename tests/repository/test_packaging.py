"""What a release says about itself is said once and is true."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from pathlib import Path

import gristmill
from gristmill import _core

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


def test_the_package_has_the_types_of_its_core():
    stub = Path(gristmill.__file__).parent / "_core.pyi"
    declared = {node.name for node in ast.parse(stub.read_text(encoding="utf-8")).body if hasattr(node, "name")}
    public = {name for name, value in vars(_core).items() if callable(value) and not name.startswith("_")}
    assert public <= declared


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
