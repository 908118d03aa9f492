"""What an additive model can show: the parts that a prediction is the sum of; and a form made for serving."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .additive import is_additive


class AdditiveParts:
    """Methods of a learner that have a meaning when its kernel is additive."""

    _engine: Any
    kernel_: Any

    def _additive_core(self, asked: str) -> Any:
        core = self._engine
        if not is_additive(self.kernel_):
            raise TypeError(f"{asked} needs an additive kernel such as Additive(Spline()), got {self.kernel_!r}")
        return core

    def compile(self) -> Self:
        """Freeze an additive model for serving: sorted arrays instead of trees, several times faster.

        Scores agree with those of the trees to rounding. Learning one more event drops the arrays again, and
        they are not saved.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Additive, KernelRegressor, Laplacian
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> model = KernelRegressor(Additive(Laplacian(1.0))).fit(X, np.sin(X[:, 0]))
        >>> before = model.predict(X)
        >>> bool(np.allclose(model.compile().predict(X), before, atol=1e-12))
        True
        """
        self._additive_core("compile()").compile()
        return self

    def components(self, X: Any) -> npt.NDArray[np.float64]:
        """The part of each coordinate in the score of each event: they and `intercept_` sum to f(x) + b.

        One row an event, one column a coordinate (see `component_names`); with more than two classes a last
        axis for the classes.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Additive, KernelRegressor, Spline
        >>> X = np.random.default_rng(0).uniform(size=(500, 2))
        >>> model = KernelRegressor(Additive(Spline())).fit(X, X[:, 0] ** 2)
        >>> bool(np.allclose(model.components(X).sum(axis=1) + model.intercept_, model.predict(X)))
        True
        """
        return np.asarray(self._at_rest(lambda model: model._components(X)))  # type: ignore[attr-defined]

    def _components(self, X: Any) -> npt.NDArray[np.float64]:
        core = self._additive_core("components()")
        parts = core.components(self._rows(core, self._read(X, first=False)))  # type: ignore[attr-defined]
        rows, outputs, coordinates = parts.shape
        shown = self._outward(parts.transpose(0, 2, 1).reshape(-1, outputs))  # type: ignore[attr-defined]
        shown = shown.reshape(rows, coordinates, -1)
        return np.asarray(shown[:, :, 0] if shown.shape[2] == 1 else shown)

    def component_names(self, feature_names: Any = None) -> list[str]:
        """The name of each coordinate: that of its column, or of the two columns whose product it is."""
        core = self._additive_core("component_names()")
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", None)
        if feature_names is None:
            feature_names = [f"x{column}" for column in range(core.width)]
        if len(feature_names) != core.width:
            raise ValueError(f"feature_names has {len(feature_names)} names, but the model has {core.width} columns")
        coordinates = self.kernel_._coordinates(core.width)
        return [
            str(feature_names[a]) if b is None else f"{feature_names[a]} × {feature_names[b]}"
            for _, _, a, b, _ in coordinates
        ]
