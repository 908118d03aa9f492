"""How many landmarks, and how many labelled samples, a similarity of a given goodness needs.

A similarity with |K| <= 1 is (epsilon_0, B)-good if some weights |w| <= B make the predictor f(x) = E[w(x') K(x, x')]
have a mean loss of epsilon_0; `gristmill.similarity.goodness` measures that. With d landmarks and n labelled samples a
learner loses at most

    L B (1 + sqrt(2 log(3/delta))) (1/sqrt(d) + 2/sqrt(n))

more, L the Lipschitz constant of the loss in the prediction: the mean of |f~ - f| over x has a mean of at most B/sqrt(d)
over landmarks, and moves by at most 2B/d with one of them; losses are taken less those of the prediction 0. The document
has the same rates with constants that it does not state, or with a further logarithm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .._common.ranges import Range, count, fraction, is_real, non_negative, one_of, positive
from ._require import require

_probability = Range("a number in (0, 1)", lambda v: is_real(v) and 0 < v < 1)


class LandmarkPlan(NamedTuple):
    """How many landmarks, labelled samples, and (sparse predictors) greedy steps."""

    landmarks: int
    samples: int
    steps: int = 0


def landmark_pairs_for_margin(excess: float, margin: float, weight: float = 1.0, delta: float = 0.05) -> int:
    """Random pairs with which all but a further share `excess` of the objects keep half of their margin.

    The least d with exp(-d gamma^2/(8 B^2)) <= delta excess: the sign of the mean of w f(K(x, x+) - K(x, x-)) over d pairs
    then errs on at most epsilon + excess of the objects.

    Parameters
    ----------
    excess : float in (0, 1)
        epsilon_1.
    margin : float > 0
        gamma: all but a share epsilon of the objects have it on average over pairs.
    weight : float > 0, default=1.0
        B: |w f| <= B.
    delta : float in (0, 1), default=0.05

    Returns
    -------
    int

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 4.2, where B is missing.

    Examples
    --------
    >>> from gristmill.theory import landmark_pairs_for_margin
    >>> landmark_pairs_for_margin(excess=0.05, margin=0.5)
    192
    """
    owner = "landmark_pairs_for_margin"
    require(owner, _probability, excess=excess, delta=delta)
    require(owner, positive, margin=margin, weight=weight)
    return math.ceil(8 * (weight / margin) ** 2 * math.log(1 / (delta * excess)))


def landmark_pairs_for_loss(
    excess: float,
    weight: float = 1.0,
    lipschitz: float = 1.0,
    delta: float = 0.05,
    functions: int = 1,
    net: bool = False,
) -> int:
    """Random pairs with which the mean loss is at most `excess` above that of the best weights, for all transfer functions.

    Parameters
    ----------
    excess : float > 0
        epsilon_1.
    weight : float > 0, default=1.0
        B: |w f| <= B, and |w| <= B with `net`.
    lipschitz : float > 0, default=1.0
        C_L of the loss; 1/gamma for the hinge loss at margin gamma.
    delta : float in (0, 1), default=0.05
    functions : int >= 1, default=1
        How many transfer functions are tried; those of a net, with `net`.
    net : bool, default=False
        The functions are the net of a larger family: each of that is within excess/(4 B C_L) of one of them.

    Returns
    -------
    int

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 4.7 (one function), Theorem 4.3 (a net). The printed
    numbers, 16 (B C_L/e)^2 log(4B/(delta e)) and 64 (B C_L/e)^2 log(16 B N/(delta e)), are larger.

    Examples
    --------
    >>> from gristmill.theory import landmark_pairs_for_loss
    >>> landmark_pairs_for_loss(excess=0.1)
    1189
    """
    owner = "landmark_pairs_for_loss"
    require(owner, positive, excess=excess, weight=weight, lipschitz=lipschitz)
    require(owner, _probability, delta=delta)
    require(owner, count, functions=functions)
    left = excess / 2 if net else excess  # the other half: from a function to that of the net and back
    return math.ceil((lipschitz * weight * (1 + math.sqrt(2 * math.log(functions / delta))) / left) ** 2)


def landmark_excess_bound(
    landmarks: int, samples: int, weight: float = 1.0, lipschitz: float = 1.0, delta: float = 0.05
) -> float:
    """How much more than epsilon_0 the mean loss of a learner with landmarks can be.

    The learner minimises the mean loss of <w, Psi(x)> over |w|_2 <= B on samples that are not the landmarks, with
    Psi(x) = (K(x, l_1), ..., K(x, l_d))/sqrt(d).

    Parameters
    ----------
    landmarks, samples : int >= 1
        d and n.
    weight : float > 0, default=1.0
        B.
    lipschitz : float > 0, default=1.0
        L of the loss in the prediction: 1 for the absolute, the tube and the ordinal margin loss; 2 m (B + 1) for the
        squared loss of a query with m documents.
    delta : float in (0, 1), default=0.05

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Lemmas 5.22 and 5.23, with constants.

    Examples
    --------
    >>> from gristmill.theory import landmark_excess_bound
    >>> round(landmark_excess_bound(landmarks=1000, samples=10_000), 3)
    0.199
    """
    owner = "landmark_excess_bound"
    require(owner, count, landmarks=landmarks, samples=samples)
    require(owner, positive, weight=weight, lipschitz=lipschitz)
    require(owner, _probability, delta=delta)
    factor = lipschitz * weight * (1 + math.sqrt(2 * math.log(3 / delta)))
    return factor * (1 / math.sqrt(landmarks) + 2 / math.sqrt(samples))


def shared_landmark_excess_bound(
    samples: int, weight: float = 1.0, lipschitz: float = 1.0, delta: float = 0.05
) -> float:
    """The same where the labelled samples are the landmarks, too: no further sample is needed.

    The learner minimises the mean loss of f(x) = (1/n) sum_i w_i K(x, x_i) over |w_i| <= B on x_1 .. x_n. Its mean loss is
    at most epsilon_0 + L B (5/sqrt(n) + 2/n + 5 sqrt(2 log(2/delta)/n)): 4/sqrt(n) and six tenths of the last term are
    the uniform deviation over all weights, the rest is the loss of the weights of the goodness on their own landmarks.

    Parameters
    ----------
    samples : int >= 1
        n.
    weight, lipschitz, delta
        B, L and delta as in `landmark_excess_bound`.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorems B.2 and B.3. Changed: the predictors of n points are
    among those of 2n points only if the weights may double, which makes 4/sqrt(n) of 2/sqrt(n), and the printed sum,
    4 sqrt(log(1/delta)/n), is below its largest term.

    Examples
    --------
    >>> from gristmill.theory import landmark_excess_bound, shared_landmark_excess_bound
    >>> round(shared_landmark_excess_bound(20_000), 3), round(landmark_excess_bound(10_000, 10_000), 3)
    (0.131, 0.116)
    """
    owner = "shared_landmark_excess_bound"
    require(owner, count, samples=samples)
    require(owner, positive, weight=weight, lipschitz=lipschitz)
    require(owner, _probability, delta=delta)
    uniform = 4 / math.sqrt(samples) + 6 * math.sqrt(math.log(2 / delta) / (2 * samples))
    own = 1 / math.sqrt(samples) + 2 / samples + 4 * math.sqrt(math.log(2 / delta) / (2 * samples))
    return lipschitz * weight * (uniform + own)


def landmarks_for(
    excess: float,
    weight: float = 1.0,
    lipschitz: float = 1.0,
    delta: float = 0.05,
    informative: float = 1.0,
) -> LandmarkPlan:
    """Landmarks and labelled samples that make the loss at most epsilon_0 + `excess`, half of it for each.

    Parameters
    ----------
    excess : float > 0
        epsilon_1, in the loss that the goodness is measured in.
    weight, lipschitz, delta
        B, L and delta as in `landmark_excess_bound`.
    informative : float in (0, 1], default=1.0
        tau: below 1 the similarity is (epsilon_0, B, tau)-good, its weights are those of a share tau of the objects, and
        the predictor is sparse: `steps` of forward greedy selection take a third of the excess, as do the other two.

    Returns
    -------
    LandmarkPlan
        landmarks, samples, steps (0 where `informative` is 1).

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorems 5.5, 5.8, 5.9, 5.16 and 5.20.

    Examples
    --------
    >>> from gristmill.theory import landmarks_for
    >>> landmarks_for(excess=0.5)
    LandmarkPlan(landmarks=239, samples=955, steps=0)
    >>> landmarks_for(excess=0.5, informative=0.1)
    LandmarkPlan(landmarks=11722, samples=8146, steps=648)
    """
    owner = "landmarks_for"
    require(owner, positive, excess=excess, weight=weight, lipschitz=lipschitz)
    require(owner, _probability, delta=delta)
    require(owner, fraction, informative=informative)
    scale = lipschitz * weight / excess
    if informative == 1:
        factor = scale * (1 + math.sqrt(2 * math.log(3 / delta)))
        return LandmarkPlan(math.ceil((2 * factor) ** 2), math.ceil((4 * factor) ** 2))
    confidence = math.log(5 / delta)
    found = (3 * scale * (1 + math.sqrt(2 * confidence))) ** 2  # informative ones
    landmarks = math.ceil(max(2 * found, 12 * confidence) / informative)  # half as many come at least, 3/2 at most
    training = (3 * scale * 2 * (math.sqrt(2 * math.log(2 * landmarks)) + math.sqrt(2 * confidence))) ** 2
    return LandmarkPlan(landmarks, math.ceil(training), math.ceil(18 * (3 * scale) ** 2))


class RegressionUtility(NamedTuple):
    """Bounds on the mean absolute and the mean squared error."""

    absolute: float
    squared: float


def regression_utility(
    goodness: float, excess: float, tube: float = 0.0, weight: float = 1.0, largest_target: float = 1.0
) -> RegressionUtility:
    """What a mean tube loss of epsilon_0 + excess says of the mean absolute and the mean squared error.

    Parameters
    ----------
    goodness : float >= 0
        epsilon_0: the mean of max(|f(x) - y| - tube, 0).
    excess : float >= 0
        epsilon_1: `landmark_excess_bound`.
    tube : float >= 0, default=0.0
        epsilon of the loss.
    weight : float > 0, default=1.0
        B: predictions are at most that.
    largest_target : float >= 0, default=1.0
        |y| <= this.

    Returns
    -------
    RegressionUtility
        absolute <= epsilon_0 + epsilon_1 + tube, squared <= (B + largest_target) times that.

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 5.5, which prints B for B + largest_target.

    Examples
    --------
    >>> from gristmill.theory import regression_utility
    >>> regression_utility(goodness=0.25, excess=0.125, tube=0.125)
    RegressionUtility(absolute=0.5, squared=1.0)
    """
    owner = "regression_utility"
    require(owner, non_negative, goodness=goodness, excess=excess, tube=tube, largest_target=largest_target)
    require(owner, positive, weight=weight)
    absolute = goodness + excess + tube
    return RegressionUtility(absolute, (weight + largest_target) * absolute)


class OrdinalUtility(NamedTuple):
    """Bounds on the share of wrong labels and on the mean distance of labels."""

    mislabelled: float
    absolute: float


def ordinal_utility(goodness: float, excess: float, margin: float = 0.5, spacing: float = 1.0) -> OrdinalUtility:
    """What a mean margin loss of epsilon_0 + excess says of ordered labels.

    Parameters
    ----------
    goodness : float >= 0
        epsilon_0: the mean of [gamma - (f - b_y)]_+ + [gamma - (b_{y+1} - f)]_+.
    excess : float >= 0
        epsilon_1: `landmark_excess_bound`.
    margin : float > 0, default=0.5
        gamma.
    spacing : float > 0, default=1.0
        Delta: thresholds are at least that far apart.

    Returns
    -------
    OrdinalUtility
        mislabelled <= (epsilon_0 + epsilon_1)/gamma, absolute <= (epsilon_0 + epsilon_1)/min(gamma, Delta).

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 5.16, whose max(gamma, 1) is wrong for gamma < 1:
    the loss at margin 1 is not bounded by that at gamma. A point that is k >= 1 labels off has a loss of at least
    gamma + (k - 1) Delta, which gives the bounds here.

    Examples
    --------
    >>> from gristmill.theory import ordinal_utility
    >>> ordinal_utility(goodness=0.0625, excess=0.0625, margin=0.5)
    OrdinalUtility(mislabelled=0.25, absolute=0.25)
    """
    owner = "ordinal_utility"
    require(owner, non_negative, goodness=goodness, excess=excess)
    require(owner, positive, margin=margin, spacing=spacing)
    return OrdinalUtility((goodness + excess) / margin, (goodness + excess) / min(margin, spacing))


def ranking_utility(goodness: float, excess: float, documents: int) -> float:
    """What a mean squared loss of epsilon_0 + excess says of 1 - NDCG: sqrt(2 sum_t 1/log^2(1 + t)) times its root.

    Parameters
    ----------
    goodness : float >= 0
        epsilon_0: the mean over queries of |f - eta|^2, eta the gains 2^r - 1 over their ideal discounted sum.
    excess : float >= 0
        epsilon_1: `landmark_excess_bound` with lipschitz 2 m (B + 1).
    documents : int >= 1
        m, of a query.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 5.20; its constant grows as sqrt(m)/log m.

    Examples
    --------
    >>> from gristmill.theory import ranking_utility
    >>> round(ranking_utility(goodness=0.01, excess=0.0, documents=10), 3)
    0.322
    """
    owner = "ranking_utility"
    require(owner, non_negative, goodness=goodness, excess=excess)
    require(owner, count, documents=documents)
    discounts = math.fsum(1 / math.log1p(t) ** 2 for t in range(1, documents + 1))
    return math.sqrt(2 * discounts * (goodness + excess))


def similarity_weight(
    excess: float,
    margin: float,
    task: str = "regression",
    learner_margin: float = 1.0,
    documents: int = 1,
) -> float:
    """B with which a kernel that is (epsilon_0, gamma)-good is (epsilon_0 + excess, B)-good as a similarity.

    On the four points of the document's tightness proofs no B below a quarter of this does, for all tasks but ranking.

    Parameters
    ----------
    excess : float > 0
        epsilon_1.
    margin : float > 0
        gamma of the kernel.
    task : {"regression", "classification", "ordinal", "ranking"}, default="regression"
        1/(2 e gamma^2) for the first two; g^2/(2 e gamma^2) for ordered labels with losses at the margin g, which then are
        g epsilon_0 + excess; (m/(e gamma^2)) (1 + sqrt(m/e)/gamma) for ranking.
    learner_margin : float > 0, default=1.0
        g, for "ordinal".
    documents : int >= 1, default=1
        m, for "ranking".

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Lemma 5.24 and Theorems 5.6, 5.17 and 5.21.

    Examples
    --------
    >>> from gristmill.theory import similarity_weight
    >>> similarity_weight(excess=0.5, margin=0.5)
    4.0
    """
    owner = "similarity_weight"
    require(owner, positive, excess=excess, margin=margin, learner_margin=learner_margin)
    require(owner, one_of("regression", "classification", "ordinal", "ranking"), task=task)
    require(owner, count, documents=documents)
    if task == "ranking":
        return documents / (excess * margin**2) * (1 + math.sqrt(documents / excess) / margin)
    scale = learner_margin if task == "ordinal" else 1.0
    return scale**2 / (2 * excess * margin**2)


def dense_weight(weight: float, informative: float) -> float:
    """B/tau: an (epsilon_0, B, tau)-good similarity is (epsilon_0, B/tau)-good.

    The other way round, an (epsilon_0, B)-good one is (epsilon_0, B, tau)-good with tau = E|w|/B.

    Parameters
    ----------
    weight : float > 0
        B.
    informative : float in (0, 1]
        tau.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 5.10.

    Examples
    --------
    >>> from gristmill.theory import dense_weight
    >>> dense_weight(2.0, informative=0.25)
    8.0
    """
    require("dense_weight", positive, weight=weight)
    require("dense_weight", fraction, informative=informative)
    return weight / informative
