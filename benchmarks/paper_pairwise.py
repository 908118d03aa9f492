"""The experiments of chapter 6 again: AUC against buffer size, metric learning for k-NN, mixtures of kernels.

    GRISTMILL_DATA=folder python benchmarks/paper_pairwise.py out

reads the data sets from the folder, writes `pairwise_auc.png`, `pairwise.md` and `pairwise.json` to `out`.
Protocol of the figures: 60 % of the points to train, at most 20000, one pass; z-scores; hinge; step sizes
over decades by a hold-out fifth of the training points; five random splits, one standard deviation as error
bar.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gristmill import (
    OAM,
    Gaussian,
    Linear,
    Normalized,
    PairwiseAUC,
    PairwiseMetric,
    Polynomial,
    ReservoirX,
    TwoStageMKL,
)

SETS = (
    "heart", "diabetes", "german", "ionosphere", "fourclass", "svmguide1", "breast-cancer", "spambase",
    "cod-rna", "a9a", "ijcnn1",
)  # fmt: skip
SIZES = (4, 10, 20, 50, 100, 200)
RATES = tuple(10.0**k for k in range(-3, 3))
STEPS = tuple(10.0**k for k in range(-6, 1))
SPLITS = 5


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A data set of two classes by its name: rows, and labels as they are."""
    home = Path(os.environ["GRISTMILL_DATA"])
    sparse = home / f"{name}.libsvm.xz"
    if sparse.exists():
        from sklearn.datasets import load_svmlight_file

        with lzma.open(sparse) as file:
            X, y = load_svmlight_file(file)
        return X.toarray(), y
    with lzma.open(home / f"{name}.csv.xz", "rt") as file:
        rows = [line.strip().split(",") for line in file][1:]
    y = np.array([row[-1] for row in rows])
    first = 1 if name == "breast-cancer" else 0  # its first column is a sample number
    return np.array([row[first:-1] for row in rows], dtype=float), y


def split(X: np.ndarray, y: np.ndarray, seed: int, most: int = 20_000) -> tuple[np.ndarray, ...]:
    """60 % to train in random order, as z-scores of the training part."""
    order = np.random.default_rng(seed).permutation(len(X))
    cut = min(int(0.6 * len(X)), most)
    train, test = order[:cut], order[int(0.6 * len(X)) :]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - mean) / np.where(spread > 0, spread, 1.0)
    return Z[train], y[train], Z[test], y[test]


def auc(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y == model.classes_[1], model.decision_function(X)))


def tuned(make: Any, grid: tuple[float, ...], X: np.ndarray, y: np.ndarray) -> Any:
    """The value of the grid with the best AUC on a hold-out fifth, learned again on all."""
    cut = int(0.8 * len(X))
    scores = []
    for value in grid:
        try:
            scores.append(auc(make(value).fit(X[:cut], y[:cut]), X[cut:], y[cut:]))
        except ValueError:  # diverged, or a hold-out of one class
            scores.append(0.0)
    return make(grid[int(np.argmax(scores))]).fit(X, y)


def olp(size: int, seed: int, average: bool, rate: float) -> PairwiseAUC:
    return PairwiseAUC(buffer=ReservoirX(size), rate=rate, average=average, random_state=seed)


def oam(size: int, seed: int, C: float) -> OAM:
    return OAM("gra", C=C, size=size, random_state=seed)


def auc_curves(name: str) -> dict[str, Any]:
    X, y = read(name)
    results: dict[str, list[list[float]]] = {"OLP": [], "OLP, averaged": [], "OAM_gra": []}
    batch: dict[str, list[float]] = {"LogisticRegression": [], "LinearSVC": []}
    for seed in range(SPLITS):
        Xa, ya, Xb, yb = split(X, y, seed)
        rows: dict[str, list[float]] = {key: [] for key in results}
        for size in SIZES:
            makers = {
                "OLP": (partial(olp, size, seed, False), RATES),
                "OLP, averaged": (partial(olp, size, seed, True), RATES),
                "OAM_gra": (partial(oam, size, seed), STEPS),
            }
            for key, (make, grid) in makers.items():
                rows[key].append(auc(tuned(make, grid, Xa, ya), Xb, yb))
        for key in results:
            results[key].append(rows[key])
        for key, value in batch_scores(Xa, ya, Xb, yb).items():
            batch[key].append(value)
    shape = {"points": len(X), "features": X.shape[1], "trained on": min(int(0.6 * len(X)), 20_000)}
    return {"shape": shape, "curves": results, "batch": batch}


