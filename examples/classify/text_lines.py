"""
Text classification, line by line
=================================

From which text is this line? scikit-learn carries a description of each of its data sets, and each line of one is a sample.
`Prepared` hashes the words of a column of kind ``text`` into sparse columns. No vocabulary has to be fitted first.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine

from gristmill import Linear, Prepared, passive_aggressive

loaders = {"breast cancer": load_breast_cancer, "diabetes": load_diabetes, "iris": load_iris}
loaders |= {"linnerud": load_linnerud, "wine": load_wine}
lines = [(line, name) for name, load in loaders.items() for line in load().DESCR.splitlines() if len(line.split()) > 3]
order = np.random.default_rng(0).permutation(len(lines))
texts, labels = map(np.array, zip(*(lines[place] for place in order), strict=True))

model = Prepared(passive_aggressive(Linear(), C=0.1, size=300), columns={"line": "text"}, scale=None)
scores = model.prequential({"line": texts}, labels)  # of each line before it was learned
right = model.classes_[scores.argmax(axis=1)] == labels
names, counts = np.unique(labels, return_counts=True)
print(f"{len(texts)} lines; the most frequent text has {counts.max() / len(texts):.2f} of them")
print(f"right among the last hundred: {right[-100:].mean():.2f}")
print("attributes of flowers:", model.predict_one({"line": "sepal length and petal width in cm"}))

# %%
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot(np.convolve(right, np.ones(50) / 50, "valid"))
axes.set(xlabel="line", ylabel="right, mean of 50", ylim=(0, 1))
plt.show()
