"""
Explain a prediction: columns that matter
=========================================

scikit-learn's breast cancer data have thirty columns. `scale="relevance"` learns which of them matter, along the
stream, and `explain` shows the stored samples behind one prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from gristmill import KernelClassifier, Laplacian, Merge, Prepared
from gristmill.evaluate import ExplanationDisplay

data = load_breast_cancer()
columns = {name: column for name, column in zip(data.feature_names, data.data.T, strict=True)}
labels = data.target_names[data.target]
for scale in ("standard", "relevance"):
    model = Prepared(KernelClassifier(Laplacian(0.03), budget=Merge(200)), scale=scale)
    scores = model.prequential(columns, labels)  # of each sample before it was learned
    error = (model.classes_[(scores >= 0).astype(int)] != labels).mean()
    print(f"scale={scale!r}: error {error:.3f}")
order = np.argsort(model.relevance_)[::-1]
for place in order[:3]:
    print(f"{data.feature_names[place]}: relevance {model.relevance_[place]:.2f}")

# %%
sample = {name: column[0] for name, column in columns.items()}
print(str(model.explain(sample, top=3)))

# %%
ExplanationDisplay.from_estimator(model, sample).plot()
plt.show()
