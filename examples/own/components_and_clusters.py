"""
Components and clusters of a stream
===================================

A ring around a disc, learned in chunks: kernel k-means separates the two, and the first component of kernel PCA does, too.
"""

# %%
# 2,000 samples; the learners get them in chunks of 100 and store 60 of them.
import matplotlib.pyplot as plt
import numpy as np

from gristmill import Gaussian, Merge
from gristmill.unsupervised import KernelKMeans, KernelPCA

rng = np.random.default_rng(0)
ring = rng.random(2000) < 0.5
radius, angle = np.where(ring, 3.0, 0.0) + 0.3 * rng.normal(size=2000), rng.uniform(0, 2 * np.pi, size=2000)
X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
clusters = KernelKMeans(2, Gaussian(0.4), Merge(60), random_state=0)
components = KernelPCA(2, Gaussian(0.4), Merge(60))
for start in range(0, len(X), 100):
    clusters.partial_fit(X[start : start + 100])
    components.partial_fit(X[start : start + 100])

# %%
# The numbers of the clusters are arbitrary.
found = clusters.predict(X)
right = max((found == ring).mean(), (found != ring).mean())
print(f"samples in the right cluster: {right:.3f}")
print(f"variance explained by two components: {components.explained_variance_ratio_.sum():.3f}")

# %%
figure, (left, other) = plt.subplots(1, 2, figsize=(9, 4))
left.scatter(*X.T, c=found, s=4)
left.scatter(*clusters.support_vectors_.T, c="red", s=12, label="stored points")
left.set_title("clusters")
left.legend(loc="upper right")
other.scatter(*components.transform(X).T, c=ring, s=4)
other.set(title="ring and disc", xlabel="first component", ylabel="second component")
figure.tight_layout()
plt.show()
