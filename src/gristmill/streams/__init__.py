"""Streams: one protocol (chunks of X, y with names) over memory, files, pipes and generators."""

from .chunks import Chunk, Stream, as_stream, from_arrays
from .digits import drifting_digits

__all__ = ["Chunk", "Stream", "as_stream", "drifting_digits", "from_arrays"]
