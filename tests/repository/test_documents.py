"""Every program of every document runs and prints what its page says; links lead somewhere; the reference is complete."""

from __future__ import annotations

import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import gristmill

ROOT = Path(__file__).parent.parent.parent


def from_file(path: Path) -> ModuleType:
    """A module that belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


snippets = from_file(ROOT / "docs" / "_scripts" / "snippets.py")
public_names = from_file(ROOT / "docs" / "_ext" / "public_names.py")
method_docs = from_file(ROOT / "docs" / "_ext" / "method_docs.py")
DOCUMENTS = snippets.documents()
a_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
#: their programs start Ray; its older releases (2.40) leave their own processes and log files to the collector
ON_RAY = {ROOT / "docs" / "guide" / "deploy" / "cluster.md"}
RAY_MARKS = [
    pytest.mark.alone,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file .*/ray/session_:ResourceWarning"),
]


@pytest.mark.parametrize(
    "document",
    [pytest.param(page, marks=RAY_MARKS if page in ON_RAY else []) for page in DOCUMENTS],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_snippets_print_what_the_page_says(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if document in ON_RAY:  # its processes find what this one finds, from any folder
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    parts = snippets.snippets(document.read_text(encoding="utf-8"))
    for part, printed in zip(parts, snippets.run(document, parts), strict=True):
        said = part.code if part.kind == "console" else part.said
        assert snippets.agrees(part, printed), f"{document}, line {part.line} says\n{said}\nbut prints\n{printed}"


def test_a_page_that_says_something_else_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```python\nprint(1 + 1)\n```\n```text\n3\n```\n\n```console\n$ echo one\ntwo\n```\n\n```python\nprint(4)\n```\n"
    parts = snippets.snippets(page)
    printed = list(snippets.run(Path("page.md"), parts))
    assert printed == ["2\n", "$ echo one\none\n", "4\n"]
    assert [snippets.agrees(part, text) for part, text in zip(parts, printed, strict=True)] == [False, False, False]
    mended = snippets.written(page, Path("page.md"))
    again = snippets.snippets(mended)
    assert [snippets.agrees(part, text) for part, text in zip(again, printed, strict=True)] == [True, True, True]


@a_document
def test_every_program_is_of_a_kind_that_is_known(document):
    kinds = set(re.findall(r"^ *```(\{?[\w-]*)", document.read_text(encoding="utf-8"), re.MULTILINE))
    known = {
        "",
        "python",
        "console",
        "text",
        "sh",
        "cpp",
        "js",
        "diff",
        "{toctree",
        "{include",
        "{raw",
        "{code-block",
        "{glossary",
    }
    assert kinds <= known


@a_document
def test_links_to_files_lead_somewhere(document):
    prose = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", prose)
    within = {target: os.path.relpath(document.parent / target, ROOT / "docs") for target in targets}
    made = {target: path for target, path in within.items() if path.startswith(("gallery/", "reference/"))}
    others = {
        path
        for path in made.values()
        if not (ROOT / path.replace("gallery", "examples", 1)).with_suffix(".py").exists()
    }
    assert others <= {"gallery/index.rst", "reference/index.rst"}
    assert [target for target in targets if target not in made and not (document.parent / target).exists()] == []


def headings(document: Path) -> set[str]:
    """The anchors of a page, as MyST and GitHub make them of its headings."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    plain = (
        re.sub(r"[`*]", "", heading).strip().lower() for heading in re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)
    )
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@a_document
def test_links_to_headings_lead_somewhere(document):
    targets = re.findall(r"\]\(([^):]*\.md)?#([^)]+)\)", document.read_text(encoding="utf-8"))
    pages = [((document.parent / page if page else document).resolve(), anchor) for page, anchor in targets]
    assert [(page.name, anchor) for page, anchor in pages if anchor not in headings(page)] == []


