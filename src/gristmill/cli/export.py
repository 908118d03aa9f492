"""`gristmill export`: a saved model as an ONNX graph, a C header or JSON."""

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
    if os.path.lexists(out) and not force:
        raise click.UsageError(f"{out} exists; --force replaces it")
    folder = Path(out).parent
    if not folder.is_dir():
        raise click.UsageError(f"{out}: there is no folder {folder}")
    written = _written(persist.load(model), ending, number, learn, name or _name_of(Path(out).stem))
    persist.write(Path(out), written)
    click.echo(f"{out}: {len(written):,} bytes")


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
