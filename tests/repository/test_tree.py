"""The shape of the source tree: small folders that introduce themselves, and one direction of imports."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

from gristmill.cli import app
from gristmill.evaluate import metrics

ROOT = Path(__file__).parent.parent.parent
MOST = 16  #: files in a folder
PACKAGES = sorted(path.parent for path in (ROOT / "src" / "gristmill").rglob("__init__.py"))
FOLDERS = sorted(
    {
        path.parent
        for top in ("src", "tests")
        for path in (ROOT / top).rglob("*.[hcp]*")
        if "__pycache__" not in path.parts
    }
)
SUFFIXES = {".py", ".pyi", ".hpp", ".cpp"}
ARCHITECTURE = (ROOT / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in SUFFIXES]


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_a_folder_is_small(folder):
    assert len(files(folder)) <= MOST


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_a_folder_introduces_itself(package):
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    assert text is not None
    assert len(text.splitlines()) >= 3, "what is here, what may import it, where to begin"


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_an_introduction_names_only_files_that_exist(package):
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = re.findall(r"`([\w/]+\.py)`", text)
    homes = [package, package.parent, ROOT / "src" / "gristmill"]
    assert [path for path in named if not any((home / path).exists() for home in homes)] == []


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


def public_estimators() -> list[type]:
    path = ROOT / "docs" / "_ext" / "public_names.py"
    spec = importlib.util.spec_from_file_location("public_names", path)
    listing = importlib.util.module_from_spec(spec)
    sys.modules["public_names"] = listing  # dataclasses look their module up there
    spec.loader.exec_module(listing)
    found = [getattr(importlib.import_module(public.module), public.name) for public in listing.public_names()]
    return [value for value in found if isinstance(value, type) and issubclass(value, BaseEstimator)]


def ancestors(kind: type) -> list[str]:
    return [base.__name__ for base in kind.__mro__[1:] if base.__module__.startswith("gristmill.")]


def test_no_public_estimator_has_more_than_five_ancestors_inside_the_package():
    deep = {kind.__name__: ancestors(kind) for kind in public_estimators()}
    assert len(deep) > 30
    assert {name: bases for name, bases in deep.items() if len(bases) > 5} == {}


def changes() -> list[tuple[str, int, str]]:
    table = ARCHITECTURE.split("## What a change touches")[1]
    return [
        (what, int(count), where) for what, count, where in re.findall(r"^\| (.+?) \| (\d+) \| (.+) \|$", table, re.M)
    ]


def test_a_change_touches_as_many_files_as_the_architecture_page_says():
    named = {what for what, _, _ in changes()}
    parts = {"budget", "kernel", "saved field of a learner", "reader of a file format"}
    assert named >= parts | {"sub-command", "metric", "fleet option"}
    for what, count, where in changes():
        assert count == len(re.findall(r"`[\w/.]+[/.]\w*`", where)) + where.count("the list of public names"), what


def test_a_metric_is_one_class_of_one_file():
    source = ROOT / "src" / "gristmill"
    for metric in metrics._ALL.values():
        homes = [
            path for path in source.rglob("*.py") if f"class {metric.__name__}(" in path.read_text(encoding="utf-8")
        ]
        assert homes == [source / "evaluate" / "metrics.py"]
        users = [
            path
            for path in source.rglob("*.py")
            if re.search(rf"metrics import .*\b{metric.__name__}\b", path.read_text())
        ]
        assert users == [], f"{metric.__name__} is found by its name"


def test_a_command_is_named_in_one_place():
    commands = ROOT / "src" / "gristmill" / "cli"
    for module, *_ in app._COMMANDS.values():
        path = commands.joinpath(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists()


#: files that still read or write fields of a saved state by name, and how often; the list only shrinks
OPEN_STATE = {
    "export/_description.py": 20,
    "features/_mapped.py": 2,
    "merging/compression.py": 2,
    "merging/learners.py": 22,
    "merging/terms.py": 16,
    "pairwise/_buffered_rows.py": 1,
    "pairwise/_python_loop.py": 4,
    "race/auto_novelty.py": 2,
    "race/core.py": 2,
    "serve/store/record.py": 12,
    "similarity/stream_core.py": 3,
    "streams/tables/table.py": 4,
    "unsupervised/base.py": 1,
    "unsupervised/core.py": 1,
}


def test_saved_state_is_read_by_name_in_persist_only():
    source = ROOT / "src" / "gristmill"
    found = {}
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        uses = len(re.findall(r'\bstate\[f?"|\bstate\(\)\[', text))
        if uses and "persist" not in path.parts:
            found[path.relative_to(source).as_posix()] = uses
    assert found == OPEN_STATE


#: how often the package reads a private name that another module defines, and writes `Any`; both only shrink
MOST_PRIVATE = 20
MOST_ANY = 2450
#: methods of named tuples, public in spite of the underscore
TUPLES = ("_replace", "_asdict", "_fields", "_make")


def private_names(path: Path) -> tuple[set[str], list[str]]:
    """Private names that a file defines, and those that it reads of other objects without defining them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    read = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        of = node.value
        if isinstance(of, ast.Name) and of.id in ("self", "cls"):
            own |= {node.attr} if isinstance(node.ctx, ast.Store) else set()
        elif node.attr not in TUPLES and not (
            isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "super"
        ):
            read.append(node.attr)
    return own, [name for name in read if name not in own]


def private_names_of_others(paths: list[Path]) -> dict[str, list[str]]:
    """Accesses such as `model._run` in a file that does not define the name, while another file does."""
    names = {path: private_names(path) for path in paths}
    defined = set().union(*(own for own, _ in names.values()))
    found = {name(path): [private for private in read if private in defined] for path, (_, read) in names.items()}
    return {path: privates for path, privates in found.items() if privates}


def test_modules_use_few_private_names_of_each_other():
    found = private_names_of_others(sorted((ROOT / "src" / "gristmill").rglob("*.py")))
    assert sum(map(len, found.values())) <= MOST_PRIVATE, found


def test_a_private_name_of_another_module_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text(
        "class A:\n    def __init__(self, b):\n        self._a = b\n    def f(self, c):\n        return c._a\n"
    )
    second.write_text("def g(a):\n    return a._a, a._elsewhere, a._replace(b=1)\n")
    assert private_names_of_others([first, second]) == {"b.py": ["_a"]}


def test_annotations_say_more_than_any():
    source = ROOT / "src" / "gristmill"
    count = sum(len(re.findall(r"\bAny\b", path.read_text(encoding="utf-8"))) for path in source.rglob("*.py"))
    assert count <= MOST_ANY


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
