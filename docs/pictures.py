"""Make the pictures of the documents. Those of the papers need the data home (GRISTMILL_DATA)."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

from gristmill import (
    DropOldest,
    DropRandom,
    Gaussian,
    KernelClassifier,
    Perceptron,
    passive_aggressive,
    reproduce,
)
from gristmill.commands.run import line_up
from gristmill.evaluate import BudgetDisplay, PrequentialDisplay, compare
from gristmill.streams import drifting_digits

HERE = Path(__file__).parent / "pictures"


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(HERE / f"{name}.png", dpi=100)
    plt.close(figure)
    print(HERE / f"{name}.png")


def main() -> None:
    HERE.mkdir(exist_ok=True)
    comparison = compare(line_up(0), drifting_digits())
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.0, 4.2), layout="constrained")
    PrequentialDisplay.from_results(comparison).plot(left)
    kernel = Gaussian(0.0015)
    families = {
        "Perceptron, newest": lambda size: KernelClassifier(kernel, Perceptron(), DropOldest(size)),
        "Perceptron, random": lambda size: KernelClassifier(kernel, Perceptron(), DropRandom(size), random_state=0),
        "PA-I, heaviest": lambda size: passive_aggressive(kernel, C=0.3, size=size),
    }
    BudgetDisplay.from_builders(families, [30, 60, 100, 200, 300, 600], drifting_digits()).plot(right)
    left.set_title("gristmill run: 50,000 digits under a turning camera")
    right.set_title("what memory buys on the same stream")
    save(figure, "run")
    for target in reproduce.TARGETS:
        outcome = reproduce.run(target)
        save(outcome.figures[0][0], target)
        (HERE / f"{target}.txt").write_text(outcome.text() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
