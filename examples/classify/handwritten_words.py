"""
Handwritten words
=================

A word is a sequence of scikit-learn's digits with noise, and a digit is mostly followed by one of three others. The words
are read with `Sequences` and Viterbi's search, with and without the transitions between digits.
"""

# %%
# Words of five digits. The label of a word is the tuple of its digits.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gristmill import DropSmallest, Gaussian, StructuredLearner
from gristmill.structured import Sequences

rng = np.random.default_rng(0)
images, digits = load_digits(return_X_y=True)
followers = [rng.permutation(10)[:3] for _ in range(10)]
X, y = [], []
for _ in range(800):
    word = [int(rng.integers(10))]
    while len(word) < 5:
        word.append(int(rng.choice(followers[word[-1]]) if rng.random() < 0.9 else rng.integers(10)))
    rows = [rng.choice(np.flatnonzero(digits == digit)) for digit in word]
    X.append(images[rows] / 16 + 0.3 * rng.normal(size=(5, 64)))
    y.append(tuple(word))


# %%
# The cost of a wrong word is the number of its wrong digits; at most 300 words are stored.
def hamming(word, other):
    return float(sum(a != b for a, b in zip(word, other, strict=True)))


errors = {}
for transitions, name in ((0.0, "digit by digit"), (0.1, "with transitions")):
    model = StructuredLearner(
        Sequences(Gaussian(0.1), transitions), labels=list(range(10)), cost=hamming, budget=DropSmallest(300)
    )
    read = model.prequential(X, y)
    wrong = np.array([hamming(word, found) / 5 for word, found in zip(y, read, strict=True)])
    errors[name] = np.convolve(wrong, np.ones(100) / 100, "valid")
    print(f"digits wrong in the last 400 words, {name}: {wrong[400:].mean():.3f}")

# %%
figure, (ax, below) = plt.subplots(2, 1, height_ratios=(3, 1))
for name, curve in errors.items():
    ax.plot(curve, label=name)
ax.set(xlabel="word", ylabel="wrong digits, last 100 words")
ax.legend()
below.imshow(np.hstack(X[-1].reshape(5, 8, 8)), cmap="gray_r")
below.set_title(f"{y[-1]} is read as {read[-1]}")
below.axis("off")
figure.tight_layout()
plt.show()
