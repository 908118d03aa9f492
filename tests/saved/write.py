"""Fitted models of every class, as files, and the digests of their scores.

`python tests/saved/write.py --digests` records the digests of the instruction set that runs, `--show` prints them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent / "support")]

from gristmill import _core  # noqa: E402
from tests.saved import models  # noqa: E402

LEARNED, THEN, SHOWN = 40, 20, 8  # samples before a file is written, samples after, rows to predict
ALL = {**models.IN_CORE, **models.BEYOND, **models.BATCH}


def fitted(name: str) -> tuple[Any, str]:
    """The model of this name after `LEARNED` samples, and its kind of stream."""
    prototype, kind = ALL[name]
    X, y = models.stream(kind, LEARNED + THEN)
    X, y = X[:LEARNED], None if y is None else y[:LEARNED]
    model = clone(prototype)
    if name in models.BATCH:
        groups = {"qid": np.arange(LEARNED) // 8} if name == "landmark-ranker" else {}
        model.fit(X, y, **groups)
    else:
        models.learn(model, X, y, kind)
    return model, kind


def family() -> str:
    """Machines that fuse multiply and add share their digests; the baseline has its own."""
    return "baseline" if _core.isa() == "baseline" else "fused"


def digests() -> dict[str, str]:
    found = {}
    for name, (model, kind) in {**models.IN_CORE, **models.catalogue_learners()}.items():
        X, y = models.stream(kind, 300)
        found[name] = models.digest(models.learn(clone(model), X, y, kind))
    return found


def write_digests(path: Path) -> None:
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**kept, family(): digests()}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--digests":
        write_digests(HERE / "digests.json")
    else:
        print(json.dumps({"isa": _core.isa(), "digests": digests()}))
