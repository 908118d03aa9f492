"""Columns weighed by how much they move the answer: the scaling behind `Prepared(scale="relevance")`.

Columns are standardised on the way and multiplied by weights. At positions of the stream that double, the gradient of what
has been learned says how much each column moves it (the diagonal of the average gradient outer product); the weights follow,
the stored points are rescaled in place and their coefficients learned anew. Between those positions nothing changes, so that
a renewal, whose Gram matrices need memory for a moment, happens a dozen times in a life.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .scaling import StreamScaler

Floats = npt.NDArray[np.float64]

FIRST = 500  #: events before the first renewal; each later one waits for as many again
POINTS = 256  #: stored points that the gradient is taken at, and whose distances are kept; half with many outputs
PASSES = 3
LEAST = 0.05  #: of the largest weight: none is smaller
SLACK = 0.1  #: how much worse, as a share, the stored points may be told with new weights: a few errors are chance


@dataclasses.dataclass(frozen=True)
class Renewal:
    """What was found at one position of the stream."""

    position: int
    shares: Floats  #: of the mean square of the gradient by each standardised column; they add up to 1
    taken: bool  #: whether the weights followed: the stored points were told no worse with them


class RelevanceScaler:
    """Standardised columns times weights that are learned; what `Prepared` asks of a scaling, and `renew`."""

    def __init__(self, warmup: int | None = None) -> None:
        self.standard = StreamScaler("standard", warmup)
        self.weights: Floats | None = None
        self.history: tuple[Renewal, ...] = ()

    # ---- as a scaling --------------------------------------------------------------------------------------

    @property
    def n_seen_(self) -> int:
        return self.standard.n_seen_

    @property
    def n_features_in_(self) -> int:
        return int(self.standard.n_features_in_)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, where they came with any, else x0, x1, ..."""
        return [str(name) for name in self.standard.get_feature_names_out()]

    @property
    def memory_bytes(self) -> int:
        return self.standard.memory_bytes + 8 * self.n_features_in_ * (1 + len(self.history))

    def learn_transform(self, X: Any) -> Floats:
        return self._weighed(self.standard.learn_transform(X))

    def transform(self, X: Any) -> Floats:
        return self._weighed(self.standard.transform(X))

    def _weighed(self, rows: Floats) -> Floats:
        if self.weights is None:
            self.weights = np.ones(rows.shape[1])
        return rows * self.weights

    def _learn_rows(self, X: Floats) -> Floats:
        return self._weighed(self.standard._learn_rows(X))

    def _scale(self, X: Floats) -> Floats:
        return self._weighed(self.standard._scale(X))

    def _checked(self, rows: Floats) -> Floats:
        return self.standard._checked(rows)

    def _slope(self) -> Floats:
        slope: Floats = self.standard._slope() * self._known()
        return slope

    def _mark(self) -> Any:
        return self.standard._mark(), self.weights, self.history

    def _back(self, mark: Any) -> None:
        standard, self.weights, self.history = mark
        self.standard._back(standard)

    def _known(self) -> Floats:
        return np.ones(self.n_features_in_) if self.weights is None else self.weights

    # ---- relevance -----------------------------------------------------------------------------------------

    def room(self) -> int:
        """Events until the next renewal, which comes right after the last of them."""
        position = FIRST
        while position <= self.n_seen_:
            position *= 2
        return position - self.n_seen_

    @property
    def shares(self) -> Floats:
        """How much of the gradient's mean square is each column's; alike before anything is known."""
        return self.history[-1].shares if self.history else np.full(self.n_features_in_, 1 / self.n_features_in_)

    def renew(self, model: Any) -> None:
        """New weights from what the model has learned, if they tell its stored points no worse."""
        core, old = model._engine, self._known()
        points, order = core.points()
        count = min(len(order), POINTS if core.outputs == 1 else POINTS // 2)
        if count < 2:
            return
        sample = np.ascontiguousarray(points[[order[place * len(order) // count] for place in range(count)]])
        shares = _shares(core.gradient(sample)[0] * old)
        if shares is None:
            return
        fresh = _weights(shares)
        spread = _Spread(model.kernel_)
        before, after = spread(sample), spread(sample * (fresh / old))
        if not (before > 0 and after > 0):
            return
        fresh = fresh * (before / after)
        _, _, taken = core.renew(fresh / old, PASSES, SLACK)
        if taken:
            self.weights = fresh
        self.history = (*self.history, Renewal(self.n_seen_, shares, taken))

    def _affine(self) -> tuple[Floats, Floats]:
        return self.standard._affine()[0], self._slope()

    @staticmethod
    def _merged(scalers: list[RelevanceScaler], shares: Floats) -> RelevanceScaler:
        """One scaling of all that these have seen; the weights of columns are averaged."""
        merged = RelevanceScaler(scalers[0].standard.warmup)
        merged.standard = StreamScaler._merged([one.standard for one in scalers])
        merged.weights = np.asarray(shares @ np.array([one._known() for one in scalers]))
        if any(one.history for one in scalers):
            found = np.asarray(shares @ np.array([one.shares for one in scalers]))
            merged.history = (Renewal(merged.n_seen_, found, True),)
        return merged

    # ---- part of a model file (persist.py) -----------------------------------------------------------------

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, fitted = self.standard._to_file()
        shares = np.array([found.shares for found in self.history]).reshape(-1, self.n_features_in_)
        fitted["renewals"] = [[found.position, found.taken] for found in self.history]
        return {**arrays, "relevance_weights": self._known(), "relevance_shares": shares}, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        self.standard._from_file(arrays, fitted)
        weights = np.asarray(arrays["relevance_weights"], dtype=np.float64)
        shares = np.asarray(arrays["relevance_shares"], dtype=np.float64)
        marks = [(int(position), bool(taken)) for position, taken in fitted["renewals"]]
        whole = np.isfinite(weights).all() and (weights > 0).all() and np.isfinite(shares).all()
        if weights.shape != (self.n_features_in_,) or shares.shape != (len(marks), self.n_features_in_) or not whole:
            raise ValueError("its relevance is damaged")
        self.weights = weights.copy()
        self.history = tuple(Renewal(*mark[:1], row.copy(), mark[1]) for mark, row in zip(marks, shares, strict=True))


def _shares(gradient: Floats) -> Floats | None:
    """Shares of the columns in the mean square of (points, outputs, columns); None where there is nothing to share."""
    squares = gradient.reshape(-1, gradient.shape[-1])
    # Row after row, then exactly: the order does not depend on the machine.
    by_column = np.add.reduce(squares * squares, axis=0)
    total = math.fsum(by_column)
    return by_column / total if 0 < total < math.inf else None


def _weights(shares: Floats) -> Floats:
    """The root of shares that are tempered, so that a drift finds no column gone: share^(11/16), by roots alone.

    A root is rounded alike on every machine; a power is not.
    """
    half = np.sqrt(len(shares) * shares)
    eighth = np.sqrt(np.sqrt(half))
    weights = np.sqrt(half * eighth * np.sqrt(eighth))
    return np.maximum(weights, LEAST * weights.max())


class _Spread:
    """The median distance of points, as their kernel measures it: by coordinates, or straight."""

    def __init__(self, kernel: Any) -> None:
        from ..kernels import Manhattan, SquaredEuclidean

        self.by_coordinates = any(node[0] in ("laplacian", "manhattan") for node in kernel._program())
        self._distance = Manhattan() if self.by_coordinates else SquaredEuclidean()

    def __call__(self, points: Floats) -> float:
        pairs = -self._distance(points, points)[np.triu_indices(len(points), k=1)]
        median = float(np.median(pairs))
        return median if self.by_coordinates else math.sqrt(max(median, 0.0))


# ---- learning ------------------------------------------------------------------------------------------------------


def refuse(model: Any) -> None:
    """Raise for a learner whose columns cannot be weighed by what it has learned, saying why."""
    from .._base import StreamLearner
    from ..additive import is_additive
    from ..budgets import Budget, Forget, Project, Window
    from ..rules import Rule, StepSizeAdaptation

    def no(why: str) -> ValueError:
        return ValueError(f'Prepared: scale="relevance" {why}; use scale="standard"')

    if not isinstance(model, StreamLearner):
        raise no(f"needs a kernel learner such as KernelClassifier or KernelRegressor, got {model!r}")
    if model._task == "novelty":
        raise no("needs labels: what is familiar has no answer that a column could move")
    parts = model._parts()
    if is_additive(parts.kernel):
        raise no(f"is for kernels that measure all columns together, and {parts.kernel!r} learns each by itself")
    if parts.kernel is not None and not parts.kernel.is_native:
        raise no(f"needs the gradient of the kernel, and {parts.kernel!r} is a Python function")
    if parts.average:
        raise no("learns anew from the stored points, and average=True keeps the mean of all that was learned")
    if not isinstance(parts.budget, Budget) or isinstance(parts.budget, Window | Forget | Project):
        raise no(f"learns anew from the stored points, which {parts.budget!r} does not allow")
    if not isinstance(parts.rule, Rule) or isinstance(parts.rule, StepSizeAdaptation):
        raise no(f"begins its rule anew, which {parts.rule!r} does not allow")


def learn(scaling: RelevanceScaler, model: Any, verb: str, X: Any, y: Any, known: dict[str, Any]) -> Any:
    """A chunk through scaling and model, cut where renewals are due; on any error the model is as it was.

    The scaling is put back by whoever called.
    """
    from .._stream import Run

    if not hasattr(X, "shape"):
        X = np.asarray(X)
    count = X.shape[0] if X.ndim else 0
    if count < scaling.room():
        return _step(scaling, model, verb, X, y, known)
    # All of it is looked at before any of it is learned.
    scaling.standard.transform(X) if scaling.n_seen_ else StreamScaler().learn_transform(X)
    before, run = dict(model.__dict__), model._run
    spare = None if run is None else Run(run.parts, model._restored(run.parts, run.core.state()), run.labels)
    seen = 0 if run is None else run.core.seen
    try:
        model._targets(Run(model._parts()) if run is None else run, y, count, known.get("classes"))
        return _in_parts(scaling, model, verb, X, y, known)
    except BaseException:
        learned = model._run is not None and (run is None or model._run.core.seen != seen)
        if learned or run is None:
            model.__dict__.clear()
            model.__dict__.update(before)
            if spare is not None:
                model._run = spare
        raise


def _in_parts(scaling: RelevanceScaler, model: Any, verb: str, X: Any, y: Any, known: dict[str, Any]) -> Any:
    said: list[Any] = []
    start, count = 0, len(X)
    while start < count:
        part = slice(start, min(count, start + scaling.room()))
        due = part.stop - start == scaling.room()
        some = {name: value[part] if name == "sample_weight" else value for name, value in known.items()}
        scores = _step(scaling, model, verb, _cut(X, part), _cut(y, part), some)
        said.append(_Said(model, scores) if verb == "prequential" else scores)
        if due:
            scaling.renew(model)
        start = part.stop
    if verb == "prequential":
        return _joined(model, said)
    return np.concatenate(said) if verb == "prequential_interval" else None


def _cut(values: Any, part: slice) -> Any:
    return values.iloc[part] if hasattr(values, "iloc") else values[part]


def _step(scaling: RelevanceScaler, model: Any, verb: str, X: Any, y: Any, known: dict[str, Any]) -> Any:
    first = scaling.n_seen_ == 0
    plain = not first and type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X)
    rows = scaling._learn_rows(scaling._checked(X)) if plain else scaling.learn_transform(X)
    return getattr(model, verb)(rows, y, **known)


class _Said:
    """Scores of a part of a chunk, in the order in which the core numbers the classes."""

    def __init__(self, model: Any, scores: Floats) -> None:
        self.scores = scores
        names = model._run.labels.names
        if not names:
            return
        view = model._run.labels.view(len(names))
        if scores.ndim == 1:
            self.scores = view.sign * scores
        else:
            self.scores = np.empty_like(scores)
            self.scores[:, view.columns] = scores


def _joined(model: Any, said: list[Any]) -> Any:
    """Parts of a chunk as the core would have told it whole: two classes become (-f/2, f/2), later ones had 0."""
    parts = [part.scores for part in said]
    widest = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
    if widest:
        for place, part in enumerate(parts):
            narrow = np.column_stack([-0.5 * part, 0.5 * part]) if part.ndim == 1 else part
            parts[place] = np.pad(narrow, ((0, 0), (0, widest - narrow.shape[1])))
    labels = model._run.labels
    return model._shown(np.concatenate(parts), labels.view(len(labels)))
