"""`gristmill export`: a saved model as an ONNX graph, a C header or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("out", type=click.Path(dir_okay=False))
@click.option(
    "--number",
    type=click.Choice(["float64", "float32"]),
    default="float64",
    show_default=True,
    help="The type of what is computed, in ONNX and C.",
)
@click.option("--learn", is_flag=True, help="C that goes on learning.")
def export(model: str, out: str, number: str, learn: bool) -> None:
    """Write a saved model as OUT, by its ending: .onnx, .h (C99) or .json."""
    ending = Path(out).suffix
    if ending not in (".onnx", ".h", ".json"):
        raise click.UsageError(f"OUT must end in .onnx, .h or .json, got {out!r}")
    if learn and ending != ".h":
        raise click.UsageError(f"--learn is for C headers: OUT must end in .h, got {out!r}")
    from .. import persist

    written = _written(persist.load(model), ending, number, learn, Path(out).stem)
    Path(out).write_bytes(written)
    click.echo(f"{out}: {len(written):,} bytes")


def _written(model: Any, ending: str, number: str, learn: bool, stem: str) -> bytes:
    from .. import export as formats

    if ending == ".onnx":
        return bytes(formats.to_onnx(model, number).SerializeToString())
    if ending == ".json":
        return bytes(formats.to_json(model).encode())
    name = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in stem)
    name = name if name and not name[0].isdigit() else f"m{name}"
    return bytes(formats.to_c(model, learn, number, name).encode())
