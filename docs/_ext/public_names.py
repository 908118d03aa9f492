"""Every public name of gristmill, found by looking, and the page of the reference that it belongs to."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import gristmill

_ATTRIBUTE = re.compile(r"^(\w+) :", re.MULTILINE)
#: page -> (title, what it is about in a line); a module without an entry has a page of its own all the same
PAGES = {
    "learners": ("Learners", "Learners put together from kernel, rule and budget; tables and labels with structure."),
    "race": ("Without settings", "Learners without settings, and mixtures of your own learners."),
    "catalogue": ("Catalogue", "The published algorithms: one function each, which returns a learner."),
    "kernels": ("Kernels", "How similar two points are."),
    "losses": ("Losses", "The loss of a prediction."),
    "rules": ("Rules", "How the model changes at one event."),
    "budgets": ("Budgets", "How many points are stored, and which are removed."),
    "additive": ("Additive kernels", "One curve for each feature."),
    "features": ("Random features", "A kernel as explicit features, with no stored points."),
    "similarity": ("Similarities", "Learning with any function of two objects, through landmarks."),
    "unsupervised": ("Components and clusters", "Kernel PCA and kernel k-means on a stream."),
    "pairwise": ("Pairs", "Ranking, metrics and mixtures of kernels, from pairs of events."),
    "fleets": ("Fleets", "One model per device, customer or pixel."),
    "video": ("Video", "Background subtraction with one novelty detector per pixel. Experimental."),
    "merging": ("Compressing and merging", "Smaller models, and one model of several."),
    "cluster": ("Cluster", "Fleets, data in several places and many settings on Ray. Experimental."),
    "streams": ("Streams", "Reading, scaling and generating streams."),
    "evaluate": ("Evaluation", "Prequential runs, comparisons, searches and pictures."),
    "datasets": ("Data sets", "Named data sets from a local folder."),
    "river": ("River", "Adapters for River's pipelines."),
    "serve": ("Service", "A learning service over HTTP. Experimental."),
    "export": ("Export", "Models as ONNX graphs, C99 headers and JSON, and models back from devices."),
    "persist": ("Files", "Loading saved models."),
    "theory": ("Theory", "Bounds and parameter choices of the papers."),
    "checks": ("Checks", "Checks of the promises, for learners of your own."),
}
#: folders and modules that share the page of another
_SHARE = {"prepared": "learners", "structured": "learners"}
#: modules inside a folder that have a page of their own
_OWN = {
    "learners.additive": "additive",
    "learners.additive_components": "additive",
    "evaluate.displays.additive": "additive",
}
#: what users may subclass, although the package does not list it at the top
_ALSO = ("kernels.Kernel", "kernels.PythonKernel")
#: folders with public names beside those that the package itself names
_FAMILIES = ("race", "river", "serve", "streams.brokers", "structured", "unsupervised")

#: what modules of the package ask of each other's classes: a user needs none of it, and it may change at any time
_CONTRACTS = frozenset(
    {
        "affine_map",
        "begin_core",
        "begun_store",
        "bytes_for",
        "check_parameters",
        "check_reach",
        "check_task",
        "checked_events",
        "checked_parts",
        "checked_rows",
        "checked_times",
        "column_slopes",
        "comparison_of",
        "coordinate_parts",
        "copied",
        "core_ball",
        "core_map",
        "core_spec",
        "default_kernel",
        "draw_weights",
        "drawn",
        "drawn_seed",
        "emit_program",
        "event_weight",
        "expect_columns",
        "fitted_run",
        "input_kind",
        "kernel_diagonal",
        "kernel_program",
        "key_kind",
        "known_events",
        "label_table",
        "learn_checked",
        "learn_sparse",
        "map_columns",
        "map_gradient",
        "map_values",
        "means_fields",
        "member_model",
        "memory_limit",
        "merged_of",
        "moments",
        "n_passes",
        "n_threads",
        "needs_only_width",
        "new_core",
        "new_race",
        "new_store",
        "parts_fields",
        "pipeline",
        "predictions_of",
        "pull_gradient",
        "reads_times",
        "refuse_changed_parameters",
        "restore_fields",
        "restored_core",
        "restored_parts",
        "resume",
        "rollback",
        "runs_in_core",
        "saved_fields",
        "scale_checked",
        "scale_sparse",
        "scaled_values",
        "shown_scores",
        "skips_missing_values",
        "snapshot",
        "spare_parts",
        "state_names",
        "store",
        "summands",
        "takes_objects",
        "unscaled_values",
        "uses_transformer",
        "value_of_pair",
        "weighed_rows",
        "widen_columns",
    }
)


@dataclass(frozen=True, order=True)
class PublicName:
    """One public name, where to import it from, and the page that describes it."""

    path: str  # gristmill.Gaussian, gristmill.pairwise.PSDCone
    page: str

    @property
    def module(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def _says_what_is_public(module: ModuleType) -> list[str]:
    """`__all__`; without it every class and function that the module itself defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    ]


