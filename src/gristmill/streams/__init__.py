"""Streams: one protocol (chunks of X, y with names) over memory, files, pipes and generators."""

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
