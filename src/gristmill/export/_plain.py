"""What a model is, in plain numbers: everything that an exported file has to hold, and nothing of how it was learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.types import Json

Floats = npt.NDArray[np.float64]
#: one node of a kernel in postfix order: (operation, left, right, n, a, b)
Node = tuple[str, int, int, int, float, float]
#: one coordinate of an additive kernel: (order of the spline or -1, gamma, column, other column, weight)
Coordinate = tuple[int, float, int, int | None, float]

#: the coverages of the intervals that are exported
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
#: beyond so many standard deviations a scaled value is drawn in
FAR = 5.0


class ExportError(ValueError):
    """A model, or a part of one, that the wanted format cannot express; the message names the part and what would work.

    Examples
    --------
    >>> from gristmill import KernelClassifier
    >>> from gristmill.export import ExportError, to_json
    >>> try:
    ...     to_json(KernelClassifier())
    ... except ExportError as error:
    ...     print(len(str(error)) > 20)
    True
    """


# ---- rows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, booleans or times (seconds since 1970), and its place in the rows."""

    name: str
    kind: str  # number, boolean, time
    place: int
    fill: float  # for a missing value, in the unit of the rows
    first: float  # of a time: the day that counts as 0
    missing: int  # place of its flag; -1: none


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: a place in the rows for each value."""

    name: str
    values: dict[str, int]
    other: int  # place of all further values; -1: they are all zeros
    missing: int


@dataclass(frozen=True)
class Scaling:
    """(x - centre) / spread, drawn in beyond five where `soft_clips`, times `weights`; a number a column of the rows."""

    centre: Floats
    spread: Floats
    soft_clips: bool
    weights: Floats | None = None


@dataclass(frozen=True)
class RankMaps:
    """Normal scores of ranks, times `weights`: a row of knots and their scores for each column that is scaled.

    A value between two knots lies as far between their scores. One beyond the ends lies l / (1 + l / 2) farther than
    the outer score, where l = log(1 + distance / unit). Rows are filled up with their last knot. A column of which
    `scaled` is 0 stays as it is; one with `scaled` 1 and units of 0 has had one value only and is scaled to 0.
    """

    scaled: Floats  # (width,)
    knots: Floats  # (width, most knots of a column)
    scores: Floats
    low_unit: Floats  # (width,)
    high_unit: Floats
    weights: Floats | None = None


@dataclass(frozen=True)
class Rows:
    """How the inputs become the rows that the experts see."""

    width: int
    table: tuple[NumberColumn | CategoryColumn, ...] | None = None  # None: the inputs are the rows
    fills: Floats | None = None  # of rows that are the inputs: what stands for a missing value
    scaling: Scaling | RankMaps | None = None
    unknown: tuple[str, ...] = ()  # columns of the table without any value so far, which say nothing


# ---- functions of a row -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expansion:
    """sum_i coefs_i k(points_i, x), an output a column of `coefs`."""

    program: tuple[Node, ...]
    points: Floats
    coefs: Floats


@dataclass(frozen=True)
class Neighbours:
    """How near the nearest stored points are, beside how near those were to theirs; `neighbours.hpp` has the formula."""

    program: tuple[Node, ...]
    points: Floats
    reaches: Floats  # NaN where it is not known
    count: int  # of neighbours


@dataclass(frozen=True)
class AdditiveExpansion:
    """sum_i coefs_i sum_c k_c(points_i, x) with kernels of one coordinate each."""

    coordinates: tuple[Coordinate, ...]
    points: Floats
    coefs: Floats
    skips_missing: bool


@dataclass(frozen=True)
class MaclaurinFactor:
    """One factor of the first so many features of a map."""

    real: Floats  # (width, features)
    imaginary: Floats | None = None


@dataclass(frozen=True)
class MaclaurinFeatures:
    """Features that are products of projections, and their weights: a random Maclaurin map and a linear function.

    The features are, in this order: a constant, the inputs times a factor (each where it is not 0), the real features, and
    the real and then the imaginary parts of the complex ones.
    """

    width: int
    constant: float
    linear: float
    real_weights: Floats
    real_levels: tuple[MaclaurinFactor, ...]
    pair_weights: Floats
    pair_levels: tuple[MaclaurinFactor, ...]
    coefs: Floats  # (features, outputs)


@dataclass(frozen=True)
class FourierFeatures:
    """factor cos(x frequencies + phases), and weights: a random Fourier map and a linear function."""

    frequencies: Floats  # (width, features)
    phases: Floats
    factor: float
    coefs: Floats


@dataclass(frozen=True)
class LinearFunction:
    """A straight line: (x - origin) weights."""

    weights: Floats
    origin: Floats


@dataclass(frozen=True)
class Constant:
    """The same answer to everything; it is all in the intercept."""


Body = Expansion | Neighbours | AdditiveExpansion | MaclaurinFeatures | FourierFeatures | LinearFunction | Constant


@dataclass(frozen=True)
class Expert:
    """Scores of rows: intercept + body, (events, outputs)."""

    body: Body
    intercept: Floats
    scaling: Scaling | RankMaps | None = None
    single: bool = False  # the library computes its kernel in single precision
    target: tuple[float, float] | None = None  # centre and spread that its scores are measured by


# ---- from scores to answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibration:
    """Probabilities: sigmoid, or softmax, over slope * score * unit + offset."""

    slope: float
    unit: float
    offsets: Floats


@dataclass(frozen=True)
class Component:
    """What an expert says in a mixture: its scores, or the probabilities that a calibration makes of them."""

    expert: int
    weight: float
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Mixture:
    """A weighted mean of components; the weights add up to 1."""

    components: tuple[Component, ...]


@dataclass(frozen=True)
class NoveltyMixture:
    """Densities of several detectors as one score: see `core/mixture/novelty_mixture.hpp`."""

    middles: Floats  # of the logarithms of the last densities, one a detector
    spreads: Floats  # NaN: too few events
    scores: Floats  # of the last events, sorted
    level: float  # logarithm of the share of alarms
    reach: float
    begins: float


@dataclass(frozen=True)
class Detector:
    """The sample, trees and thresholds of `AutoNovelty`: see `core/novelty/detector.hpp`."""

    centre: Floats  # of each column
    unit: Floats  # one over its spread; 0 for a column with one value only
    step: float  # of a stored number, in spreads
    limit: float  # the largest stored number
    codes: Floats  # stored events as whole numbers, a row each
    usual: Floats  # mean distance of each from its nearest
    tree_columns: Floats  # (trees, 127): of a node with children 2 i + 1 and 2 i + 2; -1: a leaf
    tree_splits: Floats  # (trees, 127): larger numbers go to the second child
    tree_paths: Floats  # (trees, 255): length of the path that ends in a node, as a share of the mean
    middles: Floats  # of each view
    spreads: Floats
    scores: Floats  # of the last events, sorted
    level: float  # logarithm of the share of alarms
    reach: float
    begins: float


@dataclass(frozen=True)
class Description:
    """A model as a file can hold it."""

    kind: str
    task: str  # classification, regression, novelty
    names: tuple[str, ...]  # of the input columns
    rows: Rows
    experts: tuple[Expert, ...]
    outputs: int
    mixture: Mixture | NoveltyMixture | Detector | None = None  # None: there is one expert
    labels: tuple[Any, ...] = ()  # in the order of the outputs
    calibration: Calibration | None = None
    target: tuple[Floats, Floats] | None = None  # centre and spread of each target
    half_widths: Floats | None = None  # half widths of the intervals, (targets, levels)
    offset: float = 0.0  # of a novelty score: subtracted
    check_inputs: Json = field(default_factory=dict)  # one value a column
    check: Json = field(default_factory=dict)  # what the model answers to it
    seen: int = 0

    @property
    def order(self) -> list[int]:
        """The outputs in the order of the sorted labels."""
        return sorted(range(len(self.labels)), key=self.labels.__getitem__)

    @property
    def sign(self) -> float:
        """Of the score of two classes: positive means the second of the sorted labels."""
        return -1.0 if self.order == [1, 0] else 1.0
