"""`gristmill serve`: models that learn and predict over HTTP, and survive the process."""

from __future__ import annotations

import os
from typing import Any

import click

from .._common.types import Options
from .live import answering, further, seconds


@click.command()
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--learner",
    help="Create a model with this learner unless the store has one of that name: auto, or one of `gristmill learners`.",
)
@click.option(
    "--task", type=click.Choice(["classification", "regression", "novelty"]), help="Task of the learner auto."
)
@click.option("--memory", default="1 MB", show_default=True, help="Memory limit of the learner auto.")
@click.option(
    "--name", default="default", show_default=True, help="Name of the model that --learner or --task creates."
)
@click.option(
    "--store",
    default="gristmill-store",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Folder of the models; created if it does not exist.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any but this machine needs --token-file.",
)
@click.option("--port", default=8764, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--token-file", type=click.Path(exists=True, dir_okay=False), help="File with lines 'read TOKEN' and 'write TOKEN'."
)
@click.option(
    "--label-wait",
    default=7.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Days for which an event waits for its label.",
)
@click.option("--label-space", default="1 GB", show_default=True, help="Disk space for waiting events, per model.")
@click.option("--from", "source", metavar="URL", help="Also learn from this broker: kafka://, redis:// or mqtt://.")
@click.option("--to", metavar="URL|FILE", help="With --from: destination of the predictions.")
@answering
@click.option("--dead-letters", metavar="URL|FILE", help="With --from: destination of messages that cannot be learned.")
@click.option(
    "--max-wait",
    default="50ms",
    show_default=True,
    help="With --from: longest time that an event waits for others before it is learned.",
)
@click.option(
    "--recover", is_flag=True, help="Show which events a damaged journal loses, ask, and continue without them."
)
@click.option("--yes", is_flag=True, help="With --recover: do not ask.")
def serve(**given: Any) -> None:
    """Serve models that learn and predict over HTTP; the page is at http://127.0.0.1:8764/.

    MODEL is a model file to continue from; its name is that of the file. With --from, that model (or the one of --name)
    learns from a broker inside the service; the position is in its journal.

    Experimental: options and paths may change in any minor version.
    """  # fmt: skip
    from .._common.ranges import bytes_in
    from ..serve import Settings, Store, app
    from ..serve.access import Tokens
    from ..serve.run import run
    from ..serve.store.errors import Damaged, ServiceError
    from ..serve.store.recovery import plan, recover

    local = given["host"] in ("127.0.0.1", "localhost", "::1")
    if not local and not given["token_file"]:
        raise click.UsageError(f"--host {given['host']} is open to other machines: give --token-file")
    tokens = None if given["token_file"] is None else Tokens.of_file(given["token_file"])
    settings = Settings(label_wait=86400 * given["label_wait"], label_space=bytes_in(given["label_space"]))
    for name in ("to", "dead_letters", "proba", "interval", "reasons"):
        if given[name] and not given["source"]:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --from")
    store = Store(given["store"], settings)
    try:
        if given["recover"]:
            losses = plan(store.folder)
            for loss in losses:
                click.echo(loss.text(), err=True)
            if not losses:
                click.echo("every journal is sound; nothing is lost", err=True)
            elif not given["yes"]:
                click.confirm("Continue without these events?", abort=True, err=True)
            for loss in losses:
                click.echo(f"the damaged file is kept as {recover(store.folder / loss.name, loss)}", err=True)
        store.open()
        _first_model(store, given)
    except Damaged as error:
        raise ValueError(f"{error}; `gristmill serve --recover` says what can be kept") from error
    except ServiceError as error:
        raise ValueError(str(error)) from error
    application = app(store, tokens=tokens)
    if given["source"]:
        _attach(application, store, given)
    run(application, given["host"], given["port"], given["store"], settings.timeout)


def _attach(application: object, store: Any, given: Options) -> None:
    """The broker that a model learns from."""
    from ..serve.sources import Source, attach

    model = os.path.splitext(os.path.basename(given["model"]))[0] if given["model"] else given["name"]
    if model not in store.names():
        store.close()
        raise click.UsageError(f"--from: the store has no model {model!r}; give MODEL, --learner or --task, or --name")
    try:
        source = Source(
            store, model, given["source"], given["to"], given["dead_letters"], seconds(given["max_wait"], "--max-wait"),
            lambda line: click.echo(line, err=True), further(given, store.get(model).served.champion.model),
        )  # fmt: skip
    except BaseException:
        store.close()
        raise
    attach(application, [source])


def _first_model(store: Any, given: Options) -> None:
    """The model that the command line names, unless the store has it already."""
    if given["model"]:
        name = os.path.splitext(os.path.basename(given["model"]))[0]
        if name in store.names():
            click.echo(
                f"model {name} is in the store; it continues from position {store.get(name).served.position}", err=True
            )
            return
        with open(given["model"], "rb") as file:
            store.create(name, None, file.read())
    elif (given["learner"] or given["task"]) and given["name"] not in store.names():
        spec = {"learner": given["learner"] or "auto", "task": given["task"], "memory": given["memory"]}
        store.create(given["name"], spec)