def batch_scores(Xa: np.ndarray, ya: np.ndarray, Xb: np.ndarray, yb: np.ndarray) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    return {
        "LogisticRegression": auc(LogisticRegression(max_iter=1000).fit(Xa, ya), Xb, yb),
        "LinearSVC": auc(LinearSVC(C=0.1, dual=False).fit(Xa, ya), Xb, yb),
    }


def draw(curves: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 4, figsize=(15, 10), layout="constrained")
    for axis, (name, result) in zip(axes.flat, curves.items(), strict=False):
        for k, (key, marker) in enumerate((("OLP", "o"), ("OLP, averaged", "s"), ("OAM_gra", "^"))):
            values = np.array(result["curves"][key])
            places = np.array(SIZES) * 1.04 ** (k - 1)  # side by side, so that the bars can be told apart
            axis.errorbar(places, values.mean(0), values.std(0), marker=marker, capsize=3, label=key, lw=1.2, ms=4)
        line = np.mean(result["batch"]["LogisticRegression"])
        axis.axhline(line, color="gray", ls="--", lw=1, label="LogisticRegression, batch")
        axis.set(title=f"{name} ({result['shape']['trained on']} x {result['shape']['features']})", xscale="log")
        axis.set_xticks(SIZES, [str(s) for s in SIZES], minor=False)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("test AUC")
    for axis in axes[-1]:
        axis.set_xlabel("points in the buffer")
    for axis in list(axes.flat)[len(curves) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    list(axes.flat)[-1].legend(handles, labels, loc="center", frameon=False, fontsize=12)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def pixels(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Images in random order, centred, mean squared distance 2; and the training size."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(seed)
    if name == "usps, 40 components":
        (Xa, ya), (Xb, yb) = read("usps-train"), read("usps-test")
        X, y, cut = np.vstack([Xa, Xb]), np.concatenate([ya, yb]), len(Xa)
        order = np.concatenate([rng.permutation(cut), np.arange(cut, len(X))])
        X, y = X[order], y[order]
        X = PCA(40, random_state=0).fit(X[:cut]).transform(X)
    else:
        X, y = load_digits(return_X_y=True)
        order, cut = rng.permutation(len(X)), 1200
        X, y = X[order] / 16.0, y[order]
        if name == "digits and 40 features of noise":
            X = np.hstack([X, 0.7 * rng.normal(size=(len(X), 40))])
    X = X - X[:cut].mean(axis=0)
    return X / np.sqrt(np.mean(np.sum(X[:cut] ** 2, axis=1))), y, cut


def neighbours(name: str) -> dict[str, list[float]]:
    """3-NN accuracy by Euclid's distance and after one pass of metric learning, tuned by hold-out."""
    from sklearn.neighbors import KNeighborsClassifier

    found: dict[str, list[float]] = {"before": [], "after": []}
    for seed in range(3):
        X, y, cut = pixels(name, seed)
        hold = int(0.8 * cut)

        def accuracy(Z: np.ndarray, last: int, end: int, y: np.ndarray = y) -> float:
            return float(KNeighborsClassifier(3).fit(Z[:last], y[:last]).score(Z[last:end], y[last:end]))

        def learned(how: tuple[str, float], last: int, seed: int = seed, X: Any = X, y: Any = y) -> np.ndarray:
            model = PairwiseMetric(rate=how[1], init=how[0], random_state=seed).fit(X[:last], y[:last])
            return model.transform(X)

        grid = [(init, rate) for init in ("identity", "zero") for rate in (0.01, 0.1, 1.0, 10.0, 100.0)]
        tried = [accuracy(learned(how, hold), hold, cut) for how in grid]
        best = grid[int(np.argmax(tried))]
        found["before"].append(accuracy(X, cut, len(X)))
        found["after"].append(accuracy(learned(best, cut), cut, len(X)))
    return found


def mixtures(name: str) -> dict[str, float]:
    """Test accuracy of an SVC with each base kernel and with the learned mixtures; C by hold-out."""
    from sklearn.svm import SVC

    X, y = read(name)
    scores: dict[str, list[float]] = {}
    for seed in range(SPLITS):
        Xa, ya, Xb, yb = split(X, y, seed, most=3000)
        width = Xa.shape[1]
        base: list[Any] = [Gaussian(2.0**k / width) for k in (-4, -2, 0, 2, 4)]
        base += [
            Normalized(Linear()),
            Normalized(Polynomial(2, 1.0 / width)),
            Normalized(Polynomial(3, 1.0 / width)),
        ]
        cut = int(0.8 * len(Xa))

        def accuracy(
            kernel: Any, last: int, Xa: Any = Xa, ya: Any = ya, Xb: Any = Xb, yb: Any = yb, cut: int = cut
        ) -> tuple[float, float]:
            """Hold-out accuracy and test accuracy at the C that is best on the hold-out."""
            gram, rest = kernel(Xa), kernel(Xb, Xa)
            tried = []
            for C in (0.1, 1.0, 10.0, 100.0):
                svc = SVC(kernel="precomputed", C=C).fit(gram[:cut, :cut], ya[:cut])
                tried.append((svc.score(gram[cut:, :cut], ya[cut:]), -C))
            held, C = max(tried)
            return held, SVC(kernel="precomputed", C=-C).fit(gram, ya).score(rest, yb)

        singles = [accuracy(kernel, cut) for kernel in base]
        found = {
            "best single kernel (hold-out)": max(singles)[1],
            "best single kernel (in hindsight)": max(test for _, test in singles),
            "worst single kernel": min(test for _, test in singles),
            "uniform mixture": accuracy(sum(base[1:], base[0]), cut)[1],
        }
        for constraint in ("simplex", "l2"):
            model = TwoStageMKL(base, constraint=constraint, rate=0.1, average=True, random_state=seed).fit(Xa, ya)
            found[f"TwoStageMKL, {constraint}"] = accuracy(model.kernel_, cut)[1]
        for key, value in found.items():
            scores.setdefault(key, []).append(float(value))
    return {key: [float(np.mean(v)), float(np.std(v))] for key, v in scores.items()}


def report(result: dict[str, Any]) -> str:
    def shown(values: Any) -> str:
        return f"{np.mean(values):.4f} +- {np.std(values):.4f}"

    lines = ["# Test AUC after one pass, five splits", ""]
    lines += ["| data | algorithm | " + " | ".join(f"s = {s}" for s in SIZES) + " | LogisticRegression | LinearSVC |"]
    lines += ["|" + "---|" * (len(SIZES) + 4)]
    for name, one in result["auc"].items():
        for key, values in one["curves"].items():
            cells = [shown(np.array(values)[:, k]) for k in range(len(SIZES))]
            ends = [shown(v) for v in one["batch"].values()] if key == "OLP" else ["", ""]
            lines.append("| " + " | ".join([name if key == "OLP" else "", key, *cells, *ends]) + " |")
    lines += ["", "# 3-NN accuracy before and after online metric learning", ""]
    keys = list(next(iter(result["metric"].values())))
    lines += ["| data | " + " | ".join(keys) + " |", "|" + "---|" * (len(keys) + 1)]
    for name, one in result["metric"].items():
        lines.append("| " + " | ".join([name, *(shown(one[k]) for k in keys)]) + " |")
    lines += ["", "# SVC accuracy with single kernels and learned mixtures", ""]
    names = list(result["mkl"])
    lines += ["| kernel | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    for key in next(iter(result["mkl"].values())):
        cells = [f"{result['mkl'][n][key][0]:.4f} +- {result['mkl'][n][key][1]:.4f}" for n in names]
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(out: str | Path, sets: tuple[str, ...] = SETS) -> dict[str, Any]:
    """Run everything and write picture, table and numbers to the folder `out`."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"auc": {}, "metric": {}, "mkl": {}}
    for name in sets:
        result["auc"][name] = auc_curves(name)
        print(
            name,
            {k: np.mean(v, axis=0).round(4).tolist() for k, v in result["auc"][name]["curves"].items()},
            flush=True,
        )
    draw(result["auc"], folder / "pairwise_auc.png")
    for name in ("digits", "usps, 40 components", "digits and 40 features of noise"):
        result["metric"][name] = neighbours(name)
        print(name, result["metric"][name], flush=True)
    for name in ("ionosphere", "german"):
        result["mkl"][name] = mixtures(name)
        print(name, result["mkl"][name], flush=True)
    (folder / "pairwise.md").write_text(report(result))
    (folder / "pairwise.json").write_text(json.dumps(result, indent=1))
    return result


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out")
