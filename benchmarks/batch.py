"""`python -m benchmarks.batch`: `fit` on at most 8,000 rows beside a tuned SVC and forests: test error and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from gristmill import AutoClassifier, Laplacian, Prepared, passive_aggressive

from .data import SEED, arrays, digest, shuffled, standardised
from .measure import machine, pin, show
from .progress import bar
from .store import Store

ROWS = 8000
TEST_ROWS = 10_000
SETS = ("usps", "ijcnn1", "cod-rna", "nursery", "spambase", "a9a")

#: Ours, by name: made for d columns, with `fit` and `predict`. Columns come as they are in the file.
OURS: dict[str, Callable[[int], Any]] = {
    'AutoClassifier("32 MB")': lambda d: AutoClassifier("32 MB"),
    "PA-I, one pass": lambda d: Prepared(passive_aggressive(Laplacian(3 / d))),
    "PA-I, one pass, averaged": lambda d: Prepared(passive_aggressive(Laplacian(3 / d), average=True)),
}


def split(name: str, rows: int) -> tuple[Any, Any, Any, Any]:
    """Training and test part: the official ones where there are two, else two thirds and one of the distinct rows
    (cod-rna has rows twice, which would be in both)."""
    X, y = arrays(name)
    try:
        X_test, y_test = arrays(f"{name}.t")
    except ValueError:  # no such set
        _, first = np.unique(X, axis=0, return_index=True)
        X, y = shuffled(X[np.sort(first)], y[np.sort(first)])
        cut = min(rows, 2 * len(y) // 3)
        return X[:cut], y[:cut], X[cut:][:TEST_ROWS], y[cut:][:TEST_ROWS]
    return *shuffled(X, y, rows), *shuffled(X_test, y_test, TEST_ROWS)


def tuned_svc(d: int) -> Any:
    """Gaussian SVC, width and C by threefold cross-validation."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    grid = {"C": [1.0, 10.0, 100.0], "gamma": [q / d for q in (0.1, 0.3, 1.0, 3.0)]}
    folds = StratifiedKFold(3, shuffle=True, random_state=SEED)
    return GridSearchCV(SVC(cache_size=500), grid, cv=folds)


def boosting(d: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=SEED)


def forest(d: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=SEED)


PEERS: dict[str, Callable[[int], Any]] = {
    "RandomForest": forest,
    "HistGradientBoosting": boosting,
    "SVC, tuned": tuned_svc,
}


def run(build: Callable[[int], Any], parts: tuple[Any, Any, Any, Any]) -> dict[str, float]:
    """Test error, processor seconds of `fit`, microseconds a predicted row."""
    X, y, X_test, y_test = parts
    model = build(X.shape[1])
    began = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    said = model.predict(X_test)
    done = time.process_time()
    return {
        "error": float(np.mean(said != y_test)),
        "seconds": fitted - began,
        "microseconds": 1e6 * (done - fitted) / len(y_test),
    }


def measured(names: list[str], learners: list[str], rows: int, store: Store, again: bool) -> dict[str, Any]:
    """By data set and learner; peers from the store where it has them."""
    results: dict[str, Any] = {}
    facts = machine()
    with bar(len(names) * len(learners)) as begin:
        for name in names:
            try:
                parts = split(name, rows)
            except FileNotFoundError as missing:
                print(f"{name} is left out: {missing}")
                continue
            scaled = (*_two(standardised(parts[0], parts[2]), parts),)
            what = {"data": digest(parts[0], parts[1]), "rows": len(parts[1]), "tests": len(parts[3])}
            for learner in learners:
                tick = begin(f"{name}: {learner}", 1)
                kept = store.find("batch", name, learner, **what) if learner in PEERS and not again else None
                if kept is None:
                    build, data = (PEERS[learner], scaled) if learner in PEERS else (OURS[learner], parts)
                    kept = store.put("batch", name, learner, **what, **run(build, data), machine=facts)
                results.setdefault(name, {})[learner] = kept
                tick(1)
    return results


def _two(scaled: tuple[Any, Any], parts: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
    return scaled[0], parts[1], scaled[1], parts[3]


def tables(results: dict[str, Any], learners: list[str]) -> None:
    for key, title in (("error", "test error"), ("seconds", "processor seconds of fit, tuning included"),
                       ("microseconds", "microseconds a predicted row")):  # fmt: skip
        rows = [{"learner": name, **{data: found[name][key] for data, found in results.items()}} for name in learners]
        show(
            title, [{k: f"{v:.4f}" if key == "error" and k != "learner" else v for k, v in row.items()} for row in rows]
        )
    tuned = "SVC, tuned"
    if tuned in learners:
        rows = []
        for name in learners:
            ratios = {data: found[name]["error"] / max(found[tuned]["error"], 1e-12) for data, found in results.items()}
            rows.append({"learner": name, **{data: f"{ratio:.2f}" for data, ratio in ratios.items()}})
        show("test error over that of the tuned SVC", rows)


@click.command()
@click.option("-d", "--data", multiple=True, type=click.Choice(SETS), help="Several times; all unless said.")
@click.option("-l", "--learner", "asked", multiple=True, help="Learners with this word in their name.")
@click.option(
    "-n", "--rows", default=ROWS, show_default=True, type=click.IntRange(min=50), help="At most, to learn from."
)
@click.option("--again", is_flag=True, help="Measure peers anew too.")
@click.option("--results", default="bench-results", show_default=True, type=click.Path(path_type=Path))
def main(data: tuple[str, ...], asked: tuple[str, ...], rows: int, again: bool, results: Path) -> None:
    """Our learners by `fit` beside SVC tuned by cross-validation, gradient boosting and a random forest; one thread."""
    pin()
    learners = [name for name in (*OURS, *PEERS) if not asked or any(word.lower() in name.lower() for word in asked)]
    if not learners:
        raise click.BadParameter(f"no learner has that in its name; there are {', '.join((*OURS, *PEERS))}")
    found = measured(list(data or SETS), learners, rows, Store(results), again)
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    tables(found, learners)


if __name__ == "__main__":
    main()
