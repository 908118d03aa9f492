"""`Prepared`: a table encoder, a scaler, relevance weights and a target scaler in front of one learner.

Imports `learners` and `streams`; races and fleets use it. Begin with `prepared.py`, then `pipeline.py`.
"""

from .prepared import Prepared

__all__ = ["Prepared"]
