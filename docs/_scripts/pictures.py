"""Make the pictures of the documents, from the root of the checkout: `python -m docs._scripts.pictures`, or some of them by
their names (`run`, `answers`, `norma-2`, ...).

Those of the papers need the data home (GRISTMILL_DATA).
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import papers
from gristmill import (
    SGD,
    DropOldest,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Perceptron,
    Squared,
)
from gristmill.cli.run import line_up
from gristmill.evaluate import (
    ExplanationDisplay,
    IntervalDisplay,
    PrequentialDisplay,
    ReliabilityDisplay,
    compare,
    prequential,
)
from gristmill.evaluate.run_report import draw_stored
from gristmill.streams import drifting_digits

HERE = Path(__file__).parent.parent / "results" / "pictures"


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(HERE / f"{name}.png", dpi=100)
    plt.close(figure)
    small(HERE / f"{name}.png")
    print(HERE / f"{name}.png")


def small(path: Path) -> None:
    """The same picture with a palette of 96 colours, which is enough for lines: a third of the size."""
    with Image.open(path) as picture:
        flat = picture.convert("RGB").quantize(96)
    flat.save(path, optimize=True)


def demonstration() -> plt.Figure:
    """What `gristmill run --report` draws: the error of each learner, and the points that it keeps."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(13.0, 4.6), layout="constrained")
    comparison = compare(line_up(0), drifting_digits(20_000, random_state=0))
    PrequentialDisplay.from_results(comparison).plot(left)
    draw_stored(right, comparison)
    return figure


def answers() -> plt.Figure:
    """The picture of the page of answers: intervals over a break, how sure and how right, drift, and why."""
    rng = np.random.default_rng(0)
    figure, axes = plt.subplots(2, 2, figsize=(12.0, 8.6), layout="constrained")
    X = np.tile(np.linspace(-2, 2, 250), 12)[:, None]
    y = np.sin(2 * X[:, 0]) + np.where(np.arange(3000) < 2750, 0.1, 0.4) * rng.normal(size=3000)
    smooth = KernelRegressor(Gaussian(2.0), SGD(Squared(), rate=0.1))
    IntervalDisplay.from_estimator(smooth, X, y).plot(axes[0, 0])
    X = rng.normal(size=(8000, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=8000) > 0, "yes", "no")
    model = KernelClassifier(Gaussian(1.0)).fit(X[:4000], y[:4000])
    ReliabilityDisplay.from_estimator(model, X[4000:], y[4000:]).plot(axes[0, 1])
    turned = np.where(np.arange(8000) < 4000, X[:, 0] > 0, X[:, 0] <= 0)
    learner = KernelClassifier(Gaussian(1.0), Perceptron(), DropOldest(100))
    PrequentialDisplay.from_results(prequential(learner, (X, turned), window=200)).plot(axes[1, 0])
    ExplanationDisplay.from_estimator(model, [0.4, 0.3], top=8).plot(axes[1, 1])
    return figure


def main(names: list[str]) -> None:
    HERE.mkdir(exist_ok=True)
    drawn = {"run": demonstration, "answers": answers}
    for name in names or [*drawn, *papers.TARGETS]:
        if name in drawn:
            save(drawn[name](), name)
            continue
        outcome = papers.run(name)
        save(outcome.figures[0][0], name)
        for animation, _ in outcome.animations:
            (HERE / f"{name}.gif").write_bytes(animation)
        (HERE / f"{name}.txt").write_text(outcome.text() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
