"""`gristmill export`: a saved model as an ONNX graph, a C header or JSON; `gristmill merge`: several as one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

_ENDINGS = (".onnx", ".h", ".json")


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("out", type=click.Path(dir_okay=False))
@click.option(
    "--number",
    type=click.Choice(["float64", "float32"]),
    default="float64",
    show_default=True,
    help="Number type of the computation, for ONNX and C.",
)
@click.option("--learn", is_flag=True, help="For a C header: the device continues to learn.")
@click.option("--name", help="Prefix of all names in C; by default the name of OUT.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
def export(model: str, out: str, number: str, learn: bool, name: str | None, force: bool) -> None:
    """Write a saved model as an ONNX graph, a C header or JSON.

    The ending of OUT decides: .onnx, .h (C99) or .json.
    """
    from .. import persist

    ending = Path(out).suffix.lower()
    if ending not in _ENDINGS:
        raise click.UsageError(f"OUT must end in .onnx, .h or .json, got {out!r}")
    if ending != ".h" and (learn or name is not None):
        option = "--learn" if learn else "--name"
        raise click.UsageError(f"{option} is for C headers: OUT must end in .h, got {out!r}")
    if os.path.exists(out) and os.path.samefile(model, out):
        raise click.UsageError(f"OUT is the model itself: {out!r}")
    _refuse_to_write(out, force)
    written = _written(persist.load(model), ending, number, learn, name or _name_of(Path(out).stem))
    persist.write(Path(out), written)
    click.echo(f"{out}: {len(written):,} bytes")


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--model", "out", required=True, type=click.Path(dir_okay=False), help="File of the merged model.")
@click.option("--size", help="Most points of the result, or its memory such as '1 MB'; the largest budget otherwise.")
@click.option(
    "--weights", default="n_seen", show_default=True,
    help="How much each model counts: n_seen, its events, or one number for each model, such as 1,1,2.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def merge(models: tuple[str, ...], out: str, size: str | None, weights: str, force: bool) -> None:
    """Make one model of several that learned apart, such as on the partitions of a topic.

    All MODELS are of one kind, with the same parts. The result predicts the weighted mean of their scores.
    """
    from .. import persist
    from ..merging import merge as merged

    if len(models) < 2:
        raise click.UsageError("give at least two models")
    _refuse_to_write(out, force)
    most = int(size) if size is not None and size.isdecimal() else size
    shares = weights if weights == "n_seen" else _numbers(weights)
    try:
        made = merged([persist.load(model) for model in models], most, shares)
    except TypeError as error:
        raise ValueError(str(error)) from error
    made.save(out)
    click.echo(f"model: {out} after {made.n_seen_:,} events of {len(models)} models")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--weights {text!r}: write n_seen, or numbers such as 1,1,2") from None


def _refuse_to_write(out: str, force: bool) -> None:
    """Refuse a file that exists, or that has no folder."""
    if os.path.lexists(out) and not force:
        raise click.UsageError(f"{out} exists; --force replaces it")
    folder = Path(out).parent
    if not folder.is_dir():
        raise click.UsageError(f"{out}: there is no folder {folder}")


def _name_of(stem: str) -> str:
    """The name of a file as a name in C."""
    name = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in stem)
    return name if name and not name[0].isdigit() else f"m{name}"


def _written(model: Any, ending: str, number: str, learn: bool, name: str) -> bytes:
    from .. import export as formats

    if ending == ".onnx":
        return bytes(formats.to_onnx(model, number).SerializeToString())
    if ending == ".json":
        return bytes(formats.to_json(model).encode())
    return bytes(formats.to_c(model, learn, number, name).encode())
