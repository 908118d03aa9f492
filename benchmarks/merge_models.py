"""`python -m benchmarks.merge_models`: what it costs to learn apart. Shards merged, against one pass compressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from gristmill import Gaussian, KernelClassifier, PassiveAggressive, Unbounded, _core, compress, merge, projectron_pp

from .data import arrays, shuffled, standardised
from .measure import best, machine, pin

SIZE = 1000
SHARDS = (2, 4, 16)

#: data set -> events to learn from, width of the Gaussian
SETS: dict[str, tuple[int, float]] = {"ijcnn1": (40_000, 2.0), "mnist": (20_000, 0.02), "a9a": (20_000, 0.03)}

LEARNERS: dict[str, Callable[[Any], Any]] = {
    "PA-I that keeps all": lambda kernel: KernelClassifier(
        kernel, PassiveAggressive(C=1.0), Unbounded(), random_state=0
    ),
    "averaged Projectron++": lambda kernel: projectron_pp(kernel, 0.3, average=True, random_state=0),
}


def parts(name: str) -> tuple[Any, Any, Any, Any]:
    """Events to learn from and the ten thousand after them to be told by."""
    events, _ = SETS[name]
    X, y = shuffled(*arrays(name))
    if name == "mnist":
        X = X / 255
    if name == "ijcnn1":
        X = standardised(X) / 2
    test = slice(events, events + 10_000)
    return X[:events], y[:events], X[test], y[test]


def right(model: Any, X: Any, y: Any) -> float:
    return 100 * float((model.predict(X) == y).mean())


def compared(name: str, make: Callable[[Any], Any]) -> tuple[float, float, dict[int, float], float]:
    """One pass, one pass compressed, by number of shards what they are merged, and the relative error of compressing."""
    X, y, Z, t = parts(name)
    kernel = Gaussian(SETS[name][1])
    whole = make(kernel).fit(X, y)
    small, error = compress(whole, SIZE)
    merged = {}
    for count in SHARDS:
        shards = [make(kernel).fit(X[i::count], y[i::count]) for i in range(count)]
        merged[count] = right(merge(shards, SIZE), Z, t)
    return right(whole, Z, t), right(small, Z, t), merged, error


def products(n: int = 12_000, width: int = 123, size: int = SIZE) -> tuple[float, float, float]:
    """Seconds of the Gram matrix, of a product n x size x size, both bare, and of `compress`, in one run."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, width)) < 0.11).astype(float)
    coefs, Z, W = rng.normal(size=(1, n)), rng.normal(size=(n, size)), rng.normal(size=(size, size))
    program = Gaussian(0.05).kernel_program()

    def gram() -> None:
        for first in range(0, n, 1000):
            X[first : first + 1000] @ X.T

    return best(gram), best(lambda: Z @ W), best(lambda: _core.compress(program, X, coefs, 1, size))


@click.command()
@click.option("-k", "names", multiple=True, help="Data sets; all of them by default.")
def main(names: tuple[str, ...]) -> None:
    """Shards merged to 1,000 points, against one pass compressed to as many; and the time of `compress`."""
    pin()
    click.echo(machine())
    gram, product, took = products()
    click.echo(
        f"compress 1,000 of 12,000 points x 123: {took:.2f} s of processor time; the bare products {gram:.2f} + "
        f"{product:.2f} s; ratio {took / (gram + product):.2f}\n"
    )
    click.echo("| data | learner | one pass | compressed | error | " + " | ".join(f"{k} shards" for k in SHARDS) + " |")
    click.echo("|---" * (5 + len(SHARDS)) + "|")
    for name in names or SETS:
        for title, make in LEARNERS.items():
            whole, small, merged, error = compared(name, make)
            cells = " | ".join(f"{merged[k]:.2f} ({merged[k] - small:+.2f})" for k in SHARDS)
            click.echo(f"| {name} | {title} | {whole:.2f} | {small:.2f} | {error:.3f} | {cells} |")


if __name__ == "__main__":
    main()
