"""Tables 4.1, 4.2 and 5.1 and figure 5.2 of P. Kar's thesis (2013), beside the numbers printed there.

    GRISTMILL_DATA=folder python benchmarks/paper_similarity.py OUT [--quick]

reads the data sets from GRISTMILL_DATA and writes tables.md, results.json and the pictures to OUT.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gristmill import (
    Gaussian,
    LandmarkClassifier,
    LandmarkOrdinal,
    LandmarkPairClassifier,
    LandmarkRegressor,
    Manhattan,
    Sigmoid,
    SparseLandmarkRegressor,
    goodness,
)

#: (kernel regression, RegLand-Sp or ORLand) as printed, for the sigmoid and the Manhattan similarity
PRINTED_51 = {
    "abalone": {"sigmoid": (2.1e-2, 6.2e-3), "manhattan": (1.7e-2, 6.0e-3)},
    "bodyfat": {"sigmoid": (4.6e-4, 9.5e-5), "manhattan": (3.9e-4, 3.5e-5)},
    "cadata": {"sigmoid": (5.9e-2, 1.6e-2), "manhattan": (5.8e-2, 1.5e-2)},
    "cpusmall": {"sigmoid": (4.1e-2, 1.4e-3), "manhattan": (4.3e-2, 1.2e-3)},
    "puma8nh": {"sigmoid": (2.3e-1, 1.4e-2), "manhattan": (2.3e-1, 1.4e-2)},
    "winequality-red": {"sigmoid": (0.68, 0.42), "manhattan": (0.67, 0.45)},
    "winequality-white": {"sigmoid": (0.62, 0.89), "manhattan": (0.62, 0.49)},
}
#: accuracies as printed, for 30 and 300 landmarks
PRINTED_41 = {
    "aural-sonar": {"BBS": (0.82, 0.88), "DBOOST": (0.81, 0.85), "FTUNE+D-S": (0.80, 0.85)},
    "voting": {"BBS": (0.95, 0.97), "DBOOST": (0.94, 0.97), "FTUNE+D-S": (0.94, 0.97)},
    "protein": {"BBS": (0.98, 0.98), "DBOOST": (1.00, 0.99), "FTUNE+D-S": (0.98, 0.98)},
}
PRINTED_42 = {
    "cod-rna": {"BBS": (0.93, 0.94), "DBOOST": (0.89, 0.93), "FTUNE-S": (0.93, 0.94)},
    "nursery": {"BBS": (0.91, 0.93), "DBOOST": (0.91, 0.97), "FTUNE-S": (0.90, 0.96)} | {"FTUNE-M": (0.90, 0.97)},
    "usps": {},
}


# ---- data --------------------------------------------------------------------------------------------------


def home() -> Path:
    folder = os.environ.get("GRISTMILL_DATA")
    if not folder:
        raise SystemExit("set GRISTMILL_DATA to the folder of the data sets")
    return Path(folder)


def read_csv(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns as numbers (words as one column a value) and the last column as it stands."""
    with lzma.open(home() / f"{name}.csv.xz", "rt") as file:
        cells = [line.rstrip("\n").split(",") for line in file][1:]
    columns = list(zip(*cells, strict=True))
    blocks = []
    for column in columns[:-1]:
        try:
            blocks.append(np.array(column, dtype=float)[:, None])
        except ValueError:
            values = np.unique(column)
            blocks.append((np.array(column)[:, None] == values).astype(float))
    return np.hstack(blocks), np.array(columns[-1])


