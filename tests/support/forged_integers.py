"""Whole numbers of model files, forged one at a time, and loaded under limits of processor time and memory.

`make fuzz` runs all values over all fields; as a program: `forged_integers.py` prints what was refused, loaded and found.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import resource
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import model_files
import numpy as np
from registry import DOORS
from sklearn.exceptions import NotFittedError

import gristmill
from gristmill import DropOldest, Gaussian, KernelClassifier, KernelRegressor, Prepared

VALUES = (0, 1, 2**31, 2**33, 2**56, 2**62, 2**63)
THOROUGH = os.environ.get("GRISTMILL_INTEGERS") == "all"  # what was loaded learns, too
SECONDS = 2.0  # of processor time for one load
ROOM = 512 << 20  # bytes beyond what the process has: no file here is larger than 1 MB
ROWS = np.random.default_rng(2).uniform(0.05, 0.95, size=(3, 4))


def models() -> dict[str, Any]:
    """Every public learner after a short stream, and some in states that have fields of their own."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, door in DOORS.items():
            if door.saves:
                X, y = door.stream(60)
                found[name] = door.learn(door.made(**door.small), X, y)
        X, y = DOORS["KernelClassifier"].stream(60)
        found["three classes"] = KernelClassifier(budget=DropOldest(20)).partial_fit(X, np.arange(60) % 3)
        found["two targets"] = KernelRegressor(budget=DropOldest(20)).partial_fit(X, X[:, :2])
        found["race of three classes"] = gristmill.AutoClassifier("200 kB", passes=1).partial_fit(X, np.arange(60) % 3)
        words = [[str(place % 7), row[0], None if place % 5 else row[1]] for place, row in enumerate(X.tolist())]
        table = np.array(words, dtype=object)
        found["prepared table"] = Prepared(KernelClassifier(Gaussian(1.0), budget=DropOldest(20))).partial_fit(table, y)
        found["prepared relevance"] = Prepared(KernelRegressor(budget=DropOldest(20)), "relevance").partial_fit(
            X, X[:, 0]
        )
        import scipy.sparse

        sparse = scipy.sparse.csr_array(np.where(X > 0.5, X, 0.0))
        found["prepared sparse"] = Prepared(KernelClassifier(budget=DropOldest(20)), None).partial_fit(sparse, y)
        found["scaled sparse"] = Prepared(KernelClassifier(budget=DropOldest(20))).partial_fit(sparse, y)
    return found


def numbers_in(text: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all whole numbers in JSON."""
    items = text.items() if isinstance(text, dict) else enumerate(text) if isinstance(text, list) else ()
    for key, value in items:
        if isinstance(value, int) and not isinstance(value, bool):
            yield (*path, key)
        else:
            yield from numbers_in(value, (*path, key))


def forgeries(data: bytes, values: tuple[int, ...]) -> Iterator[tuple[str, bytes]]:
    """Each whole number of a file, in each of some values."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(data)
    arrays, text = model_files.opened(Path(file.name))
    os.unlink(file.name)
    for name in sorted(arrays):
        array = arrays[name]
        if array.dtype.kind not in "ui" or not array.size:
            continue
        bounds = np.iinfo(array.dtype)
        for value in values:
            for place in sorted({0, array.size - 1}):
                changed = array.copy()
                changed.flat[place] = min(max(value, bounds.min), bounds.max)
                yield f"{name}[{place}] = {value}", model_files.closed({**arrays, name: changed}, text)
    for path in numbers_in(text):
        if path[0] == "format":
            continue
        for value in values:
            forged = copy.deepcopy(text)
            inner = forged
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            yield f"{json.dumps(path)} = {value}", model_files.closed(arrays, forged)


def _load(data: bytes) -> str:
    """What comes of a file: refused, loaded, or what is wrong with it."""
    try:
        model = gristmill.from_bytes(data)
    except gristmill.ModelFileError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError) or "alloc" in str(cause):
                return f"asks for too much memory: {error}"
            cause = cause.__cause__
        return "refused"
    except BaseException as error:
        return f"raises {type(error).__name__}: {error}"
    return _asked(model)


def _asked(model: Any) -> str:
    """What a loaded model answers: anything, or an error that names what does not fit."""
    keyed = (np.arange(3),) if hasattr(model, "keys_") else ()
    rows = np.repeat(ROWS[:, None], 2, axis=1) if type(model).__name__ == "Fleet" else ROWS
    verbs = "memory_bytes_ n_seen_ predict decision_function predict_proba explain weights_"
    for verb in (verbs + " transform partial_fit predict" if THOROUGH else verbs).split():
        try:
            found = getattr(model, verb, None)
            if verb == "partial_fit":
                _learned(model, keyed, rows)
            elif callable(found):
                found(*keyed, rows[0] if verb == "explain" else rows)
        except (ValueError, TypeError, NotFittedError, AttributeError):
            continue
        except MemoryError:
            return f"asks for too much memory in {verb}"
        except BaseException as error:
            if "stores no points" in str(error):  # so it is with every file of this class
                continue
            return f"{verb} raises {type(error).__name__}: {error}"
    return "loaded"


def _learned(model: Any, keyed: Any, rows: Any) -> None:
    """Three more samples, of labels that the model knows, or of numbers."""
    known = getattr(model, "classes_", None)
    y = np.arange(3) / 2 if known is None or not len(known) else np.asarray(known)[np.arange(3) % len(known)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(*keyed, rows, np.stack([y, y], axis=1) if type(model).__name__ == "Fleet" else y)


def tried(cases: list[tuple[str, bytes]]) -> dict[str, str]:
    """What comes of each file, in processes of their own that may neither take long nor much memory."""
    found: dict[str, str] = {}
    while len(found) < len(cases):
        ours, theirs = os.pipe()
        process = os.fork()
        if process == 0:
            with open("/proc/self/statm", encoding="ascii") as file:
                now = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, now + ROOM))
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
            with open(theirs, "wb") as out:
                for name, data in cases[len(found) :]:
                    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
                    pickle.dump((name, _load(data)), out)
                    out.flush()
            os._exit(0)
        os.close(theirs)
        with open(ours, "rb") as file:
            while True:
                try:
                    name, said = pickle.load(file)
                except EOFError:
                    break
                found[name] = said
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status:
            what = "takes too long" if status == -signal.SIGVTALRM else f"ends the process ({status})"
            found[cases[len(found)][0]] = what
    return found


def main() -> None:
    total: dict[str, int] = {}
    for name, model in models().items():
        found = tried(list(forgeries(model.to_bytes(), VALUES)))
        for case, said in found.items():
            total[said.split(":")[0].split(" ")[0]] = total.get(said.split(":")[0].split(" ")[0], 0) + 1
            if said not in ("refused", "loaded"):
                print(name, case, said[:150], flush=True)
    print(total)


if __name__ == "__main__":
    main()
