"""Write the model files of this folder and what their models say: `python tests/saved/write.py tests/saved/format1`.

Files of an older format are never written again: they are what later versions must read.
`--digests` writes those of the instruction set that runs, `--show` prints them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.base import clone

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent / "support")]

from gristmill import _core  # noqa: E402
from tests.saved import models  # noqa: E402

LEARNED, THEN, SHOWN = 40, 20, 8  # events before a file is written, events after, rows that are asked about


def listed(array: np.ndarray) -> object:
    return np.asarray(array).tolist()


def one_file(name: str, model: object, kind: str, folder: Path) -> dict[str, object]:
    """Learn, save, ask, go on learning, ask again."""
    X, y = models.stream(kind, LEARNED + THEN)
    first, rest, rows = slice(0, LEARNED), slice(LEARNED, None), X[:SHOWN]
    model = clone(model)
    said: dict[str, object] = {"kind": kind}
    if name in models.BATCH:
        groups = {"qid": np.arange(LEARNED) // 8} if name == "landmark-ranker" else {}
        model.fit(X[first], None if y is None else y[first], **groups)
    else:
        models.learn(model, X[first], None if y is None else y[first], kind)
    model.save(folder / f"{name}.safetensors")
    said["answers"] = listed(models.answers(model, rows))
    if name not in models.BATCH:
        said["scores"] = listed(models.learn(model, X[rest], None if y is None else y[rest], kind))
        said["later"] = listed(models.answers(model, rows))
    return said


def write_files(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    said = {}
    for name, (model, kind) in {**models.IN_CORE, **models.BEYOND, **models.BATCH}.items():
        said[name] = one_file(name, model, kind, folder)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in said.items())
    (folder / "said.json").write_text("{\n" + lines + "\n}\n")


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
    elif sys.argv[1] == "--show":
        print(json.dumps({"isa": _core.isa(), "digests": digests()}))
    else:
        write_files(Path(sys.argv[1]))
