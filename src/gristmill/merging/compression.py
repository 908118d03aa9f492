"""compress: the same function with fewer points."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from .. import _core
from .._base.estimator import Run, is_begun, run_of, with_run
from .._common.ranges import bytes_in, is_whole
from .._common.ranges import size as size_range
from .._common.threads import allowed
from .._common.types import Fields
from ..budgets import Budget, Forget, Merge, Project, Unbounded, Window
from ..learners import additive
from ..learners.base import KernelLearner
from ..learners.composition import check_composition
from ..learners.rule_learner import Parts, RuleLearner
from .terms import Floats, Terms


def compress(model: Any, size: int | str) -> tuple[object, float]:
    """The best model of `size` points for the function that a model has learned, and how much of it is lost.

    Points are chosen one by one: always the stored point at which what is left of f is largest, over all outputs. What is
    left is f less its projection onto the chosen points in the kernel's space, so the coefficients are those of least
    squares there. The model itself stays as it is.

    Parameters
    ----------
    model : fitted KernelClassifier, KernelRegressor or KernelNovelty, or one behind `Prepared`
    size : int or str
        Most points of the result, or its memory in words, such as "1 MB".

    Returns
    -------
    model : the same kind of learner with at most `size` points
        Its budget has the new size (`Merge(size)` in the place of `Unbounded()`), and it learns on from there:
        counters, rates, margins, intercept, ages of the points and the random state are those of the model. With
        `average=True` both the mean over time and the present hypothesis are projected onto the points, which are
        chosen for the mean.
    error : float
        The norm of what is lost over the norm of f, in the kernel's space.

    References
    ----------
    S. Fine, K. Scheinberg, Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2, 2001.
    Y. C. Pati, R. Rezaiifar, P. S. Krishnaprasad, Orthogonal Matching Pursuit, Asilomar 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KernelClassifier, PassiveAggressive, Unbounded, compress
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = KernelClassifier(Gaussian(1.0), PassiveAggressive(), Unbounded()).fit(X, y)
    >>> small, error = compress(model, 40)
    >>> alike = (small.predict(X) == model.predict(X)).mean()
    >>> print(f"{model.n_support_} points, now {small.n_support_}: {alike:.2f} alike")
    619 points, now 40: 1.00 alike
    """
    from ..prepared.prepared import Prepared

    size_range.check("compress", "size", size)
    if isinstance(model, Prepared):
        small, error = compress(model.model_, size)
        return with_model(model, small), error
    check_compressible(model, "compress")
    run = run_of(model)
    if getattr(run.parts.rule, "neighbours", 0.0) > 0:
        raise TypeError(
            "compress: a score by nearest neighbours is not a sum over points that fewer points could approximate"
        )
    parts = run.parts._replace(budget=resized(run.parts, size, "compress"))
    state = run.core.state()
    terms = Terms.of(state, run.core.outputs, parts.kernel, parts.average)
    limit = points_within(model, parts, run.core, size)
    with allowed(model.n_threads()):
        chosen = fewer(parts, terms, run.core.outputs, limit)
    core = model.restored_core(parts, {**state, **chosen.fields(state)})
    return successor(model, parts, core, run.labels), chosen.error


def check_compressible(model: object, verb: str) -> None:
    """Refuse, by name, what has no points that others could stand for."""
    if not isinstance(model, RuleLearner):
        raise TypeError(f"{verb}: a kernel learner is needed, alone or behind Prepared, got {type(model).__name__}")
    if not is_begun(model):
        raise NotFittedError(f"{verb}: this {type(model).__name__} instance is not fitted yet")
    model.refuse_changed_parameters(verb)
    kernel = run_of(model).parts.kernel
    if not isinstance(model, KernelLearner):
        raise TypeError(f"{verb}: {type(model).__name__} stores no points: its size is that of its map")
    if additive.is_additive(kernel):
        raise TypeError(
            f"{verb}: {kernel!r} is kept as trees, which fewer points cannot approximate; use DropSmallest(size)"
        )
    if not kernel.positive_definite:
        raise ValueError(f"{verb}: {kernel!r} is not positive definite, so there is no distance to keep small")


def resized(parts: Parts, size: int | str, verb: str) -> Budget:
    """The budget with another size."""
    budget = parts.budget
    refuse_budget(budget, verb)
    if isinstance(budget, Project) and not is_whole(size):
        raise ValueError(f"{verb}: {budget!r} counts points; give a number of them, got size={size!r}")
    found: Any = Merge(size) if isinstance(budget, Unbounded) else dataclasses.replace(budget, size=size)
    check_composition(parts.rule, found, parts.average)
    checked: Budget = found
    return checked


def refuse_budget(budget: object, verb: str) -> None:
    """Raise for budgets whose points mean more than their terms."""
    if not isinstance(budget, Budget):
        raise TypeError(
            f"{verb}: the state of {budget!r}, written in Python, is unknown; use a budget of gristmill such as Merge(1000)"
        )
    if isinstance(budget, Window):
        raise ValueError(f"{verb}: {budget!r} forgets by age, and has no size; learn with DropOldest(size) instead")
    if isinstance(budget, Forget):
        raise ValueError(f"{verb}: {budget!r} bounds what each of its points has lost; learn with Merge(size) instead")


def points_within(model: KernelLearner, parts: Parts, core: Any, size: int | str, outputs: int | None = None) -> int:
    """A size as a number of points, each with so many coefficients; by default as many as the core has now."""
    if is_whole(size):
        return int(size)
    empty = model.new_core(parts, core.width, core.is_sparse, core.is_single, 0)
    return int(empty.points_within(bytes_in(str(size)), core.outputs if outputs is None else outputs))


@dataclasses.dataclass(frozen=True)
class Fewer:
    """Terms that stand for more of them."""

    terms: Terms
    #: of the shown outputs, then, with an average, of the present ones; None: nothing was left out
    coordinates: Floats | None
    error: float

    def fields(self, state: Fields) -> dict[str, object]:
        """As fields of a state like this one."""
        if "span_sizes" not in state:
            return self.terms.fields(int(state["ticks"][0]))
        if self.coordinates is None:
            return {}
        outputs, n = len(self.terms.shown), len(self.terms.ids)
        basis = self.coordinates.reshape(-1, outputs, n)
        return {
            **self.terms.with_coefs(self.terms.shown, None).fields(0),
            "span_sizes": np.full(outputs, n, np.int64),
            "members": np.tile(np.arange(n, dtype=np.int64), outputs),
            "coordinates": basis[-1].ravel().copy(),
            "coordinate_sums": np.ascontiguousarray(basis[0]).ravel() * int(state["span_ticks"][0]),
        }


def fewer(parts: Parts, terms: Terms, outputs: int, size: int, always: bool = False) -> Fewer:
    """At most `size` of the terms, by the core; all of them, as they are, where they are no more, unless `always`."""
    kernel = parts.kernel
    if len(terms.ids) <= size and not always:
        return Fewer(terms, None, 0.0)
    lines = terms.present if terms.mean is None else np.vstack([terms.mean, terms.present])
    program = kernel.kernel_program() if kernel.is_native else kernel.value_of_pair
    rows, coefs, coordinates, norm2, left2 = _core.compress(
        program, terms.points, np.ascontiguousarray(lines), outputs, size
    )
    chosen = terms.taken(rows)
    mean = None if terms.mean is None else coefs[: len(terms.mean)]
    present = coefs if terms.mean is None else coefs[len(terms.mean) :]
    error = float(np.sqrt(left2 / norm2)) if norm2 > 0 else 0.0
    return Fewer(chosen.with_coefs(present, mean), coordinates, error)


def successor(model: KernelLearner, parts: Parts, core: Any, labels: Any) -> Any:
    """A learner like this one on another core."""
    fresh = clone(model).set_params(budget=parts.budget)
    for name in ("n_features_in_", "feature_names_in_"):
        if name in model.__dict__:
            setattr(fresh, name, copy.copy(model.__dict__[name]))
    with_run(fresh, Run(parts, core, labels))
    return fresh


def with_model(prepared: Any, model: Any) -> Any:
    """The same scaling before another learner."""
    fresh = copy.deepcopy(prepared)
    fresh.model = clone(model)
    fresh.pipeline.replace(model=model)
    return fresh
