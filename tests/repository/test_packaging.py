"""What a release says about itself is said once and is true."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import tomllib
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


def test_the_long_description_has_no_links_that_only_a_checkout_can_follow():
    """What a package index shows: there is no address yet to which relative links and pictures could point."""
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["metadata"]["hooks"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for change in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    targets = re.findall(r"\]\(([^)]*)\)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    assert [target for target in targets if not target.startswith(("https:", "#"))] == []
    assert "A **kernel** measures" in text
    assert "With scikit-learn and River" in text


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


def test_the_conda_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    extras = project["project"]["optional-dependencies"]["cli"]
    needed = [*project["project"]["dependencies"], *extras, *project["build-system"]["requires"]]
    assert [name for name in needed if f"- {name.replace('>=', ' >=')}\n" not in recipe] == []


def test_the_cited_papers_are_those_of_the_papers_page():
    cited = re.findall(r'^    title: "(.+)"$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    page = (ROOT / "docs" / "results" / "papers.md").read_text(encoding="utf-8")
    assert len(cited) == 5
    assert [title for title in cited if title not in page] == []


def test_workflows_pin_actions_by_hash_and_end_in_time():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        assert [line for line in re.findall(r"uses: (.+)", text) if not re.search(r"@[0-9a-f]{40}  # v\d", line)] == []
        jobs = text.partition("\njobs:\n")[2]
        assert (
            jobs.count("runs-on:")
            == jobs.count("timeout-minutes:")
            == len(re.findall(r"^  [\w-]+:$", jobs, re.MULTILINE))
        )
