"""Class labels and their numbers: codes in the order of arrival, shown outside in sorted order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from .._common.types import Labels
from .inputs import refuse_masked
from .ranges import non_negative

#: types a label may have
PLAIN = {bool, int, float, str}
#: Up to so many classes, comparing a whole array with each is quicker than looking up each label.
_COMPARED = 32


class LabelView:
    """The first so many labels of a table as they are shown: sorted, with the core's column of each."""

    __slots__ = ("classes", "columns", "sign")

    def __init__(self, names: tuple[Any, ...]) -> None:
        order = sorted(range(len(names)), key=names.__getitem__)
        self.classes = label_array([names[code] for code in order])
        self.columns = order
        # The core's second class is positive; outside it is classes[1]. A single class is the negative one.
        self.sign = -1.0 if order == [1, 0] else 1.0


class LabelTable:
    """Labels in order of arrival. A table is immutable; new classes make a longer one.

    A reader uses as many labels as it has scores, so that a class which another thread adds in the meantime does not
    appear.
    """

    __slots__ = ("_views", "codes", "names")

    def __init__(self, names: Any = ()) -> None:
        self.names = tuple(names)
        self.codes = {label: code for code, label in enumerate(self.names)}
        self._views: dict[int, LabelView] = {}

    def __len__(self) -> int:
        return len(self.names)

    def extended(self, labels: Any) -> LabelTable:
        """This table, followed by the labels that it does not hold, in their order."""
        fresh = [label for label in dict.fromkeys(labels) if label not in self.codes]
        if not fresh:
            return self
        names = (*self.names, *fresh)
        if isinstance(names[0], str) != isinstance(fresh[0], str):
            raise ValueError(f"class labels must be all strings or all numbers, got {list(names)!r}")
        return LabelTable(names)

    def numbers(self, labels: Sequence[object]) -> npt.NDArray[np.float64]:
        return np.fromiter(map(self.codes.__getitem__, labels), np.float64, len(labels))

    def view(self, count: int) -> LabelView:
        found = self._views.get(count)
        if found is None:
            found = self._views[count] = LabelView(self.names[:count])
        return found


NO_LABELS = LabelTable()


def label_array(labels: list[Any]) -> npt.NDArray[np.generic]:
    """Labels as an array whose type follows from the labels alone."""
    if all(isinstance(label, str) for label in labels):
        # NumPy's strings lose zeros at their end.
        return np.array(labels, dtype=object if any(label.endswith("\0") for label in labels) else None)
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return np.array(labels, dtype=bool)
    whole = [label for label in labels if not isinstance(label, float)]
    if float in kinds:
        return np.array(labels, dtype=np.float64 if all(float(label) == label for label in whole) else object)
    if min(whole) >= -(2**63) and max(whole) < 2**63:
        return np.array(labels, dtype=np.int64)
    return np.array(labels, dtype=np.uint64 if min(whole) >= 0 and max(whole) < 2**64 else object)


def read_labels(owner: str, y: Labels, count: int) -> list[Any]:
    """One label an event, as Python's own numbers or strings; NaN, fractions and mixtures are refused."""
    if y is None:
        raise ValueError(f"This {owner} estimator requires y to be passed, but the target y is None")
    refuse_masked(y, "y")
    labels = _flat(y)
    if len(labels) != count:
        check_consistent_length(np.empty(count), np.empty(len(labels)))
    if isinstance(y, np.ndarray) and y.dtype.kind in "biu":
        return labels
    kinds = set(map(type, labels))
    if not kinds <= PLAIN:
        labels = [_plain(owner, row, label) for row, label in enumerate(labels)]
        kinds = set(map(type, labels))
    if str in kinds and len(kinds) > 1:
        raise ValueError(f"class labels must be all strings or all numbers: y holds {_kinds(labels)}")
    if float in kinds:
        _refuse_fractions(labels)
    return labels


