"""Model files of format 1 as those of today: every array and value that has another name or place by now."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def upgraded(
    name: str, parameters: dict[str, Any], arrays: dict[str, Any], fitted: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and fitted values of a file of format 1, as format 2 has them."""
    fitted = {key: value for key, value in fitted.items() if key != "labels_dtype"}
    if name == "Prepared":
        inner = parameters["model"]
        own = {key.removeprefix("model."): value for key, value in arrays.items() if key.startswith("model.")}
        rest = {key: value for key, value in arrays.items() if not key.startswith("model.")}
        own, fitted["model"] = upgraded(inner["type"], inner, own, fitted["model"])
        return {**rest, **{f"model.{key}": value for key, value in own.items()}}, fitted
    if name.startswith("StreamLandmark"):
        return _landmarks(arrays, fitted)
    if name.startswith(("Kernel", "Feature", "Pairwise", "OAM", "TwoStage")):
        arrays = {**arrays, "classes": np.array([len(fitted.get("labels", ()))], dtype=np.int64)}
    if name.startswith(("Pairwise", "OAM", "TwoStage")):
        arrays["width"] = np.array([fitted["width"]], dtype=np.int64)
        fitted.setdefault("n_features_in", fitted["width"])
    return arrays, fitted


def _landmarks(arrays: dict[str, Any], fitted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Counters and the generator were plain values; the labels are listed as the rows stand."""
    counters = [fitted.pop("used"), fitted.pop("seen")]
    generator = json.dumps(fitted.pop("generator")).encode()
    changed = {
        "counters": np.array(counters, dtype=np.int64),
        "generator": np.frombuffer(generator, dtype=np.uint8),
        "class_count": arrays.get("class_count", np.zeros(1)),
        "classes": np.array([len(fitted.get("labels", ()))], dtype=np.int64),
    }
    fitted["n_features_in"] = int(arrays["points"].shape[1])
    return {**arrays, **changed}, fitted
