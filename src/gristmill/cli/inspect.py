"""`gristmill inspect`: what is inside a model file."""

from __future__ import annotations

import json
from typing import Any

import click

from .._common.types import Json
from .messages import leader_of


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def inspect(model: str, as_json: bool) -> None:
    """Show the contents of a model file; reading it cannot run code."""
    from .. import persist
    from ..evaluate.result import size_text

    loaded = persist.load(model)
    facts = _of_keys(loaded) if hasattr(loaded, "keys_") else _facts(loaded)
    if as_json:
        click.echo(json.dumps(facts))
        return
    facts["memory"] = size_text(facts.pop("bytes"))
    if "kinds" in facts:
        del facts["columns"]
        facts |= {f"column {name}": kind for name, kind in facts.pop("kinds").items()}
    width = max(map(len, facts))
    for name, value in facts.items():
        click.echo(f"{name.ljust(width)}  {value}")


def _facts(model: Any) -> Json:
    inner = getattr(model, "model_", model)
    facts: Json = {"estimator": type(inner).__name__}
    if hasattr(inner, "report"):
        facts["led by"] = leader_of(inner.report())
    else:
        facts["kernel"] = repr(getattr(inner, "kernel_", None))
        facts["rule"] = repr(getattr(inner, "rule", None))
        facts["budget"] = repr(getattr(inner, "budget", None))
    facts |= {
        "events seen": int(model.n_seen_),
        "stored points": int(model.n_support_),
        "features": int(getattr(inner, "n_features_in_", 0)),
        "bytes": int(model.memory_bytes_),
    }
    if hasattr(inner, "classes_"):
        facts["classes"] = [str(label) for label in inner.classes_]
    for name in ("margin_", "epsilon_", "sigma_", "rate_"):
        if hasattr(inner, name):
            facts[name.rstrip("_")] = float(getattr(inner, name))
    if inner is not model:
        facts["scaling"] = "none" if model.scale is None else str(model.scale)
        if model.scale == "relevance":
            facts["relevance"] = _relevance(model)
        table = getattr(model, "table_", None)
        if model.target_name_ is not None:
            facts["target"] = model.target_name_
        if table is not None and table.named:
            facts["features"] = table.n_features_in_
            facts["columns"] = list(table.kinds_)
            facts["kinds"] = {line["column"]: _kind(line) for line in table.describe()}
    return facts


def _of_keys(fleet: Any) -> Json:
    """What a model a key has in common, and what the table that they see has settled."""
    from ..notation import written

    facts: Json = {
        "estimator": type(fleet).__name__,
        "learner of each key": written(fleet.prototype),
        "learner of all keys": "none" if fleet.prior is None else written(fleet.prior),
        "keys": len(fleet),
        "stored points": int(fleet.n_stored_),
        "features": int(fleet.n_features_in_),
        "bytes": int(fleet.memory_bytes_),
    }
    facts |= {name.replace("_", " "): found for name in ("max_keys", "ttl", "spill") if (found := getattr(fleet, name))}
    if hasattr(fleet, "classes_"):
        facts["classes"] = [str(label) for label in fleet.classes_]
    if hasattr(fleet, "key_column_"):
        table = fleet.columns_.table
        facts |= {"key": fleet.key_column_, "target": fleet.columns_.target, "features": table.n_features_in_}
        facts["columns"] = list(table.kinds_)
        facts["kinds"] = {line["column"]: _kind(line) for line in table.describe()}
    return facts


def _kind(line: dict[str, object]) -> str:
    """A column of a table in words."""
    many = f" of {line['values']} values" + (" and others" if line["others"] else "") if "values" in line else ""
    return f"{line['kind']}{many}{', with missing values' if line['missing'] else ''}"


def _relevance(model: Any) -> dict[str, float]:
    """The ten columns that move the answer most, by name, and their shares."""
    names = model.table_.names
    largest = (-model.relevance_).argsort(kind="stable")[:10]
    return {str(names[column]): round(float(model.relevance_[column]), 4) for column in largest}
