"""Several models become one (`merge`), and one model becomes smaller (`compress`).

Imports every kind of learner that can be merged. Begin with `merge.py` and `compression.py`.
"""

from .merge import merge

__all__ = ["merge"]