def test_every_page_is_in_a_table_of_contents():
    """Sphinx warns of a page that nothing leads to, and a warning fails the build."""
    folder = ROOT / "docs"
    pages, named = [page for page in snippets.documents() if folder in page.parents], set()
    for page in pages:
        for block in re.findall(r"```\{toctree\}(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for match in re.finditer(r"<([\w/-]+)>|^([\w/-]+)$", block, re.MULTILINE):
                named.add((page.parent / f"{match[1] or match[2]}.md").resolve())
    assert {page.relative_to(folder).as_posix() for page in pages if page not in named} == {"index.md"}


def test_the_tests_that_keep_the_promises_are_there():
    text = (ROOT / "docs" / "develop" / "promises.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+\.py)`", text))
    assert len(named) > 10
    assert [name for name in sorted(named) if not any((ROOT / "tests").rglob(name))] == []
    chores = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", text)) <= set(chores)


def test_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert f"{oldest} or newer" in (ROOT / "docs" / "results" / "pictures" / "badge-python.svg").read_text(
        encoding="utf-8"
    )
    assert f"Python: {oldest} or newer" in (ROOT / "README.md").read_text(encoding="utf-8")
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "BSD-3-Clause" in (ROOT / "docs" / "results" / "pictures" / "badge-licence.svg").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License")


def test_the_reference_has_every_public_name():
    """What any module lists in `__all__`, found here by walking the package, is on a page of the reference."""
    described = {id(_value(name.path)) for name in public_names.public_names()}
    missing = []
    for info in pkgutil.walk_packages(gristmill.__path__, "gristmill."):
        parts = info.name.split(".")[1:]
        if any(part.startswith("_") for part in parts) or parts[0] in {"cli", "notation", "persist"}:
            continue
        module = import_module(info.name)
        listed = getattr(module, "__all__", ())
        values = {name: getattr(module, name) for name in listed}
        missing += [
            f"{info.name}.{name}"
            for name, value in values.items()
            if public_names.is_described(value) and id(value) not in described
        ]
    listed_at_the_top = [name for name in gristmill.__all__ if callable(getattr(gristmill, name))]
    missing += [name for name in listed_at_the_top if id(getattr(gristmill, name)) not in described]
    assert missing == []


def _value(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def test_every_public_name_is_described_once_and_has_a_docstring():
    names = public_names.public_names()
    assert len({name.path for name in names}) == len(names) > 100
    assert [name.path for name in names if not (_value(name.path).__doc__ or "").strip()] == []


def test_every_method_of_a_learner_has_parameters_and_returns():
    """In its docstring, or by the Sphinx extension that completes it."""
    lacking = []
    for learner in {_value(name.path) for name in public_names.public_names()}:
        if not inspect.isclass(learner) or not hasattr(learner, "get_params"):
            continue
        for name, method in inspect.getmembers(learner, inspect.isfunction):
            if public_names.is_internal(name, method) or not method.__module__.startswith("gristmill"):
                continue
            signature, text = inspect.signature(method), inspect.getdoc(method) or ""
            text += "\n".join(method_docs.sections(name, list(signature.parameters), text))
            if len(signature.parameters) > 1 and "Parameters\n---" not in text:
                lacking.append(f"{learner.__name__}.{name}: Parameters")
            if signature.return_annotation != "None" and "Returns\n---" not in text:
                lacking.append(f"{learner.__name__}.{name}: Returns")
    assert sorted(lacking) == []


def test_a_new_public_name_appears_by_itself(monkeypatch):
    class Newcomer:
        """Something new."""

        def greet(self):
            """Say hello."""

    Newcomer.__module__ = "gristmill.kernels"
    monkeypatch.setattr(gristmill, "Newcomer", Newcomer, raising=False)
    monkeypatch.setattr(gristmill, "__all__", [*gristmill.__all__, "Newcomer"])
    public_names.public_names.cache_clear()
    try:
        found = {name.path: name.page for name in public_names.public_names()}
        assert found["gristmill.Newcomer"] == "kernels"
        assert public_names.own_members("gristmill.Newcomer", "methods") == ["greet"]
    finally:
        public_names.public_names.cache_clear()
