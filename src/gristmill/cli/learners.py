"""`gristmill learners`: the catalogue, as it can be written on the command line."""

from __future__ import annotations

import click


@click.command()
def learners() -> None:
    """List the learners, kernels, losses, rules and budgets that --learner and --kernel understand."""
    import inspect

    from ..notation import catalogue_names, vocabulary

    words = vocabulary()
    named = catalogue_names()
    click.echo("learners (kernel may be left out: see --kernel)")
    for name in sorted(named):
        parameters = [
            str(parameter).split(":")[0].strip()
            + (f"={parameter.default!r}" if parameter.default is not parameter.empty else "")
            for parameter in inspect.signature(words[name]).parameters.values()
            if parameter.name not in ("random_state", "average")
        ]
        click.echo(f"  {name}({', '.join(parameters)})")
    click.echo("parts, also in KernelClassifier(kernel, rule, budget), KernelRegressor, KernelNovelty")
    click.echo("  " + " ".join(sorted(word for word in words if word not in named)))
