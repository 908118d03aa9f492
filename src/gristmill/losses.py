"""Losses: what a wrong score costs.

At the kink the hinge with margin rho is active for y f <= rho (novelty: f < rho), the epsilon-insensitive loss for
|y - f| > epsilon, Huber's is quadratic for |y - f| <= sigma, the pinball loss does nothing at y = f. With `nu` given, the
margin, tube or width is no longer fixed: it moves so that the long-run fraction of events on its wrong side is nu (Kivinen,
Smola, Williamson 2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._common.ranges import Checked, Range, fraction, non_negative, open_fraction, optional, positive


class Loss(Checked):
    """Base class of the losses; each knows which tasks it is for."""

    tasks: ClassVar[tuple[str, ...]] = ()
    #: name of the quantity that `nu` adapts, as a fitted attribute
    adapts: ClassVar[str | None] = None

    def core_spec(self) -> dict[str, object]:
        return {"loss": type(self).__name__}


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, margin - y f): the soft margin loss; with `nu`, the adaptive margin of nu-classification and novelty.

    Parameters
    ----------
    margin : float, default=1.0
        rho in the papers; where `nu` is given, its starting value.
    nu : float in (0, 1], optional
        Long-run fraction of margin errors (novelty: of alarms).

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, Hinge, norma_classifier
    >>> model = norma_classifier(Gaussian(1.0), rate=0.5, reg=0.01, loss=Hinge(margin=0.5))
    >>> model.learn_one([0.0], -1); model.learn_one([2.0], 1)
    >>> round(model.score_one([2.0]), 3)
    0.491
    """

    margin: float = 1.0  # rho
    nu: float | None = None

    _ranges: ClassVar[dict[str, Range]] = {"margin": non_negative, "nu": optional(fraction)}
    tasks: ClassVar[tuple[str, ...]] = ("classification", "novelty")
    adapts: ClassVar[str | None] = "margin_"

    def core_spec(self) -> dict[str, object]:
        return {"loss": "Hinge", "width": self.margin, "nu": self.nu}


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y f)).

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, Logistic, norma_classifier
    >>> model = norma_classifier(Gaussian(1.0), rate=0.5, reg=0.0, loss=Logistic())
    >>> model.learn_one([0.0], -1); model.learn_one([2.0], 1)
    >>> round(model.score_one([2.0]), 3)
    0.246
    """

    tasks: ClassVar[tuple[str, ...]] = ("classification",)


@dataclass(frozen=True)
class Squared(Loss):
    """(y - f)^2 / 2.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, Squared, norma_regressor
    >>> model = norma_regressor(Gaussian(1.0), rate=0.5, reg=0.0, loss=Squared())
    >>> model.learn_one([0.0], 4.0)
    >>> model.predict_one([0.0])
    2.0
    """

    tasks: ClassVar[tuple[str, ...]] = ("regression",)


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, |y - f| - epsilon): errors inside the tube are free.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half width of the tube; where `nu` is given, its starting value.
    nu : float in (0, 1], optional
        Long-run fraction of events outside the tube. The tube is not clipped and may read slightly below 0.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import EpsilonInsensitive, Gaussian, norma_regressor
    >>> model = norma_regressor(Gaussian(1.0), rate=0.5, reg=0.0, loss=EpsilonInsensitive(0.1, nu=0.5))
    >>> model.learn_one([0.0], 4.0)
    >>> round(model.epsilon_, 3)
    0.35
    """

    epsilon: float = 0.1
    nu: float | None = None

    _ranges: ClassVar[dict[str, Range]] = {"epsilon": non_negative, "nu": optional(fraction)}
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    adapts: ClassVar[str | None] = "epsilon_"

    def core_spec(self) -> dict[str, object]:
        return {"loss": "EpsilonInsensitive", "width": self.epsilon, "nu": self.nu}


@dataclass(frozen=True)
class Huber(Loss):
    """Quadratic within sigma of the target, linear beyond: (y-f)^2/(2 sigma) or |y-f| - sigma/2.

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the quadratic part; where `nu` is given, its starting value (it never falls below 1e-6).
    nu : float in (0, 1], optional
        Long-run fraction of events in the linear part.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, Huber, norma_regressor
    >>> model = norma_regressor(Gaussian(1.0), rate=0.5, reg=0.0, loss=Huber(2.0))
    >>> model.learn_one([0.0], 1.0)
    >>> model.predict_one([0.0])
    0.25
    """

    sigma: float = 1.0
    nu: float | None = None

    _ranges: ClassVar[dict[str, Range]] = {"sigma": positive, "nu": optional(fraction)}
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    adapts: ClassVar[str | None] = "sigma_"

    def core_spec(self) -> dict[str, object]:
        return {"loss": "Huber", "width": self.sigma, "nu": self.nu}


@dataclass(frozen=True)
class Pinball(Loss):
    """quantile (y - f) below the target, (1 - quantile) (f - y) above it: f learns a quantile of y given x.

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
        The share of targets that are to lie below f; 0.5 gives the median, by half the absolute error.

    References
    ----------
    R. Koenker, G. Bassett, Regression Quantiles, Econometrica 46(1), 1978.
    I. Takeuchi, Q. V. Le, T. D. Sears, A. J. Smola, Nonparametric Quantile Estimation, JMLR 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KernelRegressor, Pinball, SGD
    >>> X = np.random.default_rng(0).uniform(size=(5000, 1))
    >>> y = np.sin(6 * X[:, 0]) + np.random.default_rng(1).normal(size=5000)
    >>> model = KernelRegressor(Gaussian(10.0), SGD(Pinball(0.9), rate=0.05))
    >>> print(f"{(y[1000:] < model.prequential(X, y)[1000:]).mean():.2f} of the targets lie below")
    0.90 of the targets lie below
    """

    quantile: float = 0.5

    _ranges: ClassVar[dict[str, Range]] = {"quantile": open_fraction}
    tasks: ClassVar[tuple[str, ...]] = ("regression",)

    def core_spec(self) -> dict[str, object]:
        return {"loss": "Pinball", "width": self.quantile}
