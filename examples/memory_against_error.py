"""
What memory buys
================

A budget is a hard limit on stored points. How much error does each point save, and does it matter which points
are dropped? Three budgets at seven sizes, on handwritten digits seen by a slowly turning camera.
"""

import matplotlib.pyplot as plt

from gristmill import DropOldest, DropRandom, Gaussian, KernelClassifier, Perceptron, passive_aggressive
from gristmill.evaluate import BudgetDisplay
from gristmill.streams import drifting_digits

stream = drifting_digits(n_events=10_000)
kernel = Gaussian(0.0015)
families = {
    "Perceptron, keeps the newest": lambda size: KernelClassifier(kernel, Perceptron(), DropOldest(size)),
    "Perceptron, drops at random": lambda size: KernelClassifier(
        kernel, Perceptron(), DropRandom(size), random_state=0
    ),
    "PA-I, keeps the heaviest": lambda size: passive_aggressive(kernel, C=0.3, size=size),
}
display = BudgetDisplay.from_builders(families, [25, 50, 100, 200, 400, 800], stream)
for name, points in display.points.items():
    print(f"{name:29}", ", ".join(f"{stored}: {error:.3f}" for stored, error in points))

# %%
# A few hundred points are enough here; after that more memory buys little. The camera turns, so the Perceptron does better
# with its newest points than with random ones; from 200 points on the passive-aggressive learner leads.

display.plot()
plt.show()