def _flat(y: Any) -> list[object]:
    if type(y) is list and (not y or type(y[0]) in PLAIN):
        return y
    flat = all(np.ndim(label) == 0 for label in y) if isinstance(y, list | tuple) else getattr(y, "ndim", 0) == 1
    y = y if flat else column_or_1d(y, warn=True)
    return list(y.tolist()) if hasattr(y, "tolist") else list(y)


def _plain(owner: str, row: int, label: object) -> Any:
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, str):
        return str(label)
    if type(label) not in PLAIN:
        raise ValueError(f"{owner}: Unknown label type: y, row {row} is {label!r}; labels are numbers or strings")
    return label


def _kinds(labels: Sequence[object]) -> str:
    """The first string and the first number, for a message."""
    text = next(i for i, label in enumerate(labels) if isinstance(label, str))
    number = next(i for i, label in enumerate(labels) if not isinstance(label, str))
    return f"{labels[text]!r} in row {text} and {labels[number]!r} in row {number}"


def _refuse_fractions(labels: list[Any]) -> None:
    for row, label in enumerate(labels):
        if not math.isfinite(label):
            raise ValueError(f"Input y contains {'NaN' if math.isnan(label) else 'infinity'}: row {row} is {label}")
    for row, label in enumerate(labels):
        if label != int(label):
            raise ValueError(
                f"Unknown label type: continuous: row {row} is {label}. Maybe you are trying to fit a classifier, which "
                "expects discrete classes on a regression target with continuous values"
            )


def coded(
    owner: str, table: LabelTable, y: Any, count: int, classes: Any
) -> tuple[LabelTable, npt.NDArray[np.float64], int]:
    """The table after these events, the code of each, and how many classes are to be known before the first."""
    if classes is None and _is_whole(y) and len(y) == count:
        found = _compared(table, y)
        if found is not None:
            return (*found, len(table))
    labels = read_labels(owner, y, count)
    if classes is not None:
        known = read_labels(owner, classes, len(classes))
        stray = next((label for label in labels if label not in set(known)), None) if set(labels) - set(known) else None
        if stray is not None:
            raise ValueError(f"y holds the label {stray!r}, which is not in classes={list(classes)!r}")
        table = table.extended(sorted(set(known) - set(table.codes)))
    before = len(table)
    table = table.extended(labels)
    return table, table.numbers(labels), before


def _is_whole(y: Labels) -> bool:
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iu"


def _compared(table: LabelTable, y: npt.NDArray[np.generic]) -> tuple[LabelTable, npt.NDArray[np.float64]] | None:
    """`coded` of whole numbers, array by array; None where there are many classes, or names."""
    if len(table) > _COMPARED or (table.names and isinstance(table.names[0], str)):
        return None
    numbers, names = np.full(len(y), -1.0), list(table.names)
    for code, name in enumerate(names):
        np.copyto(numbers, code, where=y == name)
    while (numbers < 0).any():
        if len(names) > _COMPARED:
            return None
        name = y[(numbers < 0).argmax()].item()
        np.copyto(numbers, len(names), where=y == name)
        names.append(name)
    return table.extended(names), numbers


def checked_class_weight(owner: str, value: object) -> Any:
    """None, "balanced", or numbers >= 0 by label; everything else is refused."""
    if value is None or (isinstance(value, str) and value == "balanced"):
        return value
    if not isinstance(value, dict):
        raise ValueError(f'{owner}: class_weight must be None, "balanced" or a dict of numbers by label, got {value!r}')
    for label, weight in value.items():
        non_negative.check(owner, f"class_weight[{label!r}]", weight)
    return {_plain(owner, row, label): float(weight) for row, (label, weight) in enumerate(value.items())}


def _is_number(value: Any) -> bool:
    try:
        np.float64(value)
    except (TypeError, ValueError):
        return False
    return True


#: of a target that has a scale: a million squares of such numbers can still be added
LARGEST = 1e140


