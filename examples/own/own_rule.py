"""
A rule of your own in ten lines
===============================

A rule receives one event and its score, and returns one step. Here is a Perceptron that also learns from correct
predictions with a small margin, with steps that become smaller over time. It works with all kernels, budgets and methods of
the library.
"""

import matplotlib.pyplot as plt

from gristmill import DropOldest, Gaussian, KernelClassifier, Perceptron
from gristmill.evaluate import PrequentialDisplay, compare
from gristmill.rules import Step
from gristmill.streams import drifting_digits


class CarefulPerceptron:
    """Learns whenever the margin is below 0.1, not only from mistakes."""

    def __call__(self, trial):
        if trial.label * trial.score > 0.1:
            return None  # nothing changes
        return Step(coefficient=trial.label * trial.weight / trial.step**0.25)


results = compare(
    {
        "Perceptron": KernelClassifier(Gaussian(0.0015), Perceptron(), DropOldest(300)),
        "careful Perceptron": KernelClassifier(Gaussian(0.0015), CarefulPerceptron(), DropOldest(300)),
    },
    drifting_digits(n_events=10_000),
)
for result in results:
    print(f"{result.name:18} error {result.metrics['error']:.4f}, last thousand {result.rolling['error']:.4f}")

# %%
# A rule in Python costs one call per event. If that is too slow it can be moved to C++; CONTRIBUTING.md shows how.

PrequentialDisplay.from_results(results).plot()
plt.show()
