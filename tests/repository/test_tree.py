"""The shape of the source tree: small folders that introduce themselves, and one direction of imports."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MOST = 16  #: files in a folder
PACKAGES = sorted(path.parent for path in (ROOT / "src" / "gristmill").rglob("__init__.py"))
FOLDERS = sorted({path.parent for path in (ROOT / "src").rglob("*.[hcp]*") if "__pycache__" not in path.parts})
SUFFIXES = {".py", ".pyi", ".hpp", ".cpp"}
ARCHITECTURE = (ROOT / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in SUFFIXES]


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_a_folder_is_small(folder):
    most = MOST if folder != ROOT / "src" / "bind" else 24  # one file per topic of the core
    assert len(files(folder)) <= most


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_a_folder_introduces_itself(package):
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    assert text is not None
    assert len(text.splitlines()) >= 3, "what is here, what may import it, where to begin"


def test_the_architecture_page_names_every_folder():
    source = ROOT / "src"
    named = [path for path in [*(source / "core").iterdir(), *(source / "gristmill").iterdir()] if path.is_dir()]
    missing = [path.name for path in named if path.name != "__pycache__" and f"{path.name}/" not in ARCHITECTURE]
    assert missing == []


def test_the_architecture_page_names_only_files_that_exist():
    words = {word.strip("`,.;:()") for word in ARCHITECTURE.split()}
    paths = {word for word in words if "/" in word and Path(word).suffix in SUFFIXES}
    assert len(paths) > 10
    homes = [ROOT, ROOT / "src", ROOT / "src" / "gristmill", ROOT / "src" / "core"]
    assert [path for path in sorted(paths) if not any((home / path).exists() for home in homes)] == []


def test_includes_point_one_way():
    path = ROOT / "tools" / "include_order.py"
    spec = importlib.util.spec_from_file_location("include_order", path)
    order = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(order)
    assert order.violations(ROOT / "src" / "core") == []


def test_an_include_against_the_order_is_found(tmp_path):
    spec = importlib.util.spec_from_file_location("include_order", ROOT / "tools" / "include_order.py")
    order = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(order)
    (tmp_path / "CMakeLists.txt").write_text("add_subdirectory(base)\nadd_subdirectory(learner)\n")
    for folder, other in (("base", "learner"), ("learner", "base")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.hpp").write_text(f'#include "core/{other}/a.hpp"\n')
    assert order.violations(tmp_path) == ["base/a.hpp: base may not include learner"]