def targets(owner: str, y: Any, count: int, several: bool = False, largest: float = np.inf) -> npt.NDArray[np.float64]:
    """Numbers to be predicted, one an event (or, where they may be several, a row), all finite and not above `largest`."""
    if y is None:
        raise ValueError(f"This {owner} estimator requires y to be passed, but the target y is None")
    refuse_masked(y, "y")
    if not _are_numbers(y):
        shape = np.asarray(y).shape if several else ()
        many = len(shape) == 2 and shape[1] > 1
        y = (
            check_array(y, dtype=np.float64, ensure_all_finite=False, input_name="y")
            if many
            else column_or_1d(y, warn=True)
        )
    if len(y) != count:
        check_consistent_length(np.empty(count), y)
    try:
        numbers = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        row, shown = next((row, str(value)) for row, value in enumerate(y) if not _is_number(value))
        raise type(error)(f"{owner}: y must hold numbers, got {shown!r} in row {row}") from error
    if not np.isfinite(numbers).all():
        row, *column = (int(place[0]) for place in np.nonzero(~np.isfinite(numbers)))
        value = numbers[(row, *column)]
        where = f"row {row}, target {column[0]}" if column else f"row {row}"
        raise ValueError(f"Input y contains {'NaN' if np.isnan(value) else 'infinity'}: {where} is {value}")
    if largest < np.inf and (np.abs(numbers) > largest).any():
        place = tuple(int(at[0]) for at in np.nonzero(np.abs(numbers) > largest))
        where = f"row {place[0]}" + (f", target {place[1]}" if len(place) > 1 else "")
        raise ValueError(
            f"Input y contains a number that is too large: {where} is {numbers[place]}, and at most {largest:g} works"
        )
    return numbers


def _are_numbers(y: Labels) -> bool:
    """Whether scikit-learn's validation can be skipped: it costs more than learning a few samples."""
    if type(y) is np.ndarray:
        return y.ndim == 1 and y.dtype == np.float64
    return type(y) is list and len(y) == 1 and isinstance(y[0], float | int | np.floating)


#: relative distance that keeps the class with the largest score ahead of the others
_AHEAD = 1e-9


def agreeing(shares: Any, best: Any) -> Any:
    """Probabilities, classes in the last axis, none larger than that of the class `best`, which `predict` answers.

    A calibration with one offset a class may rank classes otherwise than their scores do. Where it does, what is larger
    than the probability of the best class is cut down to it, and the row is divided by its sum: the nearest row of
    probabilities, in the sense that only the classes that are out of order change before the division.
    """
    if shares.shape[-1] < 2:
        return shares
    best = np.asarray(best)[..., None]
    top = np.take_along_axis(shares, best, axis=-1)
    limit = top * (1 - _AHEAD)
    over = (np.where(np.arange(shares.shape[-1]) == best, 0.0, shares) > limit).any(axis=-1, keepdims=True)
    if not over.any():
        return shares
    cut = np.minimum(shares, limit)
    np.put_along_axis(cut, best, top, axis=-1)
    return np.where(over, cut / cut.sum(axis=-1, keepdims=True), shares)


def below_others(scores: Any, known: Any) -> Any:
    """Scores, a column a class in the order in which the classes came, with those of classes not yet met below all others.

    known: how many classes each row's model had met. A model that has met none says 0 of all.
    """
    known = np.broadcast_to(known, len(scores))
    late = (known > 0) & (known < scores.shape[1])
    if not late.any():
        return scores
    unmet = np.arange(scores.shape[1]) >= known[late, None]
    least = np.where(unmet, np.inf, scores[late]).min(axis=1, keepdims=True)
    scores[late] = np.where(unmet & (scores[late] >= least), least - 1.0, scores[late])
    return scores


def halves(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The one score f of two classes, in a column, as a score a class: -f/2 and f/2."""
    return np.hstack([-0.5 * scores, 0.5 * scores])


def wide(scores: Any, outputs: int) -> Any:
    """Scores widened to more classes: a binary score f becomes -f/2 and f/2, an unseen class gets 0."""
    if scores.shape[1] == 1 and outputs > 1:
        scores = halves(scores)
    return np.pad(scores, ((0, 0), (0, outputs - scores.shape[1])))
