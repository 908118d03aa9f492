"""Draw the first picture of the README and the pages: `python docs/_scripts/first_picture.py` writes pictures/first.png."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_moons

from gristmill import DropOldest, Gaussian, KernelClassifier, PassiveAggressive, Unbounded

MOMENTS = (1000, 3000, 5000)
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"


def learner(budget: object) -> KernelClassifier:
    """The same kernel and rule, whatever is kept."""
    return KernelClassifier(Gaussian(2.0), PassiveAggressive(C=0.5), budget)


def turning_crescents(n_events: int) -> tuple[np.ndarray, np.ndarray]:
    """Two crescents that hold each other and turn once round: half-way each lies where the other was."""
    X, labels = make_moons(n_events, noise=0.17, random_state=0)
    X = (X - X.mean(axis=0)) * [1.0, 1.3]
    angle = np.linspace(0, 2 * np.pi, n_events)
    turned = [np.cos(angle) * X[:, 0] - np.sin(angle) * X[:, 1], np.sin(angle) * X[:, 0] + np.cos(angle) * X[:, 1]]
    return np.column_stack(turned), 2 * labels - 1


def draw_moment(axes: plt.Axes, model: KernelClassifier, X: np.ndarray, y: np.ndarray, event: int) -> None:
    """The last events, the border that the model draws between the classes, and the points it has stored."""
    recent = slice(max(event - 250, 0), event)
    across, up = np.meshgrid(np.linspace(-2.2, 2.2, 200), np.linspace(-2.2, 2.2, 200))
    scores = model.decision_function(np.column_stack([across.ravel(), up.ravel()])).reshape(across.shape)
    axes.contourf(across, up, scores > 0, levels=[-0.5, 0.5, 1.5], cmap=ListedColormap(["#fbe3d4", "#d5e8f4"]))
    axes.contour(across, up, scores, levels=[0.0], colors="black", linewidths=1.2)
    for label, colour in ((-1, ORANGE), (1, BLUE)):
        chosen = y[recent] == label
        axes.plot(*X[recent][chosen].T, ".", color=colour, markersize=4, alpha=0.7)
    axes.plot(*model.support_vectors_.T, "o", markerfacecolor="none", markeredgecolor="black", markersize=6, alpha=0.7)
    axes.set(xlim=across[0, [0, -1]], ylim=up[[0, -1], 0], xticks=[], yticks=[], aspect="equal")
    axes.set_title(f"after {event:,} events: {model.n_support_} points", fontsize=10)


def main() -> None:
    """Follow one stream with two learners, and draw."""
    X, y = turning_crescents(6000)
    bounded, unbounded = learner(DropOldest(80)), learner(Unbounded())
    figure = plt.figure(figsize=(12.6, 3.0), layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.7])
    begin, wrong = 0, []
    for ax, event in zip(axes, (*MOMENTS, len(y)), strict=True):
        wrong.append((bounded.prequential(X[begin:event], y[begin:event]) >= 0) != (y[begin:event] > 0))
        begin = event
        if event in MOMENTS:
            draw_moment(ax, bounded, X, y, event)
    everything = (unbounded.prequential(X, y) >= 0) != (y > 0)
    window = np.ones(600) / 600
    curves = {
        f"keeps everything: {unbounded.n_support_} points": (everything, ORANGE),
        f"keeps {bounded.n_support_} points": (np.concatenate(wrong), GREEN),
    }
    for label, (mistakes, colour) in curves.items():
        axes[3].plot(
            np.arange(600, len(y) + 1), 100 * np.convolve(mistakes, window, "valid"), color=colour, label=label
        )
    axes[3].set(xlabel="event", ylim=(0, None))
    axes[3].set_title("errors in percent, over the last 600 events", fontsize=10)
    axes[3].spines[["top", "right"]].set_visible(False)
    axes[3].legend(frameon=False, fontsize=9)
    figure.savefig(Path(__file__).parent.parent / "results" / "pictures" / "first.png", dpi=110)


if __name__ == "__main__":
    main()
