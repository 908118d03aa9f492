"""Single events of a learner on a core: what the core needs to learn and to answer without Python in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.estimator import StreamEstimator, run_of
from .._base.predictors import Classifier, Detector, Regressor
from .._base.tasks import Classification, Novelty, Regression
from .rule_learner import RuleLearner

#: methods that the core stands in for: where a subclass has others, they are called
_LEARN_ONE = (StreamEstimator.learn_one, RuleLearner.learn_one)
_SHARED = ("_learned", "_number")
_ANSWERS: dict[type, tuple[str, ...]] = {
    Classifier: ("score_one", "predict_one", "predict_proba_one", "_shares", "_cut"),
    Regressor: ("score_one", "predict_one"),
    Detector: ("score_one", "predict_one"),
}
#: the base of the learners of each task, by which the core knows it
_FACES: dict[type, tuple[type, str]] = {
    Classification: (Classifier, "classes"),
    Regression: (Regressor, "numbers"),
    Novelty: (Detector, "novelty"),
}


def connect(
    events: _core.EventPipeline, model: Any, largest: float = np.inf, target: object = None, own: bool = False
) -> bool:
    """Let events go on to the core of a learner, if that is all that its methods do; whether they do.

    largest: of a target; target: its scale in the core, or None; own: whether classes are answered as Python's own objects.
    """
    kind, run, task = type(model), run_of(model), model.learning_task
    core = run.core
    if not _is_event_core(core) or not core.is_plain or run.early is not None or run.targets != 1:
        return False
    if kind.learn_one not in _LEARN_ONE or not _has(kind, StreamEstimator, _SHARED) or type(task) not in _FACES:
        return False
    face, name = _FACES[type(task)]
    largest = min(largest, task.largest) if isinstance(task, Regression) else largest
    weights = [1.0 if model.class_weight is None else model.event_weight(run, label) for label in run.labels.names]
    events.connect(core, name, run.labels.codes, weights, largest, target)
    answers = issubclass(kind, face) and _has(kind, face, _ANSWERS[face])
    if answers and _has(kind, StreamEstimator, ("_scores_one", "_scores_of_row")) and core.classes == len(run.labels):
        view = run.labels.view(core.classes)
        names = view.classes.tolist()
        events.answer(names if own else [*view.classes], names, view.columns, view.sign)
    return True


def _is_event_core(core: object) -> bool:
    return isinstance(core, _core.EventCore)


def _has(kind: type, home: type, names: tuple[str, ...]) -> bool:
    """Whether a class has these methods from `home`, unchanged."""
    return all(getattr(kind, name) is getattr(home, name) for name in names)
