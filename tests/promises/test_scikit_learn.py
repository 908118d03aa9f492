"""scikit-learn's own checks over every estimator there is; each exception stands here with its reason, and no other."""

from __future__ import annotations

import warnings

import public_learners
import pytest
from sklearn.utils.estimator_checks import check_estimator

from gristmill import Additive, KernelClassifier, KernelNovelty, KernelRegressor, Laplacian, Prepared, persist

ORDER = "an online learner takes one step an event: an event of weight 2 is one larger step, not two"
WEIGHTS = {f"check_sample_weight_equivalence_on_{kind}_data": ORDER for kind in ("dense", "sparse")}
SCORES = {"check_regressors_no_decision_function": "every learner of gristmill has decision_function"}
CUT = {
    "check_classifiers_train": "f(x) only ranks: predict cuts it at threshold_, which the buffer gives, and not at 0"
}
LIST = "a label may be any object, so predict returns a list, and the check asks for its shape"
FAMILIAR = {
    name: "a density finds what it was fitted on familiar: alarms are for events that it has not learned"
    for name in ("check_outliers_train", "check_outliers_fit_predict")
}
CLASS_WEIGHTS = {"check_class_weight_classifiers": "an online learner takes one step an event, whatever its weight"}
EXCEPTIONS = {
    "KernelClassifier": WEIGHTS | CLASS_WEIGHTS,
    "Prepared, classifier": WEIGHTS,
    "KernelRegressor": WEIGHTS | SCORES,
    "KernelRegressor, additive": WEIGHTS | SCORES,
    "KernelNovelty": FAMILIAR,
    "Prepared, novelty": WEIGHTS | {"check_outliers_train": FAMILIAR["check_outliers_train"]},
    "FeatureClassifier": WEIGHTS | CLASS_WEIGHTS,
    "FeatureRegressor": WEIGHTS
    | SCORES
    | {"check_regressors_train": "one pass of steps over a random map does not reach R^2 > 0.5 on their 200 events"},
    "FeatureNovelty": WEIGHTS,
    "RaceClassifier": WEIGHTS,
    "AutoClassifier": WEIGHTS,
    "RaceRegressor": WEIGHTS | SCORES,
    "AutoRegressor": WEIGHTS | SCORES,
    "StructuredLearner": WEIGHTS
    | {
        "check_sample_weights_not_an_array": "a label may be any object, so y must be a sequence, not merely convertible",
        "check_estimator_sparse_array": LIST,
        "check_estimator_sparse_matrix": LIST,
    },
    "PairwiseAUC": CUT,
    "OAM": CUT,
    "LandmarkOrdinal": {"check_classifiers_classes": "words have no order that anybody stated: refused by design"},
    "Prepared, regressor": WEIGHTS | SCORES,
}


def estimators():
    for name in persist.ESTIMATORS:
        if name not in (
            "Prepared",
            "Fleet",
            "KeyedFleet",
        ):  # fleets take tables of three dimensions, or keys
            needed = {
                **public_learners.NEEDED.get(name, {}),
                **({"labels": list(range(-1, 40))} if name == "StructuredLearner" else {}),
                **({"slopes": (1.0, 30.0)} if name == "LandmarkPairClassifier" else {}),  # six are tuned otherwise
            }
            yield name, persist.estimator(name)(**needed)
    yield "Prepared, classifier", Prepared(KernelClassifier())
    yield "Prepared, regressor", Prepared(KernelRegressor())
    yield "Prepared, novelty", Prepared(KernelNovelty())
    yield "KernelRegressor, additive", KernelRegressor(Additive(Laplacian(1.0)))


ESTIMATORS = dict(estimators())


def test_every_learner_is_tried():
    assert set(public_learners.public()) <= set(ESTIMATORS)
    assert set(EXCEPTIONS) <= set(ESTIMATORS)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_agrees_but_for_what_is_listed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ESTIMATORS[name], on_fail=None, on_skip=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert len(results) > 20
    assert failed.keys() == EXCEPTIONS.get(name, {}).keys(), failed