def read_libsvm(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    with lzma.open(home() / f"{name}.libsvm.xz", "rb") as file:
        X, y = load_svmlight_file(file)
    return X.toarray(), y


def mean_and_spread(values: list[float]) -> list[float]:
    return [float(np.mean(values)), float(np.std(values))]


# ---- chapter 5: regression ---------------------------------------------------------------------------------


def kernel_regression(similarity: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """sum_i y_i K(x, x_i) / sum_i K(x, x_i), the baseline of the thesis; NaN where the weights cancel."""
    weights = similarity(new, X)
    total = weights.sum(axis=1)
    return np.divide(weights @ y, total, out=np.full(len(new), np.nan), where=total != 0)


def split_51(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """60 % to train on, at most 5,000; the others to test."""
    order = rng.permutation(len(X))
    cut = int(0.6 * len(X))
    return order[: min(cut, 5000)], order[cut:]


def regression_data(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = read_csv(name)
    y = y.astype(float)
    if name == "bodyfat":  # the thesis predicts the density, with the percentage among the inputs
        return np.column_stack([X[:, 1:], y]), X[:, 0]
    return X, (y - y.min()) / (y.max() - y.min())


def similarities(X: np.ndarray) -> dict[str, Any]:
    return {"sigmoid": Sigmoid(gamma=1.0 / X.shape[1], coef0=-1.0), "manhattan": Manhattan()}


def best_of(make: Callable[[float], Any], X: Any, y: Any, loss: Callable[[Any, Any], float]) -> Any:
    """The model whose C does best on a fifth held out, fitted again on everything."""
    cut = len(X) * 4 // 5
    costs = (1.0, 10.0, 100.0, 1000.0)
    scores = [loss(make(C).fit(X[:cut], y[:cut]).predict(X[cut:]), y[cut:]) for C in costs]
    return make(costs[int(np.argmin(scores))]).fit(X, y)


def mse(said: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean((said - truth) ** 2))


def aae(said: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean(np.abs(said - truth)))


def table_51a(names: list[str], splits: int, landmarks: int = 50) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name in names:
        X, y = regression_data(name)
        found: dict[str, dict[str, list[float]]] = {}
        for seed in range(splits):
            train, test = split_51(X, np.random.default_rng(seed))
            Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
            for kind, similarity in similarities(X).items():
                row = found.setdefault(kind, {m: [] for m in ("constant", "KR", "RegLand", "RegLand-Sp")})
                row["constant"].append(mse(np.full(len(test), y[train].mean()), y[test]))
                row["KR"].append(mse(kernel_regression(similarity, Z[train], y[train], Z[test]), y[test]))
                dense = best_of(
                    lambda C, s=similarity, r=seed: LandmarkRegressor(s, landmarks, C=C, random_state=r),
                    Z[train],
                    y[train],
                    mse,
                )
                row["RegLand"].append(mse(dense.predict(Z[test]), y[test]))
                sparse = SparseLandmarkRegressor(similarity, landmarks, 500, random_state=seed)
                row["RegLand-Sp"].append(mse(sparse.fit(Z[train], y[train]).predict(Z[test]), y[test]))
        table[name] = {kind: {m: mean_and_spread(v) for m, v in row.items()} for kind, row in found.items()}
        print("5.1a", name, table[name], flush=True)
    return table


def ordinal_data(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = read_csv(name)
    y = y.astype(float)
    if name.startswith("wine"):
        return X, (y - y.min() + 1).astype(int)
    edges = np.quantile(y, np.linspace(0, 1, 11)[1:-1])
    return X, np.unique(np.searchsorted(edges, y, side="right"), return_inverse=True)[1] + 1


def table_51b(names: list[str], splits: int, landmarks: int = 50) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name in names:
        X, y = ordinal_data(name)
        labels = list(range(1, int(y.max()) + 1))
        found: dict[str, dict[str, list[float]]] = {}
        for seed in range(splits):
            train, test = split_51(X, np.random.default_rng(seed))
            Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
            for kind, similarity in similarities(X).items():
                row = found.setdefault(kind, {m: [] for m in ("constant", "KR", "ORLand", "ORLand learned")})
                row["constant"].append(aae(np.full(len(test), np.median(y[train])), y[test]))
                said = kernel_regression(similarity, Z[train], y[train], Z[test])
                row["KR"].append(aae(np.clip(np.round(said), 1, labels[-1]), y[test]))
                for method, thresholds in (("ORLand", "equal"), ("ORLand learned", "learned")):
                    model = best_of(
                        lambda C, s=similarity, r=seed, t=thresholds, a=labels: LandmarkOrdinal(
                            s, landmarks, thresholds=t, C=C, labels=a, random_state=r
                        ),
                        Z[train],
                        y[train],
                        aae,
                    )
                    row[method].append(aae(model.predict(Z[test]), y[test]))
        table[name] = {kind: {m: mean_and_spread(v) for m, v in row.items()} for kind, row in found.items()}
        print("5.1b", name, table[name], flush=True)
    return table


def figure_52(names: list[str], splits: int, sizes: list[int]) -> dict[str, Any]:
    """Error against the number of landmarks, for the dense and the sparse regressor (sigmoid similarity)."""
    curves: dict[str, Any] = {}
    for name in names:
        X, y = regression_data(name)
        rows: dict[str, list[list[float]]] = {m: [] for m in ("RegLand", "RegLand-Sp", "RegLand-Sp, reg")}
        constants = []
        for seed in range(splits):
            train, test = split_51(X, np.random.default_rng(seed))
            Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
            similarity = similarities(X)["sigmoid"]
            constants.append(mse(np.full(len(test), y[train].mean()), y[test]))
            models = {
                "RegLand": lambda d, s=similarity, r=seed: LandmarkRegressor(s, d, C=100.0, random_state=r),
                "RegLand-Sp": lambda d, s=similarity, r=seed: SparseLandmarkRegressor(s, d, 500, random_state=r),
                "RegLand-Sp, reg": lambda d, s=similarity, r=seed: SparseLandmarkRegressor(
                    s, d, 500, reg=1e-5, random_state=r
                ),
            }
            for method, make in models.items():
                errors = [mse(make(d).fit(Z[train], y[train]).predict(Z[test]), y[test]) for d in sizes]
                rows[method].append(errors)
        curves[name] = {m: np.mean(r, axis=0).tolist() for m, r in rows.items()}
        curves[name] |= {"sizes": sizes, "constant": float(np.mean(constants))}
        print("5.2", name, curves[name], flush=True)
    return curves


def prediction_time(name: str = "cpusmall") -> dict[str, Any]:
    """The sparse regressor against the smallest dense one that is not worse; best times of five."""
    X, y = regression_data(name)
    train, test = split_51(X, np.random.default_rng(0))
    Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    similarity = similarities(X)["sigmoid"]
    sparse = SparseLandmarkRegressor(similarity, 15, 500, random_state=0).fit(Z[train], y[train])
    goal = mse(sparse.predict(Z[test]), y[test])
    for landmarks in (15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 400, 500):
        dense = LandmarkRegressor(similarity, landmarks, C=100.0, random_state=0).fit(Z[train], y[train])
        if mse(dense.predict(Z[test]), y[test]) <= goal:
            break
    seconds = {}
    for label, model in (("sparse", sparse), ("dense", dense)):
        runs = []
        for _ in range(5):
            begin = time.perf_counter()
            model.predict(Z[test])
            runs.append(time.perf_counter() - begin)
        seconds[label] = min(runs)
    return {
        "data": name,
        "sparse": {"landmarks": sparse.n_landmarks_, "mse": goal},
        "dense": {"landmarks": dense.n_landmarks_, "mse": mse(dense.predict(Z[test]), y[test])},
        "dense / sparse similarities": dense.n_landmarks_ / sparse.n_landmarks_,
        "dense / sparse time": seconds["dense"] / seconds["sparse"],
    }


# ---- chapter 4: classification -----------------------------------------------------------------------------


def value_difference(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Value difference metric of words, from the labels of the training objects only, as a matrix."""
    classes = np.unique(y)
    total = np.zeros((len(X), len(X)))
    for column in X.T:
        values, codes = np.unique(column, return_inverse=True)
        shares = np.array(
            [[np.sum((codes[train] == v) & (y[train] == c)) for c in classes] for v in range(len(values))],
            dtype=float,
        )
        shares = (shares + 0.5) / (shares + 0.5).sum(axis=1, keepdims=True)
        gaps = ((shares[:, None, :] - shares[None, :, :]) ** 2).sum(axis=2)
        total += gaps[np.ix_(codes, codes)]
    return np.sqrt(total)


def matrix_data(name: str) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """A similarity matrix, possibly of the training objects' labels, and the labels."""
    if name == "voting":
        with lzma.open(home() / "voting.csv.xz", "rt") as file:
            cells = np.array([line.rstrip("\n").split(",") for line in file][1:])
        X, y = cells[:, :-1], cells[:, -1]

        def metric(train: np.ndarray) -> np.ndarray:
            distances = value_difference(X, y, train)
            return 1.0 - distances / distances.max()

        return metric, y
    matrix, y = read_csv(f"sim-{name}")
    similarity = 1.0 - matrix / matrix.max() if name == "protein" else matrix
    return (lambda train: similarity), y


def classifiers(similarity: Any, landmarks: int, validation: float, seed: int, chapter: str) -> dict[str, Any]:
    shared = {"validation": validation, "random_state": seed}
    pair = {"n_landmarks": landmarks, **shared}
    methods = {
        "BBS": LandmarkClassifier(similarity, landmarks, C="tune", **shared),
        "DBOOST": LandmarkPairClassifier(similarity, transfer="sign", solver="boost", **pair),
        "FTUNE-S": LandmarkPairClassifier(similarity, **pair),
    }
    if chapter == "4.1":
        methods["BBS+D"] = LandmarkClassifier(similarity, landmarks, "diverse", C="tune", **shared)
        methods["FTUNE+D-S"] = LandmarkPairClassifier(similarity, selection="diverse", **pair)
    else:
        methods["FTUNE-M"] = LandmarkPairClassifier(similarity, per_class=True, **pair)
    return methods


def table_41(names: list[str], runs: int) -> dict[str, Any]:
    """70 % train, 10 % validation, 20 % test, on similarity matrices."""
    table: dict[str, Any] = {}
    for name in names:
        make, y = matrix_data(name)
        found: dict[str, dict[str, list[float]]] = {"30": {}, "300": {}}
        for seed in range(runs):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
            matrix = make(train)
            for size, row in found.items():
                for method, model in classifiers("precomputed", int(size), 0.125, seed, "4.1").items():
                    model.fit(matrix[np.ix_(train, train)], y[train])
                    right = model.score(matrix[np.ix_(test, train)], y[test])
                    row.setdefault(method, []).append(right)
        table[name] = {size: {m: mean_and_spread(v) for m, v in row.items()} for size, row in found.items()}
        print("4.1", name, table[name], flush=True)
    return table


def vector_data(name: str, limit: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "usps":
        parts = [read_csv("usps-train"), read_csv("usps-test")]
        X, y = np.vstack([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    elif name == "cod-rna":
        X, y = read_libsvm("cod-rna")
        X, first = np.unique(X, axis=0, return_index=True)  # rows that occur twice would leak
        y = y[first]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    else:
        X, y = read_csv(name)
    keep = np.random.default_rng(0).permutation(len(X))[:limit]
    return X[keep], y[keep]


def table_42(names: list[str], runs: int, limit: int) -> dict[str, Any]:
    """50 % train, 20 % validation, 30 % test, with a Gaussian as wide as the mean training distance."""
    from scipy.spatial.distance import pdist

    table: dict[str, Any] = {}
    for name in names:
        X, y = vector_data(name, limit)
        found: dict[str, dict[str, list[float]]] = {"30": {}, "300": {}}
        for seed in range(runs):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: int(0.7 * len(y))], order[int(0.7 * len(y)) :]
            width = float(pdist(X[train[:1500]]).mean())
            for size, row in found.items():
                models = classifiers(Gaussian(1.0 / (2.0 * width**2)), int(size), 2 / 7, seed, "4.2")
                if len(np.unique(y)) == 2:
                    models.pop("FTUNE-M")  # one problem only: the same as FTUNE-S
                for method, model in models.items():
                    row.setdefault(method, []).append(model.fit(X[train], y[train]).score(X[test], y[test]))
        table[name] = {size: {m: mean_and_spread(v) for m, v in row.items()} for size, row in found.items()}
        print("4.2", name, table[name], flush=True)
    return table


# ---- writing -----------------------------------------------------------------------------------------------


def number(pair: list[float], accuracy: bool) -> str:
    return f"{pair[0]:.2f} ({pair[1]:.2f})" if accuracy else f"{pair[0]:.2g} ({pair[1]:.1g})"


def table_lines(title: str, first: list[str], rows: list[tuple[list[str], dict[str, str]]]) -> list[str]:
    """A Markdown table: the names in front, then one column for each key met."""
    columns = list(dict.fromkeys(key for _, cells in rows for key in cells))
    lines = [f"## {title}", "", "| " + " | ".join(first + columns) + " |"]
    lines.append("|" + "---|" * (len(first) + len(columns)))
    lines += ["| " + " | ".join(names + [cells.get(c, "-") for c in columns]) + " |" for names, cells in rows]
    return [*lines, ""]


def rows_51(table: dict[str, Any], ours: str, comparable: Callable[[str], bool]) -> list[Any]:
    rows = []
    for name, kinds in table.items():
        for kind, row in kinds.items():
            cells = {m: number(v, accuracy=False) for m, v in row.items()}
            if comparable(name):
                was = PRINTED_51[name][kind]
                cells |= {"thesis KR": f"{was[0]:.2g}", f"thesis {ours}": f"{was[1]:.2g}"}
            rows.append(([name, kind], cells))
    return rows


def rows_4(table: dict[str, Any], printed: dict[str, Any]) -> list[Any]:
    rows = []
    for name, sizes in table.items():
        for place, (size, row) in enumerate(sizes.items()):
            was = {m: f" [{v[place]:.2f}]" for m, v in printed[name].items()}
            rows.append(([name, size], {m: number(v, accuracy=True) + was.get(m, "") for m, v in row.items()}))
    return rows


def markdown(results: dict[str, Any]) -> str:
    pair = ["data", "similarity"]
    rows = rows_51(results["table_51a"], "RegLand-Sp", lambda name: True)
    lines = table_lines("Table 5.1a, mean squared error, 50 landmarks", pair, rows)
    rows = rows_51(results["table_51b"], "ORLand", lambda name: name.startswith("wine"))
    lines += table_lines("Table 5.1b, mean absolute error, 50 landmarks", pair, rows)
    pair = ["data", "landmarks"]
    rows = rows_4(results["table_41"], PRINTED_41)
    lines += table_lines("Table 4.1, accuracy on similarity matrices [thesis]", pair, rows)
    rows = rows_4(results["table_42"], PRINTED_42)
    lines += table_lines("Table 4.2, accuracy with a Gaussian similarity [thesis]", pair, rows)
    took = json.dumps(results["prediction_time"], indent=1)
    return "\n".join([*lines, "## Prediction time at equal error", "", "```", took, "```", ""])


def draw(results: dict[str, Any], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = results["figure_52"]
    size = (4 * len(curves), 3.2)
    figure, axes = plt.subplots(1, len(curves), figsize=size, layout="constrained", squeeze=False)
    for ax, (name, curve) in zip(axes[0], curves.items(), strict=True):
        ax.plot(curve["sizes"], curve["RegLand"], "o-", label="RegLand")
        ax.plot(curve["sizes"], curve["RegLand-Sp"], "s-", label="RegLand-Sp, of 500")
        ax.plot(curve["sizes"], curve["RegLand-Sp, reg"], "^-", label="the same, reg=1e-5")
        ax.axhline(curve["constant"], color="0.6", linestyle="--", label="constant")
        ax.set(title=name, xlabel="landmarks", xscale="log", yscale="log", ylabel="mean squared error")
        ax.set_xticks(curve["sizes"], [str(s) for s in curve["sizes"]])
        ax.minorticks_off()
    axes[0][0].legend(frameon=False)
    figure.savefig(out / "figure_5_2.png", dpi=120)
    plt.close(figure)


def draw_goodness(out: Path) -> dict[str, Any]:
    """Two similarities for abalone's classes and for a matrix, compared before any training."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    X, y = regression_data("cpusmall")
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    found = {}
    for kind, similarity in similarities(X).items():
        report = goodness(similarity, Z, y, task="regression", B=(0.3, 1, 3, 10, 30, 100), random_state=0)
        report.plot(axes[0])
        axes[0].get_legend_handles_labels()[0][-1].set_label(kind)
        found[f"cpusmall {kind}"] = [report.epsilon, *report.interval]
    axes[0].legend(frameon=False)
    axes[0].set_title("cpusmall, regression")
    make, labels = matrix_data("aural-sonar")
    report = goodness("precomputed", make(np.arange(len(labels))), labels, random_state=0)
    report.plot(axes[1])
    axes[1].set_title("aural sonar, classification")
    found["aural-sonar"] = [report.epsilon, *report.interval]
    figure.savefig(out / "goodness.png", dpi=120)
    plt.close(figure)
    return found


def main(out: str | Path, quick: bool = False) -> dict[str, Any]:
    """Run everything; returns what results.json holds."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    regression = ["abalone", "bodyfat", "cadata", "cpusmall", "puma8nh"]
    ordinal = ["winequality-red", "winequality-white", "abalone", "cadata", "cpusmall", "puma8nh"]
    matrices, vectors = ["aural-sonar", "voting", "protein"], ["nursery", "cod-rna", "usps"]
    sizes = [5, 10, 20, 50, 100, 200]
    names, splits, runs, limit = None, 5, 20, 6000
    if quick:
        names, splits, runs, limit, sizes = 1, 2, 2, 1500, [10, 50]
    results: dict[str, Any] = {
        "table_41": table_41(matrices[:names], runs),
        "table_51a": table_51a(regression[:names], splits),
        "figure_52": figure_52(["abalone", "cadata", "cpusmall"][:names], min(splits, 3), sizes),
        "prediction_time": prediction_time(),
        "goodness": draw_goodness(folder),
        "table_51b": table_51b(ordinal[:names], splits),
        "table_42": table_42(vectors[:names], min(splits, 3), limit),
    }
    draw(results, folder)
    (folder / "results.json").write_text(json.dumps(results, indent=1))
    (folder / "tables.md").write_text(markdown(results))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="folder for the tables and pictures")
    parser.add_argument("--quick", action="store_true", help="a small part of everything")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
