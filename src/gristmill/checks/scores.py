"""Promise 1: the scores are right. Promise 3: dense, sparse and single precision agree."""

from __future__ import annotations

import dataclasses

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

from ..budgets import Project, Window
from .cases import Case, budget_of, close, coefficients, dense, is_native, require, same_bits, stores_points


def check_scores_are_the_naive_sums(case: Case) -> None:
    """decision_function is the sum over support_vectors_, dual_coef_ and intercept_; norm_ is its norm."""
    model = case.fitted()
    for _ in range(3 if is_native(model) else 1):
        rows = model.kernel_(case.X, model.support_vectors_) if model.n_support_ else np.zeros((len(case), 0))
        wanted = rows @ model.dual_coef_ + model.intercept_
        wanted = wanted[:, 0] if wanted.shape[1] == 1 else wanted
        if is_outlier_detector(model):
            wanted = wanted - model.offset_
        require(close(model.decision_function(case.X), wanted, 1e-9), "scores agree with the naive sum to 1e-9")
        if not model.average and model.n_support_:
            gram = model.kernel_(model.support_vectors_, model.support_vectors_)
            norm2 = float(np.sum(model.dual_coef_ * (gram @ model.dual_coef_)))
            terms = float(np.sum(np.abs(model.dual_coef_) * (np.abs(gram) @ np.abs(model.dual_coef_))))
            gap = abs(model.norm_**2 - max(norm2, 0.0))
            require(gap <= 1e-9 * max(terms, 1e-3), "norm_ is the norm from the Gram matrix")
        case.learn(model, slice(None))


def check_attributes_fit_together(case: Case) -> None:
    """The fitted attributes have the promised shapes and meanings."""
    model = case.fitted()
    classes = len(set(case.y)) if is_classifier(model) else 0
    outputs = classes if classes > 2 else 1
    require(model.n_seen_ == len(case), "n_seen_ counts the events")
    require(
        model.dual_coef_.shape == (model.n_support_, outputs),
        "dual_coef_ has a row a point, a column an output",
    )
    require(model.dual_coef_.dtype == np.float64, "coefficients are double")
    require(model.intercept_.shape == (outputs,), "intercept_ has one number an output")
    ids = model.support_ids_
    require(len(ids) == model.n_support_ and np.all(np.diff(ids) > 0), "support_ids_ are distinct, oldest first")
    require(len(ids) == 0 or (ids[0] >= 0 and ids[-1] < len(case)), "support_ids_ are positions in the stream")
    for i, point in zip(ids, dense(model.support_vectors_), strict=True):
        require(np.all(point == case.X[i]), f"support_vectors_ holds event {i} as it came")
    require(model.memory_bytes_ > 0, "memory_bytes_ is a number of bytes")
    size = getattr(budget_of(model), "size", None)
    require(size is None or model.n_support_ <= size, f"at most {size} points are stored")


def check_prequential_scores_before_it_learns(case: Case) -> None:
    """`prequential` returns the `decision_function` of each sample before it was learned, bit for bit.

    With Project to 1e-9: a run is scored by coordinates, a table by coefficients, two sums of one number.
    """
    model, twin = case.new(), case.new()
    scores = case.learn(model, slice(None), "prequential")
    # The scores have a column for each class, or point to the second: the comparison starts when all have come.
    places = np.unique(case.y, return_index=True)[1] if is_classifier(model) else [0]
    start = 1 + int(max(places))
    case.learn(twin, slice(0, start))
    projects = isinstance(budget_of(model), Project)
    for i in range(start, len(case)):
        score = twin.decision_function(case.X[i : i + 1])[0]
        # A projecting budget scores a stream by coordinates, a table by coefficients: rounded differently.
        alike = np.array_equal(score, scores[i]) or (projects and close(score, scores[i], 1e-9))
        require(alike, f"prequential agrees at event {i}")
        case.learn(twin, slice(i, i + 1))
    require(same_bits(model, twin), "prequential learns what partial_fit learns")


def check_dense_and_sparse_agree(case: Case) -> None:
    """CSR rows give the model of dense rows, also where they are wide enough for the index of non-zeros."""
    from scipy.sparse import csr_array, csr_matrix

    wanted = case.fitted().decision_function(case.X)
    for make in (csr_array, csr_matrix):
        sparse = dataclasses.replace(case, X=make(case.X))
        require(
            close(sparse.fitted().decision_function(sparse.X), wanted, 1e-9), f"{make.__name__} agrees with dense rows"
        )
    if getattr(case.estimator, "kernel", None) is not None:
        wide = np.zeros((len(case), 2000))
        wide[:, 100:2000:400] = case.X
        sparse = dataclasses.replace(case, X=csr_array(wide))
        require(
            close(sparse.fitted().decision_function(sparse.X), wanted, 1e-9), "wide sparse rows agree with dense rows"
        )
        require(close(sparse.fitted().decision_function(wide), wanted, 1e-9), "a wide sparse model scores dense rows")


def check_single_precision(case: Case) -> None:
    """float32 rows are stored as float32 and agree with float64 to 1e-4; coefficients stay double."""
    single = dataclasses.replace(case, X=case.X.astype(np.float32))
    double = dataclasses.replace(case, X=single.X.astype(np.float64))
    model = single.fitted()
    if stores_points(model):
        require(model.support_vectors_.dtype == np.float32, "float32 points are stored as float32")
    require(coefficients(model).dtype == np.float64, "coefficients are double")
    require(
        close(model.decision_function(single.X), double.fitted().decision_function(double.X), 1e-4),
        "float32 agrees to 1e-4",
    )


def check_weights_have_a_meaning(case: Case) -> None:
    """Weights of 1 are no weights; an event of weight 0 is passed over."""
    ones = case.new()
    case.learn(ones, slice(None), sample_weight=np.ones(len(case)))
    require(same_bits(ones, case.fitted()), "weights of 1 are no weights")
    before = coefficients(ones)
    case.learn(ones, slice(0, 3), sample_weight=np.zeros(3))
    require(ones.n_seen_ == len(case) + 3, "events of weight 0 are counted")
    if not isinstance(budget_of(ones), Window):
        require(np.array_equal(before, coefficients(ones)), "events of weight 0 are not learned")
