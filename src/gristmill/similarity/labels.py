"""Class labels as codes, for the landmark classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .. import persist
from .._common.inputs import refuse_masked
from .._common.labels import label_array
from .._common.types import Fields, FileFields, Fitted, Labels, Numbers, Table
from .model import check_same_length


def class_labels(name: str, X: Table, y: Any) -> Numbers:
    """One label an object, checked."""
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None")
    refuse_masked(y, "y")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"Input y contains NaN or infinity: row {row} is {y[row]}")
    check_classification_targets(y)
    check_same_length(X, y)
    return np.asarray(y)


def class_codes(name: str, X: Table, y: Labels) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
    """The classes, sorted, and each object's place among them; one class only is refused."""
    classes, codes = np.unique(class_labels(name, X, y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{name} needs objects of two classes at least, and y has 1 class: {classes.tolist()}")
    return classes, codes.astype(np.int64)


class LabelMixin:
    """`classes_` in the model file."""

    classes_: npt.NDArray[Any]

    def saved_fields(self) -> FileFields:
        arrays, fitted = super().saved_fields()  # type: ignore[misc]
        return arrays, {**fitted, "labels": persist.encode_labels(self.classes_.tolist())}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        self.classes_ = label_array(sorted(persist.decode_labels(fitted["labels"])))
        super().restore_fields(arrays, fitted)  # type: ignore[misc]
