"""Streams: one protocol (chunks of X, y with names) over memory, files, pipes and generators."""

from .brokers import connect
from .cells import CellError
from .chunks import Chunk, Stream, as_stream, from_arrays
from .columns import Columns
from .digits import drifting_digits
from .generators import (
    drifting_mixture,
    rotating_hyperplane,
    sea,
    silk_sequence,
    switching_mixture,
    two_gaussians,
)
from .json_lines import from_rows
from .read import read
from .relevance import RelevanceScaler
from .scaling import StreamScaler, WidthFinder
from .source import BadRows, StreamError
from .table import Table

__all__ = [
    "BadRows",
    "CellError",
    "Chunk",
    "Columns",
    "RelevanceScaler",
    "Stream",
    "StreamError",
    "StreamScaler",
    "Table",
    "WidthFinder",
    "as_stream",
    "connect",
    "drifting_digits",
    "drifting_mixture",
    "from_arrays",
    "from_rows",
    "read",
    "rotating_hyperplane",
    "sea",
    "silk_sequence",
    "switching_mixture",
    "two_gaussians",
]