def is_described(value: Any) -> bool:
    """Whether the reference has an entry for it: classes and functions have one, modules and aliases of types have not."""
    return inspect.isclass(value) or inspect.isroutine(value)


def _families() -> list[ModuleType]:
    """Public modules that hold public names."""
    named = [name for name in gristmill.__all__ if inspect.ismodule(getattr(gristmill, name))]
    return [import_module(f"gristmill.{name}") for name in sorted({*named, *_FAMILIES})]


def _page_of(value: Any, path: str) -> str:
    """The page of the module that defines a value, or of the one it is imported from."""
    home = getattr(value, "__module__", None) or path
    if not home.startswith("gristmill."):
        home = path
    inner = home.removeprefix("gristmill.")
    page = inner.split(".")[0]
    return _OWN.get(inner, _SHARE.get(page, page))


@cache
def public_names() -> Sequence[PublicName]:
    """Every public class and function, each by its shortest path."""
    shortest: dict[int, tuple[Any, str]] = {}
    for module in [gristmill, *_families()]:
        for name in _says_what_is_public(module):
            value = getattr(module, name)
            if name.startswith("__") or not is_described(value):
                continue
            shortest.setdefault(id(value), (value, f"{module.__name__}.{name}"))
    for path in _ALSO:
        module, _, name = path.rpartition(".")
        value = getattr(import_module(f"gristmill.{module}"), name)
        shortest.setdefault(id(value), (value, f"gristmill.{path}"))
    return tuple(sorted(PublicName(path, _page_of(value, path)) for value, path in shortest.values()))


def is_internal(name: str, member: object) -> bool:
    """Whether a method or property is for the package's own modules."""
    home = getattr(member.fget if isinstance(member, property) else member, "__module__", None) or ""
    return name.startswith("_") or (name in _CONTRACTS and not home.startswith("gristmill.cluster"))


def own_members(path: str, kind: str) -> list[str]:
    """Public methods or properties of a class that gristmill itself defines, in the order of their names."""
    module, _, name = path.rpartition(".")
    described = getattr(import_module(module), name)
    names = []
    listed = set(_ATTRIBUTE.findall(_attributes(inspect.getdoc(described) or "")))
    for member, value in inspect.getmembers_static(described):
        wanted = isinstance(value, property) if kind == "properties" else _is_method(value)
        owner = next((base for base in described.__mro__ if member in vars(base)), None)
        ours = owner is not None and owner.__module__.startswith("gristmill")
        if wanted and ours and not is_internal(member, value) and inspect.getdoc(value) and member not in listed:
            names.append(member)
    return names


def _attributes(docstring: str) -> str:
    """The section Attributes of a class, which describes some of its properties already."""
    _, title, rest = docstring.partition("Attributes\n----------\n")
    return rest.split("\n\n")[0] if title else ""


def _is_method(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod))
