"""Streams: one protocol (chunks of X, y with names) over memory, files, pipes and generators; scaling on the way.

Imports kernels and `_common`; everything that learns from files uses it. Begin with `stream.py` and `read.py`.
"""

from .brokers import connect
from .digits import drifting_digits
from .errors import BadRows, StreamError
from .files.columns import Columns
from .files.json_lines import from_rows
from .generators import drifting_mixture, rotating_hyperplane, sea, silk_sequence, switching_mixture, two_gaussians
from .read import read
from .relevance import RelevanceScaler
from .scaling import StreamScaler, WidthFinder
from .stream import Chunk, Stream, as_stream, from_arrays
from .tables.cells import CellError
from .tables.table import Table

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
