"""
Online classification of handwritten digits
===========================================

The 1,797 digits of scikit-learn, as a stream: each digit is predicted first, then learned. `AutoClassifier` gets the raw
pixels, without the number of classes and the scale of the columns.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from gristmill import AutoClassifier
from gristmill.evaluate import compare
from gristmill.streams import from_arrays

X, y = load_digits(return_X_y=True)
learners = {"AutoClassifier": AutoClassifier(random_state=0), "SGDClassifier": SGDClassifier(random_state=0)}
stream = replace(from_arrays(X, y, rows=100), classes=tuple(range(10)))  # scikit-learn wants to know the classes
results = compare(learners, stream, window=200)
for result in results:
    print(f"{result.name:15} error {result.metrics['error']:.3f}, last 200 {result.rolling['error']:.3f}")

# %%
# scikit-learn's linear learner is tested on each chunk of 100 digits before it learns the chunk.

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for result in results:
    events = [entry["event"] for entry in result.curve]
    axes.plot(events, [entry["rolling_error"] for entry in result.curve], "o-", label=result.name)
axes.set(xlabel="digits seen", ylabel="error over the last 200", ylim=(0, None))
axes.legend()
plt.show()
