"""Learning without labels on a stream, in bounded memory: `KernelPCA` and `KernelKMeans` over stored points.

Imports `_base`, kernels and budgets. Begin with `span.py`, the stored points, then `core.py`, the loop.
"""

from .kmeans import KernelKMeans
from .pca import KernelPCA

__all__ = ["KernelKMeans", "KernelPCA"]
