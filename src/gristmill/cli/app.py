"""The command `gristmill`. Each sub-command lives in its own file and is imported only when it is called."""

from __future__ import annotations

import shlex
import warnings
from importlib import import_module
from typing import Any

import click

from .._version import __version__
from . import process

#: sub-command -> (module, what it does in a line); the line stands here so that --help imports nothing
_COMMANDS = {
    "run": ("run", "Compare a few learners on a drifting stream of handwritten digits"),
    "learn": ("learn", "Learn from a file, a pipe or a named stream"),
    "predict": ("predict", "Print the predictions of a saved model, one line per event"),
    "compare": ("compare", "Run several learners on one stream"),
    "search": ("search", "Compare combinations of parameters on one stream; the worst are dropped early"),
    "serve": ("serve", "Serve models that learn and predict over HTTP"),
    "inspect": ("inspect", "Show the contents of a model file"),
    "export": ("export", "Write a saved model as an ONNX graph, a C header or JSON"),
    "merge": ("export", "Make one model of several that learned apart"),
    "learners": ("learners", "List the learners, kernels, losses, rules and budgets"),
    "bench": ("bench", "Measure events per second on this machine"),
}


class _Refused(click.ClickException):
    """Bad input: the message is one line."""

    exit_code = 2


def _on_a_line(message: Warning | str, *_: object, **__: object) -> str:
    """A warning without the line of source code that gave it."""
    return f"warning: {message}\n"


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f".{_COMMANDS[cmd_name][0]}", __package__)
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with process.prepared():
            return super().main(*args, **kwargs)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        line = shlex.join(["gristmill", *args])  # for reports; parsing takes the arguments away
        context = super().make_context(info_name, args, *rest, **extra)
        context.meta[process.COMMAND] = line
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Bad input is one line on standard error and exit code 2; anything else raised is a bug of ours."""
        before, warnings.formatwarning = warnings.formatwarning, _on_a_line
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt as stop:  # before there was anything to keep
            why = str(stop) or "interrupted"
            click.echo(why, err=True)
            raise SystemExit(process.CODES.get(why, 130)) from None
        except (ValueError, OSError, ImportError) as error:
            raise _Refused(" ".join(str(error).split())) from error
        except (MemoryError, RecursionError) as error:
            what = "is nested too deeply" if isinstance(error, RecursionError) else "asks for more memory than there is"
            raise _Refused(f"what was given {what}") from error
        finally:
            warnings.formatwarning = before

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, _COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(_COMMANDS)}."
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gristmill")
def main(**_: Any) -> None:
    """Online machine learning with kernels on data streams, in bounded memory."""
