"""
Strings by their edit distance
==============================

Which language does a name come from? The only information is a distance between two strings; it is not a kernel, and
there are no vectors. A few names become landmarks, and every name is represented by its distances to them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from gristmill import LandmarkClassifier

PARTS = {
    "Finnish": (["Ka", "Vi", "Jo", "Ma"], ["rja", "kko", "tti", "ni"], ["lainen", "nen", "la", "mäki"]),
    "Italian": (["Gi", "Fran", "Lo", "Ma"], ["ce", "ren", "ri", "ssa"], ["sco", "ni", "lli", "etti"]),
    "Polish": (["Ko", "Wi", "Sta", "Ma"], ["wal", "śnie", "wan", "rzy"], ["ski", "wicz", "czyk", "cki"]),
}


def edit_distance(a, b):
    """Fewest insertions, deletions and substitutions from a to b, over the length of the longer one."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return row[-1] / max(len(a), len(b))


def names(count, rng):
    """Made-up surnames of one language each: a beginning, one or two middles, an ending, letters mistyped."""
    for language in rng.choice(list(PARTS), count):
        first, middle, last = PARTS[language]
        name = rng.choice(first) + "".join(rng.choice(middle, rng.integers(1, 3))) + rng.choice(last)
        letters = list(name)
        letters[:: len(name) // 2] = rng.choice(list("aeiknorst"), len(letters[:: len(name) // 2]))
        yield "".join(letters), language


words, languages = map(list, zip(*names(700, np.random.default_rng(0)), strict=True))
model = LandmarkClassifier(edit_distance, n_landmarks=40, C=10.0, distance=True, random_state=0)
model.fit(words[:400], languages[:400])
print(f"{model.n_evaluations_} distances, not {400 * 400}")
print(f"{model.score(words[400:], languages[400:]):.3f} of new names right")
print("for instance:", words[400], model.predict(words[400:401])[0])

# %%
figure, axes = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ConfusionMatrixDisplay.from_estimator(model, words[400:], languages[400:], ax=axes, colorbar=False, cmap="Blues")
plt.show()
