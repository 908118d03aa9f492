"""Accuracy and time of gristmill beside River and scikit-learn: docs/results/pictures/peers.png, and its table in Markdown.

    python -m benchmarks.streams -t classification
    python docs/_scripts/peers_picture.py bench-results

The first command measures and stores the records that this script reads.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).resolve().parent.parent / "results" / "pictures" / "peers.png"
STREAMS = [
    "elec2",
    "Phishing",
    "ImageSegments",
    "RandomRBFDrift",
    "Agrawal",
    "ijcnn1",
    "nursery",
    "spambase",
    "cod-rna",
]
LEARNERS = {  # stored name -> name in the picture, colour, offset of the label in points
    "autoclassifier": ("AutoClassifier", "#0072b2", (10, 12)),
    "kernelclassifier": ("KernelClassifier", "#56b4e9", (-6, 12)),
    "river-linear": ("River, logistic regression", "#999999", (-24, -22)),
    "river-adaptive-tree": ("River, adaptive tree", "#d55e00", (0, -22)),
    "river-k-nn-1000": ("River, nearest neighbours", "#e69f00", (-97, -4)),
    "river-arf-10": ("River, adaptive random forest", "#cc79a7", (-60, 14)),
    "sklearn-nystroem-300": ("scikit-learn, Nystroem + SGD", "#009e73", (-60, -23)),
}


def records(folder: Path) -> dict[str, list[dict[str, float]]]:
    """What is stored of each learner, one record a stream."""
    return {
        name: [json.loads((folder / "streams" / stream.lower() / f"{name}.json").read_text()) for stream in STREAMS]
        for name in LEARNERS
    }


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """Error of each learner on each stream, the lowest in bold, then the means and the mean time."""
    names = [name for name, *_ in LEARNERS.values()]
    lines = ["| error | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    errors = np.array([[record["whole"] for record in rows] for rows in found.values()]).T
    for stream, row in zip([*STREAMS, "mean"], [*errors, errors.mean(axis=0)], strict=True):
        cells = [f"**{error:.3f}**" if error == row.min() else f"{error:.3f}" for error in row]
        lines.append(f"| {stream} | " + " | ".join(cell.replace("0.", ".") for cell in cells) + " |")
    times = [np.mean([record["microseconds"] for record in rows]) for rows in found.values()]
    lines.append("| *us per sample* | " + " | ".join(f"{time:,.0f}" for time in times) + " |")
    return "\n".join(lines)


def draw(found: dict[str, list[dict[str, float]]]) -> None:
    """Mean accuracy against mean time; up and left is better."""
    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    for (label, colour, offset), rows in zip(LEARNERS.values(), found.values(), strict=True):
        time = np.mean([record["microseconds"] for record in rows])
        accuracy = 100 * (1 - np.mean([record["whole"] for record in rows]))
        axes.plot(time, accuracy, "o", color=colour, markersize=11)
        axes.annotate(label, (time, accuracy), offset, textcoords="offset points", ha="center", color="black")
    axes.set(xscale="log", xlim=(0.9, 9000), ylim=(78, 97))
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.set(xlabel="microseconds per sample (logarithmic)", ylabel="accuracy in %, mean of nine streams")
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    stored = records(Path(sys.argv[1]))
    print(table(stored))
    draw(stored)
