"""Write docs/results/numbered.md: every numbered algorithm, theorem, figure and table of the five documents.

One list says where each is: a public name of the library, a target of `papers`, or why it is neither; and which test
holds it.
`python docs/_scripts/numbered.py` writes the page; tests/repository/test_numbered.py checks it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "results" / "numbered.md"
_PAGES = PAGE.with_name("papers")  #: a page a document
DOCUMENTS = {
    "additive": "M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001",
    "norma": "J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004",
    "projectron": "F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009",
    "ilk": "L. Cheng et al., Implicit Online Learning with Kernels, NIPS 2006",
    "thesis": "P. Kar, Topics in Resource-efficient Kernel Learning, 2013",
}


class Entry(NamedTuple):
    """place: names under `gristmill`, or `papers TARGET`, separated by commas; empty where `why` says why."""

    document: str
    number: str
    what: str
    place: str = ""
    test: str = ""
    why: str = ""


_THEORY = "tests/theory/test_theory.py::"
_TIGHT = "tests/theory/test_theory_tightness.py::"
_PAIRS = "tests/theory/test_theory_pairwise.py::"
_LAND = "tests/theory/test_theory_landmarks.py::"
_FAST = "tests/theory/test_fast_rates.py::"
_MAPS = "tests/features/test_maclaurin.py::"
_PAPERS = "tests/repository/test_papers.py"

ENTRIES = [
    Entry("additive", "Figure 1", "f(x) in O(log m) by sorted prefix sums", "kernels.Laplacian, Additive",
          "tests/additive/test_additive.py::test_scores_are_the_naive_sum"),
    Entry("additive", "Figures 2, 3", "projection algorithms", "FeasibleSet, projection_classifier, projection_regressor",
          "tests/catalogue/test_herbster.py::test_the_core_is_the_twin"),
    Entry("additive", "Figure 4", "projections kept inside a ball", "FeasibleSet",
          "tests/catalogue/test_herbster.py::test_the_core_is_the_twin"),
    Entry("additive", "Theorem 1", "a projection onto a convex set exists and is nearest",
          why="a lemma of Hilbert spaces; the projections of the library are checked by their variational inequality"),
    Entry("additive", "Theorem 2", "mistakes of the projection algorithm", "theory.projection_mistake_bound",
          _THEORY + "test_projection_over_the_whole_stream"),
    Entry("additive", "Theorem 3", "square loss of the projection algorithm", "theory.projection_loss_bound",
          _THEORY + "test_projection_regression"),
    Entry("additive", "Theorem 4", "mistakes on any stretch, in a ball", "theory.projection_mistake_bound",
          _TIGHT + "test_projections_in_a_ball_pay_the_distance_to_its_far_side"),
    Entry("additive", "Theorem 5", "square loss on any stretch, in a ball", "theory.projection_loss_bound",
          _THEORY + "test_projection_over_a_stretch"),
    Entry("additive", "Theorem 6", "theorem 3 with kernels (its radius corrected)", "theory.projection_loss_bound",
          _THEORY + "test_printed_radius_of_the_kernel_regression_bound_fails"),
    Entry("norma", "Figure 1", "NORMA with truncation", "SGD, norma_classifier, norma_regressor, norma_novelty, Window",
          "tests/catalogue/test_norma.py::test_the_core_is_the_twin"),
    Entry("norma", "Proposition 1", "what truncation loses", "theory.norma_truncation_error, theory.norma_window",
          _THEORY + "test_what_truncation_drops_is_small"),
    Entry("norma", "Theorem 2", "margin errors against a moving target", "theory.norma_margin_tuning",
          _THEORY + "test_norma_tuned_for_margin_errors"),
    Entry("norma", "Theorem 3", "mistakes against a moving target", "theory.norma_mistake_tuning",
          _THEORY + "test_norma_tuned_for_mistakes"),
    Entry("norma", "Theorem 4", "cumulative risk with rates eta/sqrt(t)",
          "theory.norma_risk_bound", _THEORY + "test_norma_risk"),
    Entry("norma", "Corollary 5", "expected risk of the average", "theory.norma_risk_bound, KernelClassifier",
          _THEORY + "test_norma_risk", why="the bound divided by the number of events, for average=True"),
    Entry("norma", "Theorem 6", "cumulative risk with truncation (corrected)",
          "theory.norma_risk_bound, theory.norma_truncation_start", _THEORY + "test_truncation_start_by_counting"),
    Entry("norma", "Figure 2", "mistakes on drifting and switching data", "papers norma-2", _PAPERS),
    Entry("norma", "Figure 3", "novel digits of USPS", "papers norma-3", _PAPERS),
    Entry("projectron", "Figure 1", "the kernel Perceptron", "Perceptron, perceptron",
          "tests/promises/test_exactness.py"),
    Entry("projectron", "Figures 2, 3, 4", "the Projectron and its projection", "projectron, Project",
          "tests/catalogue/test_projectron.py::test_the_core_is_the_twin"),
    Entry("projectron", "Figure 5", "the Projectron++", "projectron_pp, MarginProjection",
          "tests/catalogue/test_projectron.py::test_the_core_is_the_twin"),
    Entry("projectron", "Theorem 1", "the set of stored points is finite", "Project",
          why="of compact sets, without a number; `Project(tolerance, size)` bounds it outright"),
    Entry("projectron", "Theorem 3", "mistakes of the Projectron", "theory.projectron_mistake_bound",
          _THEORY + "test_projectron"),
    Entry("projectron", "Theorem 4", "mistakes of the Projectron++", "theory.projectron_pp_mistake_bound",
          _THEORY + "test_projectron"),
    Entry("projectron", "Theorem 6", "mistakes of the Projectron++, several classes or structured labels",
          "theory.projectron_mistake_bound, theory.projectron_pp_mistake_bound",
          "tests/theory/test_mistake_bounds.py::test_bounds_of_projectrons_with_classes",
          why="with R^2 = 2 max k(x, x)"),
    Entry("projectron", "Theorem 7", "corrections of projected ALMA",
          "theory.alma_correction_bound, theory.alma_separable_bound",
          _THEORY + "test_alma"),
    Entry("projectron", "Table 1", "the data sets", "datasets", _PAPERS),
    Entry("projectron", "Figure 6", "error and size on a9a", "papers projectron-6", _PAPERS),
    Entry("projectron", "Figure 7", "error and size on the synthetic set", "papers projectron-7", _PAPERS),
    Entry("projectron", "Figure 8", "error against size", "papers projectron-8, papers projectron-8cd", _PAPERS),
    Entry("projectron", "Figure 9", "error against size on digits", "papers projectron-9", _PAPERS),
    Entry("projectron", "Figure 10", "structured output on timit", "StructuredLearner",
          "tests/structured/test_structured.py::test_sequences", why="the data are not free; the learner is there"),
    Entry("ilk", "Equations 8 to 18", "implicit steps: square, hinge, logistic, structured", "Implicit, StructuredLearner",
          "tests/catalogue/test_implicit.py::test_the_core_is_the_twin"),
    Entry("ilk", "Section 2.1", "ILK and SILK", "ilk_classifier, ilk_regressor, ilk_novelty, DropSmallest",
          "tests/catalogue/test_implicit.py::test_the_core_is_the_twin"),
    Entry("ilk", "Theorem 2", "mistakes (replaced: the printed one fails)", "theory.implicit_mistake_bound",
          _THEORY + "test_printed_implicit_bound_fails_for_small_C"),
    Entry("ilk", "Theorem 3", "cumulative risk with rates eta/sqrt(t); false as printed for SILK",
          "theory.implicit_risk_bound, Implicit",
          "tests/theory/test_theory_implicit.py::test_the_bound_holds_and_how_loose_it_is"),
    Entry("ilk", "Figure 1", "errors on a drifting sequence", "papers ilk-1", _PAPERS),
    Entry("ilk", "Figure 2", "background subtraction, ROC", "papers ilk-2", _PAPERS, why="on another clip"),
    Entry("ilk", "Figure 3", "background subtraction, masks", "papers ilk-3", _PAPERS, why="on another clip"),
    Entry("ilk", "Figure 4", "MNIST, two and ten classes; SVMD",
          "papers ilk-4, papers ilk-4-rates, svmd, StepSizeAdaptation",
          "tests/learners/test_svmd_classes.py::test_many_classes_make_the_same_mistakes"),
    Entry("thesis", "Theorems 1.1 to 1.3",
          "the setting of learning theory", why="background of chapter 1, without an algorithm"),
    Entry("thesis", "Figures 1, 2, 1.1 to 1.3", "feature maps, guarantees and learning tasks in pictures",
          why="drawings that explain the setting, no experiment"),
    Entry("thesis", "Theorems 3.1, 3.15, corollary 3.3", "which dot-product kernels are positive definite",
          "features.DotProduct", _MAPS + "test_bad_input_is_refused_by_name"),
    Entry("thesis", "Algorithm 1", "random Maclaurin features", "features.RandomMaclaurin",
          _MAPS + "test_the_mean_over_draws_is_the_kernel"),
    Entry("thesis", "Theorem 3.10", "number of features for an accuracy", "features.n_components_for",
          _MAPS + "test_the_uniform_bound_is_the_corrected_theorem"),
    Entry("thesis", "Section 3.4.2", "truncated series", "features.truncation_error, features.truncation_degree",
          _MAPS + "test_truncation_loses_no_more_than_its_bound"),
    Entry("thesis", "Algorithm 2", "features of compositional kernels",
          "features.Compose", _MAPS + "test_compositions_are_unbiased"),
    Entry("thesis", "Theorem 3.14", "number of features for a composition", "features.n_components_for_composition",
          "tests/features/test_composition_bound.py::test_the_error_is_within_epsilon_everywhere_and_how_loose_that_is"),
    Entry("thesis", "Table 3.1", "exact kernels, random features and H0/1", "papers thesis-table-3.1", _PAPERS),
    Entry("thesis", "Figure 3.1", "error of random features", "papers thesis-figure-3.1", _PAPERS),
    Entry("thesis", "Figure 3.2", "accuracy and time of H0/1", "papers thesis-figure-3.2", _PAPERS),
    Entry("thesis", "Sections 2.2.2, 4.1", "indefinite similarities clipped, flipped, shifted, squared",
          "similarity.SpectrumLandmarks, papers thesis-spectrum",
          "tests/similarity/test_spectrum.py::test_with_all_objects_the_inner_products_are_the_changed_matrix"),
    Entry("thesis", "Section 2.4", "kernel PCA and kernel k-means", "unsupervised.KernelPCA, unsupervised.KernelKMeans",
          "tests/unsupervised/test_unsupervised.py::test_300_points_explain_the_variance_of_batch_kernel_pca"),
    Entry("thesis", "Definitions 4.1, 4.6", "goodness of a similarity for classification", "similarity.goodness",
          "tests/similarity/test_goodness.py::test_margins_against_loops_and_the_reductions_of_appendix_A"),
    Entry("thesis", "Theorem 4.2", "landmark pairs for a margin", "theory.landmark_pairs_for_margin",
          _LAND + "test_pairs_keep_half_of_the_margin"),
    Entry("thesis", "Theorem 4.3", "landmark pairs for all transfer functions", "theory.landmark_pairs_for_loss",
          _LAND + "test_a_family_of_transfer_functions_costs_a_logarithm"),
    Entry("thesis", "Algorithm 3", "DSELECT", "similarity.Landmarks, similarity.LandmarkPairClassifier",
          "tests/similarity/test_landmarks.py::test_every_greedy_step_is_the_best_by_brute_force"),
    Entry("thesis", "Algorithm 4", "FTUNE", "similarity.LandmarkPairClassifier",
          "tests/similarity/test_pairs.py::test_the_choice_is_the_best_on_validation_with_ties_to_the_first"),
    Entry("thesis", "Theorem 4.7", "landmark pairs for a loss", "theory.landmark_pairs_for_loss",
          _LAND + "test_random_landmarks_approximate_the_predictor"),
    Entry("thesis", "Table 4.1", "landmarks on similarity matrices", "papers thesis-table-4.1", _PAPERS),
    Entry("thesis", "Table 4.2", "landmarks with a Gaussian similarity", "papers thesis-table-4.2", _PAPERS),
    Entry("thesis", "Figure 4.1", "accuracy against landmarks, matrices", "papers thesis-figure-4.1", _PAPERS),
    Entry("thesis", "Figure 4.2", "accuracy against landmarks, Gaussian", "papers thesis-figure-4.2", _PAPERS),
    Entry("thesis", "Definitions 5.1 to 5.4, 5.7", "goodness for regression", "similarity.goodness",
          "tests/similarity/test_goodness.py::test_regression_and_ordinal_losses"),
    Entry("thesis", "Algorithm 5", "learning with landmarks", "similarity.LandmarkRegressor, similarity.LandmarkClassifier",
          "tests/similarity/test_regression.py::test_the_objective_is_that_of_a_brute_force_solver"),
    Entry("thesis", "Theorem 5.5", "utility for regression", "theory.landmarks_for, theory.regression_utility",
          _LAND + "test_a_learner_with_landmarks_is_within_the_bound"),
    Entry("thesis", "Theorem 5.6", "a good kernel is a good similarity", "theory.similarity_weight",
          _LAND + "test_weights_of_a_good_kernel_are_within_four_times_the_least"),
    Entry("thesis", "Theorems 5.8, 5.9", "sparse predictors", "theory.landmarks_for, similarity.SparseLandmarkRegressor",
          _LAND + "test_sparse_plan_finds_enough_informative_landmarks"),
    Entry("thesis", "Theorem 5.10, corollaries 5.11, 5.25", "sparse and dense goodness", "theory.dense_weight",
          _LAND + "test_sparse_and_dense_goodness_are_the_same_predictor"),
    Entry("thesis", "Algorithm 6", "forward greedy selection", "similarity.SparseLandmarkRegressor",
          "tests/similarity/test_regression.py::test_plain_selection_against_a_plain_twin_with_its_certificate"),
    Entry("thesis", "Definitions 5.13 to 5.15", "goodness for ordered labels",
          "similarity.goodness, similarity.LandmarkOrdinal",
          "tests/similarity/test_goodness.py::test_regression_and_ordinal_losses"),
    Entry("thesis", "Theorem 5.16", "utility for ordered labels (corrected)", "theory.ordinal_utility",
          _LAND + "test_ordinal_losses_bound_labels_pointwise"),
    Entry("thesis", "Theorem 5.17", "kernels for ordered labels", "theory.similarity_weight",
          _LAND + "test_weights_of_a_good_kernel_are_within_four_times_the_least"),
    Entry("thesis", "Definitions 5.18, 5.19", "goodness for ranking", "similarity.LandmarkRanker",
          "tests/similarity/test_ranking.py::test_weights_minimise_the_squared_loss_on_normalised_gains"),
    Entry("thesis", "Theorem 5.20", "utility for ranking", "theory.ranking_utility",
          _LAND + "test_squared_loss_bounds_the_regret_of_ndcg"),
    Entry("thesis", "Theorem 5.21", "kernels for ranking", "theory.similarity_weight",
          _LAND + "test_a_good_kernel_is_a_good_similarity_for_ranking"),
    Entry("thesis", "Figure 5.1", "kernel and landmark formulations side by side", why="two formulas, no experiment"),
    Entry("thesis", "Table 5.1", "numbers and ordered labels by 50 landmarks", "papers thesis-table-5.1", _PAPERS),
    Entry("thesis", "Figure 5.2", "error against the number of landmarks", "papers thesis-figure-5.2", _PAPERS),
    Entry("thesis", "Figure 5.3", "numbers, other similarities", "papers thesis-figure-5.3", _PAPERS),
    Entry("thesis", "Figure 5.4", "ordered labels, other similarities", "papers thesis-figure-5.4", _PAPERS),
    Entry("thesis", "Theorem 6.3", "excess risk with all pairs", "theory.pairwise_excess_bound",
          _TIGHT + "test_risk_and_excess_term_by_term"),
    Entry("thesis", "Theorem 6.4", "fast rates of strongly convex losses", "theory.strongly_convex_excess_bound",
          _FAST + "test_no_hypothesis_is_far_above_what_the_sample_says"),
    Entry("thesis", "Theorem 6.5", "fast rates with all pairs", "theory.pairwise_fast_excess_bound",
          _FAST + "test_the_mean_risk_of_the_ensemble_is_within_the_bound"),
    Entry("thesis", "Theorem 6.6", "excess risk with a buffer", "theory.pairwise_excess_bound",
          _PAIRS + "test_buffer_bound_tends_to_the_all_pairs_bound"),
    Entry("thesis", "Theorem 6.9", "fast rates with a buffer", "theory.pairwise_fast_excess_bound",
          _FAST + "test_the_mean_risk_of_the_ensemble_is_within_the_bound"),
    Entry("thesis", "Theorem 6.10", "Rademacher averages of losses", "theory.rademacher_of_loss",
          _TIGHT + "test_risk_and_excess_term_by_term"),
    Entry("thesis", "Theorem 6.11, tables 6.1 to 6.3", "Rademacher averages of hypotheses",
          "theory.rademacher_auc, theory.rademacher_matrix, theory.rademacher_mkl",
          _PAIRS + "test_average_of_linear_scorers"),
    Entry("thesis", "Algorithms 7, 9", "RS-x and RS-x2", "pairwise.ReservoirX",
          "tests/pairwise/test_pairwise_buffers.py::test_reservoir_x_keeps_independent_uniform_draws"),
    Entry("thesis", "Algorithm 8", "OLP", "pairwise.PairwiseAUC, pairwise.PairwiseLearner",
          "tests/pairwise/test_pairwise.py::test_core_agrees_with_the_plain_loop_and_the_linear_kernel"),
    Entry("thesis", "Theorem 6.12", "RS-x keeps independent draws", "pairwise.ReservoirX",
          "tests/pairwise/test_pairwise_buffers.py::test_pattern_of_replacement_has_the_binomial_law"),
    Entry("thesis", "Theorem 6.13", "regret of OLP", "theory.olp_regret_bound, theory.all_pairs_regret_bound",
          _TIGHT + "test_regret_of_a_buffer"),
    Entry("thesis", "Theorems 6.18, 6.20", "Bernstein's inequality for martingales; contraction of Rademacher averages",
          why="steps of proofs, of pairwise_fast_excess_bound and of rademacher_of_loss"),
    Entry("thesis", "Figures 6.1 to 6.3", "AUC against buffer size", "papers thesis-figure-6", _PAPERS),
    Entry("thesis", "Definitions A.1, A.2", "the goodness of Wang et al. and that of Balcan and Blum", "similarity.goodness",
          "tests/similarity/test_goodness.py::test_margins_against_loops_and_the_reductions_of_appendix_A"),
    Entry("thesis", "Theorems B.1 to B.3", "landmarks that are the training samples (corrected)",
          "theory.shared_landmark_excess_bound",
          _LAND + "test_landmarks_that_are_the_training_samples"),
]  # fmt: skip


def section_of(target: str) -> str:
    """The page and the anchor of the section that shows a target's picture."""
    for page in sorted(_PAGES.glob("*.md")):
        before, picture, _ = page.read_text("utf-8").partition(f"pictures/{target}.")
        if picture:
            title = before.rpartition("\n## ")[2].partition("\n")[0]
            return f"papers/{page.name}#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    raise ValueError(f"no page of {_PAGES} shows {target}")


def _link(place: str) -> str:
    if place.startswith("papers "):
        return f"[`python -m {place}`]({section_of(place.removeprefix('papers '))})"
    return f"{{py:obj}}`gristmill.{place}`"


def written() -> str:
    """The page."""
    lines = [
        "# Every numbered result",
        "",
        "The algorithms, theorems, figures and tables of the five documents, and where each is. Lemmas that only serve a",
        "proof are not listed. `docs/_scripts/numbered.py` holds the list; a test checks that every name, target and test",
        "exists.",
        "",
    ]
    for key, title in DOCUMENTS.items():
        lines += [f"## {title}", "", "| | | where | test |", "|---|---|---|---|"]
        for entry in ENTRIES:
            if entry.document != key:
                continue
            places = [_link(place) for place in entry.place.split(", ") if place]
            where = "; ".join([*([", ".join(places)] if places else []), *([entry.why] if entry.why else [])])
            test = f"`{entry.test.removeprefix('tests/')}`" if entry.test else ""
            lines.append(f"| {entry.number} | {entry.what} | {where} | {test} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
