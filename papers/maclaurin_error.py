"""Thesis, figure 3.1: error of random Maclaurin features against their number, on points of the unit ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from gristmill.features import RandomMaclaurin
from gristmill.kernels import Exponential, Polynomial

from . import Claim, Outcome, fewer
from .thesis import Values, steps

_KERNELS = {"t^10": Polynomial(10, coef0=0.0), "(1 + t)^10": Polynomial(10), "exp(t)": Exponential(1.0)}
_DIMENSIONS = (10, 50, 200)
_SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
#: The document's map: degrees and signs one by one. "default" is what the library does unless told otherwise.
_METHODS: dict[str, dict[str, Any]] = {
    "RF": {"stratified": False, "signs": "real"},
    "H0/1": {"stratified": False, "signs": "real", "exact_low_order": True},
    "default": {},
}

#: (kernel, dimension, method) -> a row a run, a column a number of features
Errors = dict[tuple[str, int, str], Values]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """The mean absolute error of the kernel matrix for every kernel, dimension, method and size."""
    runs, sizes = (2, _SIZES[:5:2]) if quick else (20, _SIZES)
    found = _errors(runs, sizes, seed)
    outcome = Outcome(
        "Thesis, figure 3.1: error of random features against their number",
        f"100 points of the unit ball, a fresh map in each of {runs} runs (the thesis: 5), D from {sizes[0]} to "
        f"{sizes[-1]:,}; the error is the mean of |<Z(x), Z(y)> - K(x, y)| over the kernel matrix. RF and H0/1: the "
        "degree law 2^-(n+1) of the thesis on the degrees that the kernel has. RF as printed also draws degrees that "
        "t^10 does not have. default: the library's own map (a fixed number of columns for each degree, complex signs). "
        "exp(t) has width 1, as the printed range up to 2.73 says.",
    )
    for kernel in _KERNELS:
        lines = [key for key in found if key[0] == kernel]
        rows = [[str(key[1]), key[2], *(f"{error:.3g}" for error in found[key].mean(axis=0))] for key in lines]
        outcome.tables.append((f"K = {kernel}", ["d", "map", *(f"D = {size}" for size in sizes)], rows))
    outcome.claims = _claims(found, np.array(sizes, dtype=float))
    outcome.figures.append((_picture(found, sizes), "mean absolute error of the kernel matrix"))
    return outcome


def _errors(runs: int, sizes: tuple[int, ...], seed: int) -> Errors:
    found: Errors = {}
    for kernel, dimension in steps([(k, d) for k in _KERNELS for d in _DIMENSIONS], "figure 3.1"):
        X = _ball(100, dimension, seed + dimension)
        for method in _methods(kernel):
            found[kernel, dimension, method] = np.array(
                [[_error(kernel, X, method, size, seed + 1000 * run) for size in sizes] for run in range(runs)]
            )
    return found


def _methods(kernel: str) -> list[str]:
    """t^10 has no terms of degree 0 and 1 for H0/1, but a law that can miss its only degree."""
    return ["RF", "RF as printed", "default"] if kernel == "t^10" else list(_METHODS)


def _ball(count: int, dimension: int, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, dimension))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return np.asarray(X * rng.uniform(size=(count, 1)) ** (1 / dimension))


def _error(kernel: str, X: Values, method: str, size: int, seed: int) -> float:
    exact = _KERNELS[kernel](X, X)
    if method != "RF as printed":
        Z = RandomMaclaurin(_KERNELS[kernel], size, random_state=seed, **_METHODS[method]).fit_transform(X)
        return float(np.abs(Z @ Z.T - exact).mean())
    # The printed law takes degree 10 once in 2^11 draws; all other columns are zero. The map of the columns
    # that are left is RF's, up to its scale.
    chance = 2.0**-11
    left = int(np.random.default_rng(seed).binomial(size, chance))
    if left == 0:
        return float(np.abs(exact).mean())
    Z = RandomMaclaurin(_KERNELS[kernel], left, random_state=seed, **_METHODS["RF"]).fit_transform(X)
    return float(np.abs(left / (size * chance) * (Z @ Z.T) - exact).mean())


def _claims(found: Errors, sizes: Values) -> list[Claim]:
    claims = []
    for (kernel, dimension, method), errors in found.items():
        if method.startswith("RF"):
            says = (
                f"{kernel}, d = {dimension}: {method} errs less with {sizes[-1]:.0f} features than with {sizes[0]:.0f}"
            )
            claims.append(fewer(says, errors[:, -1], errors[:, 0]))
    for kernel in ("(1 + t)^10", "exp(t)"):
        for dimension in _DIMENSIONS:
            plain, exact = (found[kernel, dimension, method] for method in ("RF", "H0/1"))
            where = f"{kernel}, d = {dimension}"
            # The geometric mean over D, since the error falls by powers of ten.
            means = [np.exp(np.log(errors).mean(axis=1)) for errors in (exact, plain)]
            claims.append(fewer(f"{where}: H0/1 errs less than RF (geometric mean over D)", *means))
            slopes = [np.polyfit(np.log(sizes), np.log(errors).T, 1)[0] for errors in (exact, plain)]
            claims.append(fewer(f"{where}: H0/1 drops more sharply than RF (slope in D, both logarithmic)", *slopes))
    last = {kernel: found[kernel, 10, "RF"][:, -1] for kernel in _KERNELS}
    says = "errors follow the range of the kernel, d = 10"
    claims.append(fewer(f"{says}: t^10 below exp(t)", last["t^10"], last["exp(t)"], "1 and 2.73"))
    claims.append(fewer(f"{says}: exp(t) below (1 + t)^10", last["exp(t)"], last["(1 + t)^10"], "2.73 and 1024"))
    return claims


def _picture(found: Errors, sizes: tuple[int, ...]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(1, len(_KERNELS), figsize=(12.0, 5.0), layout="constrained")
    colours = dict(zip(_DIMENSIONS, COLOURS, strict=False))
    looks = {"RF": ("-", 1.0), "H0/1": ("-", 2.8), "default": ("--", 1.3), "RF as printed": (":", 1.6)}
    for ax, kernel in zip(axes, _KERNELS, strict=True):
        for (_, dimension, method), errors in ((key, e) for key, e in found.items() if key[0] == kernel):
            style, width = looks[method]
            ax.loglog(sizes, errors.mean(axis=0), style, color=colours[dimension], linewidth=width)
        ax.set(title=f"K = {kernel}", xlabel="random features D", ylabel="mean absolute error")
        tidy(ax)
    lines = [("-", colours[d], 4.0, f"d = {d}") for d in _DIMENSIONS]
    lines += [(style, "black", width, method) for method, (style, width) in looks.items()]
    handles = [axes[0].plot([], [], s, color=c, linewidth=w, label=text)[0] for s, c, w, text in lines]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure
