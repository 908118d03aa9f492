"""What the service refuses: each error has the status of its HTTP answer."""

from __future__ import annotations

import math
import re
from typing import Any

from ..._common.types import Json

_PLACE = re.compile(r"\brow (?P<row>\d+)(?:, column (?P<quote>['\"])(?P<column>.*?)(?P=quote))?")
# A column of numbers that a table became, which has no name in the request.
_CELL = re.compile(r"\brow \d+, column \d+ is (?P<value>[^\s,;]+)")


class ServiceError(Exception):
    """A request that cannot be answered.

    Parameters
    ----------
    message : str
        What is wrong, and what would work.
    status : int
        The status of the HTTP answer.
    retry_after : int, optional
        Seconds after which the same request may succeed.
    details : where it is wrong
    """

    def __init__(self, message: str, status: int = 422, retry_after: int | None = None, **details: Any) -> None:
        super().__init__(message)
        self.status, self.retry_after, self.details = status, retry_after, details

    def body(self) -> Json:
        return {"error": {"status": self.status, "message": str(self), **self.details}}


class Damaged(Exception):
    """The files of a model do not fit together; the message says where.

    Parameters
    ----------
    message : str
    position : int
        The first event that cannot be read.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def refused(error: Exception, batch: Any = None) -> ServiceError:
    """An error of the library as one of the service, with the row, the column and the value that it names.

    Parameters
    ----------
    error : what the library raised
    batch : Batch, optional
        The rows of the request.
    """
    text = " ".join(str(error).split())[:2000]
    found = _PLACE.search(text)
    if found is None:
        return ServiceError(text)
    row, column = int(found["row"]), found["column"]
    details: Json = {"row": row}
    if column is not None:
        details["column"] = column
    cell = _CELL.search(text)
    if cell is not None:
        details.update(_cell(cell["value"], None if batch is None or row >= batch.count else batch.row(row)))
    elif batch is not None and row < batch.count:
        details["value"] = batch.label(row) if column is None else batch.value(row, column)
    return ServiceError(text, **details)


def _cell(text: str, row: Any) -> Json:
    """A number that the library names, and the only column of the row that holds it."""
    try:
        value = float(text)
    except ValueError:
        return {}
    names = [name for name, held in row.items() if held == value] if isinstance(row, dict) else []
    found: Json = {"value": value if math.isfinite(value) else text}
    return {"column": names[0], **found} if len(names) == 1 else found
