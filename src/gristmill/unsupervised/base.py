"""The base of the learners without labels: parts, input, stored points, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import persist
from .._base.estimator import Run, StreamEstimator
from .._base.tasks import Novelty
from .._common.ranges import Range, is_real, is_whole
from .._common.seeds import seed_of
from .._common.types import Fields, Fitted, State
from ..budgets import Budget, Merge, Project, counted
from ..kernels import Gaussian, Kernel
from .core import Learned, Settings, Statistics, UnsupervisedCore
from .span import Floats

PARAMETERS = """kernel : kernel of gristmill, default=Gaussian(1 / n_features)
    budget : Merge(size) or Project(tolerance, size), default=Merge(300)
        `Project` stores a sample whose distance from the span of the stored points exceeds the tolerance, until there are
        `size`. `Merge` stores every sample that is not in the span, until there are `size`; from then on a sample takes the
        place of the point without which least is lost, if that is less than the sample's own distance from the span, and
        the samples so far are projected onto the points that stay. A size is a number of points. A sample within 1 % of its
        own norm of the span is never stored.
    decay : float in (0, 1], default=1.0
        Factor of the weight of all earlier samples at each new one; below 1 the learner follows drift."""

ATTRIBUTES = """support_vectors_, support_ids_ : the stored points, oldest first, and their positions in the stream
    n_support_, n_seen_, memory_bytes_ : stored points, samples so far, bytes kept"""

_MOST = 10_000  # every row has a number for each
_NUMBER = Range("a whole number from 1 to 10,000", lambda v: is_whole(v) and 1 <= v <= _MOST)
_DECAY = Range("a number in (0, 1]", lambda value: is_real(value) and 0 < value <= 1)


class WithoutLabels(Novelty):
    """There are no labels, and y is not used."""

    def shown(self, scores: Floats, view: object) -> Floats:
        return scores


class UnsupervisedLearner(StreamEstimator):
    """Base of `KernelPCA` and `KernelKMeans`."""

    learning_task = WithoutLabels()
    _takes_sparse = False
    _statistics: ClassVar[type[Statistics]]
    _count: ClassVar[str]  #: name of the parameter with the number of components or clusters

    kernel: Kernel | None
    budget: Budget | None
    decay: float
    random_state: Any = None

    def checked_parts(self) -> Settings:
        name = type(self).__name__
        kernel = Gaussian() if self.kernel is None else self.kernel
        if not isinstance(kernel, Kernel) or not kernel.is_native:
            raise TypeError(f"{name}: kernel must be a kernel of gristmill, got {self.kernel!r}")
        budget = Merge(300) if self.budget is None else self.budget
        if not isinstance(budget, Merge | Project):
            raise ValueError(f"{name}: budget must be Merge or Project, got {budget!r}")
        size = budget.size
        if isinstance(budget, Merge):
            counted(budget, name)
        _DECAY.check(name, "decay", self.decay)
        _NUMBER.check(name, self._count, getattr(self, self._count))
        number = int(getattr(self, self._count))
        return Settings(kernel, budget, None if size is None else int(size), float(self.decay), number, 0)

    def begin_core(self, run: Run, X: Any) -> UnsupervisedCore:
        width = int(X.shape[1])
        run.parts = run.parts._replace(kernel=self._kernel(width), seed=seed_of(self.random_state))
        return UnsupervisedCore(run.parts, width, self._statistics)

    def _kernel(self, width: int) -> Kernel:
        return Gaussian(1 / width) if self.kernel is None else self.kernel

    def _state(self) -> Learned:
        learned: Learned = self._engine.learned
        return learned

    @property
    def kernel_(self) -> Kernel:
        """The kernel that is used."""
        kernel: Kernel = self._started().parts.kernel
        return kernel

    @property
    def support_vectors_(self) -> Floats:
        """The stored points, oldest first."""
        return self._state().span.points

    @property
    def support_ids_(self) -> npt.NDArray[np.int64]:
        """Position in the stream of each stored point, from 0."""
        return self._state().span.ids

    @property
    def n_support_(self) -> int:
        """How many points are stored."""
        return len(self._state().span)

    def prequential(self, X: Any, y: Any = None) -> Any:
        """Learn from X as `partial_fit` does, and return each sample's squared distance from the span of the points
        stored before."""
        return self._learn(X, y, want_scores=True)

    def _derived(self) -> tuple[Learned, Any]:
        """A state and what `_solve` computes from it, once per state."""
        core: UnsupervisedCore = self._engine
        learned, found = core.learned, core.found
        if found is None or found[0] is not learned:
            found = core.found = (learned, self._solve(self._started().parts, learned))
        return found

    def _solve(self, parts: Settings, learned: Learned) -> Any:
        raise NotImplementedError

    def _values(self, learned: Learned, X: Any) -> tuple[Floats, Floats]:
        """Kernel values of rows at the stored points and at themselves."""
        core: UnsupervisedCore = self._engine
        rows = self._rows(core, self._read(X, first=False))
        core.check(rows)
        return core.values(learned.span, rows, 0)

    # ---- saving --------------------------------------------------------------------------------------------

    def parts_fields(self, parts: Settings) -> tuple[State, Fitted]:
        return {"seed": np.array([parts.seed], dtype=np.uint64)}, {}

    def restored_parts(self, arrays: Fields, fitted: Mapping[str, object]) -> Settings:
        seed = arrays.pop("seed")
        if seed.shape != (1,) or seed.dtype != np.uint64:
            raise persist.ModelFileError("its seed is not a number")
        return self.checked_parts()._replace(kernel=self._kernel(self.n_features_in_), seed=int(seed[0]))

    def restored_core(self, parts: Settings, state: Fields) -> UnsupervisedCore:
        points = state["points"]
        if points.ndim != 2 or points.shape[1] < 1:
            raise ValueError("the saved arrays do not fit together")
        core = UnsupervisedCore(parts, points.shape[1], self._statistics)
        core.restore(state)
        return core
