"""Sphinx extension: the pages of the reference, links to them from `names` in the text, and a check that none is missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from public_names import PAGES, PublicName, public_names
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import gristmill

_NAME = re.compile(r"(?:gristmill\.)?([A-Za-z_][\w.]*)(?:\(.*\))?$", re.DOTALL)
_INITIAL = re.compile(r"^(\s*)([A-Z]\. )")
_LITERAL = re.compile(r"(``.*?``)")


def _table(heading: str, rows: dict[str, str]) -> list[str]:
    """Names beside formulas."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 1 2", "", f"   * - {heading}", "     - formula"]
    for name, formula in rows.items():
        lines += [f"   * - `{name}`", f"     - :math:`{formula}`"]
    return [*lines, ""]


#: page -> formulas at its top
FORMULAS = {
    "kernels": _table(
        "kernel",
        {
            "Linear()": r"\langle x, y \rangle",
            "Polynomial(degree, gamma, coef0)": r"(\gamma \langle x, y \rangle + c_0)^{d}",
            "Gaussian(gamma)": r"\exp(-\gamma \lVert x - y \rVert_2^2)",
            "Laplacian(gamma)": r"\exp(-\gamma \lVert x - y \rVert_1)",
            "Exponential(sigma)": r"\exp(\langle x, y \rangle / \sigma^2)",
            "Vovk(degree)": r"\sum_{i < d} \langle x, y \rangle^i",
            "Sigmoid(gamma, coef0)": r"\tanh(\gamma \langle x, y \rangle + c_0)",
            "Manhattan()": r"-\lVert x - y \rVert_1",
            "SquaredEuclidean()": r"-\lVert x - y \rVert_2^2",
            "Normalized(base)": r"k(x, y) / \sqrt{k(x, x)\, k(y, y)}",
        },
    ),
    "losses": _table(
        "loss",
        {
            "Hinge(margin)": r"\max(0, \rho - y f)",
            "Logistic()": r"\log(1 + e^{-y f})",
            "Squared()": r"\tfrac12 (y - f)^2",
            "EpsilonInsensitive(epsilon)": r"\max(0, |y - f| - \varepsilon)",
            "Huber(sigma)": r"\tfrac{1}{2 \sigma} (y - f)^2 \text{ if } |y - f| \le \sigma"
            r"\text{, else } |y - f| - \tfrac{\sigma}{2}",
            "Pinball(quantile)": r"\max(q (y - f), (q - 1)(y - f))",
        },
    ),
    "rules": [
        "A model is a sum over the stored points, and a rule proposes how it changes at one sample:",
        "",
        ".. math::",
        "",
        r"   f(x) = \sum_{i} \alpha_i\, k(x_i, x) + b, \qquad f \leftarrow (1 - \lambda)\, f + \alpha\, k(x_t, \cdot)",
        "",
    ],
}


def _rows(names: Sequence[PublicName]) -> list[str]:
    """One table for each module that names are imported from."""
    lines: list[str] = []
    for module in dict.fromkeys(name.module for name in names):
        lines += [f".. currentmodule:: {module}", "", f"Import from ``{module}``:", ""]
        lines += [".. autosummary::", "   :toctree: names", "   :nosignatures:", ""]
        lines += [f"   {name.name}" for name in names if name.module == module]
        lines += [""]
    return lines


def write_pages(folder: Path) -> None:
    """One page for each family, and one that lists them; files that would not change are left alone."""
    by_page: dict[str, list[PublicName]] = {}
    for name in public_names():
        by_page.setdefault(name.page, []).append(name)
    order = [*(page for page in PAGES if page in by_page), *sorted(set(by_page) - set(PAGES))]
    listing = ["Reference", "=========", "", "Every public name, by topic.", ""]
    for page in order:
        title, about = PAGES.get(page, (page.capitalize(), ""))
        formulas = FORMULAS.get(page, [])
        _write(folder / f"{page}.rst", [title, "=" * len(title), "", about, "", *formulas, *_rows(by_page[page])])
        listing += [f":doc:`{title} <{page}>`", f"   {about}", ""]
    listing += [".. toctree::", "   :hidden:", "", *(f"   {page}" for page in order)]
    _write(folder / "index.rst", listing)
    for stale in {path.stem for path in folder.glob("*.rst")} - {*order, "index"}:
        (folder / f"{stale}.rst").unlink()  # of an earlier build, which divided the names in another way
    for stale in {path.stem for path in folder.glob("names/*.rst")} - {name.path for name in public_names()}:
        (folder / "names" / f"{stale}.rst").unlink()


def _write(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_all(app: Sphinx, _: Any = None) -> None:
    """Before anything is read."""
    write_pages(Path(app.srcdir) / "reference")


@cache
def _paths() -> dict[str, str]:
    """What may be written in the text -> the full path; a short name only where it has one meaning."""
    paths = {name.path.removeprefix("gristmill."): name.path for name in public_names()}
    meanings = Counter([name.name for name in public_names()] + dir(gristmill.KernelClassifier))  # or a method
    return {name.name: name.path for name in public_names() if meanings[name.name] == 1} | paths


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """`Gaussian` or `fit(X, y)` in running text becomes a link where it is a public name."""
    paths = _paths()
    for node in list(doctree.findall(nodes.literal)):
        match = _NAME.match(node.astext())
        if match is None or match[1] not in paths or isinstance(node.parent, (nodes.reference, pending_xref)):
            continue
        link = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=paths[match[1]], refexplicit=True, refdoc=app.env.docname
        )
        node.replace_self(link)
        link += node


def check_all_are_described(app: Sphinx, error: Exception | None) -> None:
    """The build fails if a public name has no entry."""
    if error is not None or app.builder.name != "html":
        return
    described = set(app.env.domains.python_domain.objects)
    missing = sorted({name.path for name in public_names()} - described)
    if missing:
        raise ExtensionError(f"the reference lacks {', '.join(missing)}")


def escape_marks(_: Sphinx, what: str, name: str, described: Any, options: Any, lines: list[str]) -> None:
    """In a docstring |x| is an absolute value and "J. Kivinen" an author: no substitution, and no item J of a list."""
    in_example = False
    for number, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and line.strip() != "")
        if not in_example:
            line = _INITIAL.sub(r"\1\\\2", line)
            lines[number] = "".join(
                part if part.startswith("``") else part.replace("|", r"\|") for part in _LITERAL.split(line)
            )


def find_new_pages(app: Sphinx) -> None:
    """Where the state of an earlier build is used again, autosummary must see the pages that are new since then."""
    app.env.find_files(app.config, app.builder)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("config-inited", write_all)
    app.connect("builder-inited", find_new_pages, priority=100)  # before autosummary
    app.connect("autodoc-process-docstring", escape_marks, priority=900)  # after numpydoc
    app.connect("doctree-read", link_names)
    app.connect("build-finished", check_all_are_described)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
