"""The estimators: kernel x rule x budget, for classification, regression and novelty detection."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from .._base.predictors import Classifier, Detector, Regressor
from .._base.tasks import SEVERAL_TARGETS, Regression, Scores
from .._common.types import Labels, RandomState, Table
from ..budgets import BudgetLike
from ..kernels import Gaussian, Kernel, KernelLike, Laplacian
from ..losses import Hinge
from ..rules import SGD, Density, PassiveAggressive, Rule, RuleLike
from .additive import is_additive
from .base import KernelLearner

_PARAMETERS = """Parameters
    ----------
    kernel : kernel or callable, default={kernel}
        How two points compare; any function k(x, y) on any objects will do. The default is made for columns of about unit
        spread, as `Prepared` makes them (n_features: columns of the table, where it makes several of one).
    rule : rule, default={rule}
        What one event changes; may also be a Python object called with a `Trial`.
    budget : budget, default=Merge(1000), or DropSmallest(1000) with an additive kernel
        How a new point enters and what leaves; may also be a Python object with a method `victim`.
    average : bool, default=False
        Predict with the mean of all hypotheses so far (online-to-batch); needs `Unbounded`, `Merge` or `Project`.
    random_state : int, Generator, RandomState or None
        Seeds budgets that choose at random.
    passes : int >= 1, default=1
        How often `fit` goes over its data; `partial_fit`, `prequential` and `learn_one` see an event once.
    n_jobs : int or None, default=1
        Threads, as scikit-learn counts them: -1 for all cores. The result is the same, bit for bit, for any number; small
        work is done by one. May be changed at any time."""

_NOVELTY_RULES = "Density(); with a budget, SGD(Hinge(0.0, nu=0.1), rate=0.2, reg=0.01)"


class KernelClassifier(KernelLearner, Classifier):
    __doc__ = f"""Online kernel classifier: by the sign of the score for two classes, by the highest score for more.

    New classes may appear at any event. When a third class appears, a binary learner becomes a multiclass one whose
    first two scores are -f/2 and f/2. If all classes are known in advance, pass them as `classes=` to `partial_fit`;
    then the scores have one column per class from the start.

    {_PARAMETERS.format(kernel="Laplacian(3 / n_features)", rule="PassiveAggressive()")}
    class_weight : None, "balanced" or dict, default=None
        How much an event of each class weighs, times its `sample_weight`: 1; n / (k n_c) by the counts of the stream up
        to and including the event (n events, k classes, n_c of this one); or {{label: weight}}, 1 for labels not in it.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gristmill import DropOldest, Gaussian, KernelClassifier, Perceptron
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelClassifier(Gaussian(gamma=0.001), Perceptron(), DropOldest(100))
    >>> scores = model.prequential(X, y)
    >>> print(f"{{(scores.argmax(axis=1) != y).mean():.3f}} wrong with {{model.n_support_}} points")
    0.081 wrong with 100 points
    """

    _default_rule: ClassVar[Rule] = PassiveAggressive()

    def __init__(
        self,
        kernel: KernelLike | None = None,
        rule: RuleLike | None = None,
        budget: BudgetLike | None = None,
        average: bool = False,
        random_state: RandomState = None,
        class_weight: object = None,
        passes: int = 1,
        n_jobs: int | None = 1,
    ) -> None:
        super().__init__(kernel, rule, budget, average, random_state, passes, n_jobs)
        self.class_weight = class_weight

    def partial_fit(self, X: Table, y: Labels = None, sample_weight: Labels = None, classes: Labels = None) -> Self:
        """Go on learning from X, y, in order.

        `classes`, the labels known in advance, is optional: new ones may appear at any time.
        """
        self._learn(X, y, sample_weight, classes=classes)
        return self

    def prequential(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Scores:
        """Learn as `partial_fit` does, and return the score of each event before it was learned."""
        return self._learn(X, y, sample_weight, want_scores=True, classes=classes)


class KernelRegressor(KernelLearner, Regressor):
    __doc__ = f"""Online kernel regressor for one target or several.

    If y has two dimensions, all targets share the stored points, and each has its own coefficients, intercept and state
    of the rule; a point is stored if any of its coefficients is not 0. Predictions are then of shape (n, targets).
    Rules whose shrinkage or radius depends on the event (FeasibleSet with a radius, StepSizeAdaptation, rules written
    in Python) are refused.

    {_PARAMETERS.format(kernel="Laplacian(1 / n_features)", rule="PassiveAggressive(C=1.0, variant=2, epsilon=0.01)")}

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import DropOldest, EpsilonInsensitive, Gaussian, KernelRegressor, SGD
    >>> X = np.linspace(0, 20, 2000)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = KernelRegressor(Gaussian(2.0), SGD(EpsilonInsensitive(0.01), rate=0.1, reg=0.01), DropOldest(100))
    >>> print(f"mean absolute error {{np.abs(y - model.prequential(X, y)).mean():.3f}}")
    mean absolute error 0.042
    """

    learning_task: ClassVar[Regression] = SEVERAL_TARGETS
    retargets = True
    #: steps in proportion to the error, whatever the unit of the target; smaller ones than would set it right, for noise
    _default_rule: ClassVar[Rule] = PassiveAggressive(C=1.0, variant=2, epsilon=0.01)

    def default_kernel(self, columns: int) -> Kernel:
        return Laplacian(1.0 / columns)


class KernelNovelty(KernelLearner, Detector):
    __doc__ = f"""Online novelty detector: an alarm is a score below a threshold that adapts to the wanted share of alarms.

    Without arguments it estimates a kernel density over 1,000 points, and the lowest one percent of scores are alarms.

    {_PARAMETERS.format(kernel="Gaussian(20 / n_features)", rule=_NOVELTY_RULES)}

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, norma_novelty
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> model = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, schedule="inv_sqrt", size=200)
    >>> scores = model.prequential(X)
    >>> print(f"{{(scores < 0).mean():.3f}} of the events were alarms")
    0.049 of the events were alarms
    """

    #: with a budget of one's own, not all of which suit a density
    _default_rule: ClassVar[Rule] = SGD(Hinge(0.0, nu=0.1), rate=0.2, reg=0.01)

    def default_kernel(self, columns: int) -> Kernel:
        return Gaussian(20.0 / columns)  # narrow: what is familiar is close to something that was there

    def _rule_for(self, kernel: object, budget: object) -> Rule:
        alone = self.budget is None and not is_additive(kernel) and self.n_passes() == 1
        return Density() if alone else self._default_rule

    @property
    def offset_(self) -> float:
        """The margin (its mean over time with average=True): `decision_function` is `score_samples` less this."""
        return float(self._engine.margin)
