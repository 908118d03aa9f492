"""How Sphinx builds the pages: `make docs` writes them to site/, and every warning is an error."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import matplotlib as mpl

import gristmill

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from public_names import own_members  # found on the path above

mpl.use("agg")
warnings.filterwarnings("error", module="gristmill")

project = "gristmill"
author = "The gristmill developers"
project_copyright = "The gristmill developers, BSD-3-Clause"
version = release = gristmill.__version__
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
    "reference_pages",
    "method_docs",
]
exclude_patterns = ["_build", "README.md"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring links to the reference where there is such a name
suppress_warnings = ["config.cache"]  # the order of the gallery is a function, which cannot be stored

# ---- Markdown
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# ---- reference
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_context = {"own_members": own_members}
autodoc_typehints = "none"  # docstrings say the types
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
toc_object_entries_show_parents = "hide"
python_display_short_literal_types = True

# ---- other libraries: their lists of names come from the network, so only if it is asked for
if os.environ.get("GRISTMILL_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# ---- gallery
_GROUPS = ("classify", "regress", "anomalies", "drift", "keys", "tables", "compare", "deploy", "own")
_FIRST = ("race", "digits_stream", "water_flow", "monitor_machine", "drifting_classifier", "many_sensors")


def in_order(filename: str) -> tuple[int, str]:
    """Where an example stands in its group: those named above first, the others by their names."""
    stem = Path(filename).stem
    return (_FIRST.index(stem) if stem in _FIRST else len(_FIRST), stem)


def group_order(folder: str) -> int:
    """Where a group stands in the gallery."""
    return _GROUPS.index(Path(folder).name)


def draw_alike(_: object, __: object) -> None:
    """Before each example: colours that people with any sight can tell apart (Okabe and Ito), no boxes."""
    colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
    mpl.rcParams.update({"axes.prop_cycle": mpl.cycler(color=colours), "legend.frameon": False})
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": "medium"})
    mpl.rcParams.update({"font.size": 12, "savefig.bbox": "tight"})  # readable on a phone, and nothing cut off


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py$",
    "subsection_order": group_order,
    "within_subsection_order": in_order,
    "reset_modules": ("matplotlib", draw_alike),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "copyfile_regex": r"",
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 0,
    "doc_module": ("gristmill",),
    "backreferences_dir": "reference/examples",
    "show_signature": False,
    "thumbnail_size": (400, 250),
}

# ---- pages
html_theme = "pydata_sphinx_theme"
html_title = "gristmill"
html_static_path = ["_static"]
_PLAYGROUND = Path(__file__).parent.parent / "build" / "playground"  # by `make playground`
html_extra_path = [str(_PLAYGROUND)] if _PLAYGROUND.exists() else []
html_css_files = ["gristmill.css"]
html_search_scorer = str(Path(__file__).parent / "_scripts" / "search_scorer.js")
html_favicon = "_static/mark.svg"
html_logo = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars: dict[str, list[str]] = {page: [] for page in ("index", "install", "tour", "results/*", "develop/*")}
html_sidebars["gallery/**"] = []  # wide enough for the code
_WIDE = ("index", "guide/users/river", "guide/users/scikit-learn")  # no list of headings, for wide columns
html_theme_options = {
    "logo": {"text": "gristmill"},
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navigation_depth": 2,
    "show_toc_level": 2,
    "show_nav_level": 1,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "secondary_sidebar_items": {"**": ["page-toc"]} | {page: [] for page in _WIDE},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_remove_prompts = True
