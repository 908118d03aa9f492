"""The fleet that `gristmill learn --key` trains: learner per key, shared prior, eviction and expiry."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from ..._common.types import Options
from .. import messages, options

#: The learner of a key without --learner. Targets are centred but not scaled, so the regressor has no
#: tube (epsilon), whose width would be a unit. That of novelty is NORMA's with 5% of alarms. On planted outliers, one
#: event in a hundred, 20 keys of 300 events each: with 1% the AUC is .81 and 14% of them are found, for too few points
#: are stored; with 5% .95 and 67%; with 10% .96 and 86%, at twice the alarms. `Density` would be better (.98 in a race of
#: two), but the core of fleets does not have it.
LEARNERS = {
    "classification": "KernelClassifier(budget=Merge(100))",
    "regression": "KernelRegressor(rule=PassiveAggressive(C=1.0, variant=2, epsilon=0.0), budget=Merge(100))",
    "novelty": "KernelNovelty(rule=SGD(Hinge(0.0, nu=0.05), rate=0.2, reg=0.01), budget=Merge(100))",
}

#: What all keys share must settle. `Prepared(KernelRegressor())` follows the newest event of any key, so that a key has
#: to learn a rest that never stands still: over 17 streams of numbers and classes its error was 0.2 to 54 times that of
#: a model a key, and up to 2.5 times with centred targets (14 streams of numbers). NORMA with falling steps, averaged,
#: over targets that are centred per key gives 0.3 to 1.09 times: `python -m benchmarks.keyed_defaults`.
PRIORS = {
    "classification": 'KernelClassifier(rule=SGD(Hinge(), rate=1.0, schedule="inv_sqrt"), average=True)',
    "regression": 'KernelRegressor(rule=SGD(Squared(), rate=1.0, schedule="inv_sqrt"), average=True)',
}


class Chosen(NamedTuple):
    """A fleet and what to call it."""

    fleet: Any
    name: str
    about: dict[str, str]


def chosen(opened: Any, given: Options) -> Chosen:
    """The fleet for a stream, by what its target is."""
    from ..._base.estimator import task_of
    from ...fleets.keyed import KeyedFleet
    from ...notation import written
    from ...prepared.prepared import Prepared

    workshop = options.LearnerFactory(opened, given)
    scale = None if workshop.scale == "none" else workshop.scale
    name, model = _learner(workshop, opened, given)
    task = str(task_of(model))
    prior = _prior(task, model, workshop, opened, given)
    if task == "regression" and given["cluster"] is not None:
        click.echo("note: on a cluster targets are not centred per key; they should be around 0 for all keys", err=True)
    shared = {"max_keys": given["max_keys"], "ttl": given["ttl"], "spill": given["spill"]}
    center = task == "regression" and given["cluster"] is None
    fleet = KeyedFleet(Prepared(model, scale, target=None), prior=prior, center=center, **shared)
    try:
        fleet.check_parameters()
    except TypeError as error:
        raise click.UsageError(f"--key: {error}") from None
    about = {
        "stream": opened.stream.name,
        "key": str(opened.key),
        "learner of each key": written(fleet.prototype),
        "learner of all keys": "none" if prior is None else written(prior),
    }
    return Chosen(fleet, name, about)


def _learner(workshop: Any, opened: object, given: Options) -> tuple[str, Any]:
    """The learner of a key and its text: as given, or the default of the task."""
    if options.is_given("learner"):
        return str(given["learner"]), workshop.model(str(given["learner"]))
    task = messages.found_out(workshop.labels, given["task"])
    text = LEARNERS[task]
    model = workshop.model(text)
    if not options.is_given("kernel") and task != "novelty":
        model.kernel = _kernel(model, opened)
    return f"{type(model).__name__} per key", model


def _kernel(model: Any, opened: Any) -> Any:
    """The default of the learner, by columns of the table: rows are wider, for gaps that may come."""
    return model.default_kernel(max(opened.table.table.n_features_in_, 1))


def _prior(task: str, model: Any, workshop: Any, opened: Any, given: Options) -> Any:
    """What learns from all keys, unless it makes no sense or is not wanted."""
    from ...notation import parse
    from ...prepared.prepared import Prepared

    wanted, why = given["prior"], None
    if task == "novelty":
        why = "novelty has no labels for a prior to explain"
    elif given["cluster"] is not None:
        why = "on a cluster no process sees the events of all keys"
    if wanted and why:
        raise click.UsageError(f"--prior: {why}; omit it")
    if why or wanted is False:
        return None
    found = parse(PRIORS[task], seed=given["seed"])
    found.kernel = workshop.kernel if options.is_given("kernel") else _kernel(found, opened)
    return Prepared(found, None if workshop.scale == "none" else workshop.scale)
