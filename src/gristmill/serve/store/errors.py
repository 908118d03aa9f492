"""What the service refuses: each error has the status of its HTTP answer."""

from __future__ import annotations

import re
from typing import Any

_PLACE = re.compile(r"\brow (?P<row>\d+)(?:, column (?P<quote>['\"])(?P<column>.*?)(?P=quote))?")


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

    def body(self) -> dict[str, Any]:
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
    details: dict[str, Any] = {"row": row}
    if column is not None:
        details["column"] = column
    if batch is not None and row < batch.count:
        details["value"] = batch.label(row) if column is None else batch.value(row, column)
    return ServiceError(text, **details)
