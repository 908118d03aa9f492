"""The learners whose files and digests are kept, and the streams that they learn from.

Inputs are integers of a counter-based generator over powers of two: no machine computes them differently.
"""

from __future__ import annotations

import hashlib

import numpy as np
from scipy.sparse import csr_array

from gristmill import (
    SGD,
    Additive,
    Alma,
    DropOldest,
    DropRandom,
    DropSmallest,
    EpsilonInsensitive,
    Exponential,
    FeasibleSet,
    Forget,
    Gaussian,
    Hinge,
    Huber,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    LandmarkClassifier,
    LandmarkOrdinal,
    LandmarkPairClassifier,
    LandmarkRanker,
    LandmarkRegressor,
    Landmarks,
    Laplacian,
    Linear,
    Logistic,
    Manhattan,
    MarginProjection,
    Merge,
    Normalized,
    PairwiseAUC,
    PairwiseMetric,
    PairwiseSimilarity,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Prepared,
    Project,
    RandomMaclaurin,
    Romma,
    SparseLandmarkRegressor,
    Spline,
    Squared,
    StepSizeAdaptation,
    StructuredLearner,
    TwoStageMKL,
    Unbounded,
    Vovk,
    Window,
    catalogue,
)
from gristmill.features import FeatureClassifier, FeatureNovelty, FeatureRegressor
from gristmill.pairwise import (
    OAM,
    AlignmentPairs,
    AUCPairs,
    ExponentialLoss,
    Fifo,
    L1Ball,
    MetricPairs,
    OnColumns,
    PairwiseLearner,
    PSDCone,
    Reservoir,
    ReservoirX,
    SquaredHinge,
)
from gristmill.similarity import Ramp, SpectrumLandmarks, StreamLandmarkClassifier, StreamLandmarkRegressor
from gristmill.unsupervised import KernelKMeans, KernelPCA

# ---- streams ------------------------------------------------------------------------------------------------


def mixed(count: int, salt: int) -> np.ndarray:
    """SplitMix64 of a counter: the same 64 bits for (salt, i) everywhere."""
    z = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(salt << 32)
    z = z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def table(rows: int, width: int, salt: int) -> np.ndarray:
    """Numbers in [-1, 1) that are multiples of 2**-12, so that squares and sums of a few are exact."""
    whole = (mixed(rows * width, salt) >> np.uint64(51)).astype(np.int64) - 4096
    return whole.reshape(rows, width) / 4096


def _classes(X: np.ndarray, classes: int) -> np.ndarray:
    hill = X[:, 0] * X[:, 1] + X[:, 2] / 4
    y = np.searchsorted({2: [0.0], 3: [-0.125, 0.125], 4: [-0.25, 0.0, 0.25]}[classes], hill)
    y[:classes] = np.arange(classes)  # each class comes at once, in order: however labels are numbered
    return y


def stream(kind: str, rows: int, width: int = 4) -> tuple[object, object]:
    """X and y of a kind: binary, three, number, novelty; with -csr, -float32, -positive or -words after it."""
    task, *forms = kind.split("-")
    X = table(rows, width, salt=7)
    if task == "number":
        y = X[:, 0] * X[:, 1] + X[:, 2] / 2
    elif task == "novelty":
        y = None
    else:
        y = _classes(X, {"binary": 2, "three": 3, "four": 4}[task])
    if "words" in forms:
        y = np.array(["mill", "grist", "water", "stone"])[y]
    if "positive" in forms:
        X = np.abs(X)
    if "float32" in forms:
        X = X.astype(np.float32)
    if "csr" in forms:
        X = csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    return X, y


def known(kind: str, y: object) -> dict[str, object]:
    """`classes=` where there are more than two: then a model does not depend on when each comes."""
    return {"classes": np.unique(y)} if kind.startswith(("three", "four")) else {}


# ---- learners -----------------------------------------------------------------------------------------------

KERNEL = Gaussian(2.0)
hinge = SGD(Hinge(), rate=0.25, reg=0.0625)
tube = SGD(EpsilonInsensitive(0.0625), rate=0.25, reg=0.0625)
MAP = RandomMaclaurin(Polynomial(2, coef0=1.0), 12, random_state=3)

#: learners whose numbers are made by the core alone: name -> (learner, kind of stream)
IN_CORE = {
    "classifier": (KernelClassifier(KERNEL, PassiveAggressive(), DropSmallest(12)), "binary"),
    "classifier-words": (KernelClassifier(KERNEL, PassiveAggressive(), DropSmallest(12)), "binary-words"),
    "classifier-three": (KernelClassifier(KERNEL, PassiveAggressive(), DropSmallest(12)), "three"),
    "classifier-four-words": (KernelClassifier(KERNEL, Perceptron(), DropOldest(12)), "four-words"),
    "classifier-csr": (KernelClassifier(KERNEL, hinge, DropOldest(12)), "binary-csr"),
    "classifier-float32": (KernelClassifier(KERNEL, hinge, DropOldest(12)), "binary-float32"),
    "classifier-three-csr-float32": (KernelClassifier(Linear(), Perceptron(), Unbounded()), "three-float32-csr"),
    "classifier-window": (KernelClassifier(KERNEL, hinge, Window(15)), "binary"),
    "classifier-growing-window": (KernelClassifier(KERNEL, hinge, Window(growth=0.125)), "binary"),
    "classifier-random": (KernelClassifier(KERNEL, Perceptron(), DropRandom(12), random_state=5), "three"),
    "classifier-forget": (KernelClassifier(KERNEL, Perceptron(), Forget(12)), "binary"),
    "classifier-project": (KernelClassifier(KERNEL, Perceptron(), Project(0.75)), "binary"),
    "classifier-project-three": (KernelClassifier(KERNEL, Perceptron(), Project(0.75)), "three"),
    "classifier-project-average": (KernelClassifier(KERNEL, Perceptron(), Project(0.75), average=True), "binary"),
    "classifier-margin-project": (KernelClassifier(KERNEL, MarginProjection(), Project(0.75)), "three"),
    "classifier-average": (KernelClassifier(KERNEL, PassiveAggressive(), Unbounded(), average=True), "three"),
    "classifier-intercept": (
        KernelClassifier(KERNEL, SGD(Logistic(), 0.25, 0.0625, "inv_sqrt", True), DropSmallest(12)),
        "binary",
    ),
    "classifier-nu": (KernelClassifier(KERNEL, SGD(Hinge(1.0, nu=0.25), 0.25, 0.0625), DropOldest(12)), "binary"),
    "classifier-alma": (KernelClassifier(KERNEL, Alma(0.875), Unbounded()), "binary"),
    "classifier-romma": (KernelClassifier(KERNEL, Romma(aggressive=True), Unbounded()), "binary"),
    "classifier-implicit": (
        KernelClassifier(KERNEL, Implicit(Hinge(), 0.5, 0.75, 0.125), DropSmallest(12)),
        "three",
    ),
    "classifier-adaptive": (
        KernelClassifier(KERNEL, StepSizeAdaptation(Hinge(), 0.25, 0.0625, 0.0625, 0.875), DropOldest(12)),
        "binary",
    ),
    "classifier-laplacian": (KernelClassifier(Laplacian(1.0), hinge, DropOldest(12)), "binary"),
    "classifier-laplacian-csr": (KernelClassifier(Laplacian(1.0), hinge, DropOldest(12)), "binary-csr"),
    "classifier-vovk": (KernelClassifier(Vovk(3), hinge, DropOldest(12)), "binary"),
    "classifier-manhattan": (KernelClassifier(Manhattan(), hinge, DropOldest(12)), "binary"),
    "classifier-sum": (
        KernelClassifier(0.5 * Normalized(Polynomial(2)) + Linear() * Exponential(1.5), hinge, DropOldest(12)),
        "binary",
    ),
    "classifier-additive": (KernelClassifier(Additive(Spline(0)), hinge, DropOldest(12)), "three-positive"),
    "classifier-additive-laplacian": (
        KernelClassifier(Additive(Laplacian(1.0)), PassiveAggressive(), DropRandom(12), random_state=2),
        "binary",
    ),
    "regressor": (KernelRegressor(KERNEL, PassiveAggressive(C=1.0, epsilon=0.0625), DropSmallest(12)), "number"),
    "regressor-float32": (KernelRegressor(KERNEL, tube, DropOldest(12)), "number-float32"),
    "regressor-nu": (KernelRegressor(KERNEL, SGD(Huber(0.125, nu=0.25), 0.25, 0.0625), Window(12)), "number"),
    "regressor-squared": (KernelRegressor(KERNEL, SGD(Squared(), 0.25, 0.0625), DropSmallest(12)), "number-csr"),
    "regressor-feasible": (KernelRegressor(KERNEL, FeasibleSet(0.0625, radius=4.0), Unbounded()), "number"),
    "regressor-average": (KernelRegressor(KERNEL, tube, Unbounded(), average=True), "number"),
    "regressor-additive": (
        KernelRegressor(
            Additive(Spline(1), columns=[0, 1]) + 0.5 * Additive(Laplacian(2.0), columns=[2]), tube, DropSmallest(12)
        ),
        "number-positive",
    ),
    "novelty": (KernelNovelty(KERNEL, SGD(Hinge(0.0, nu=0.125), 0.25, 0.0625), DropOldest(12)), "novelty"),
    "novelty-aggressive": (KernelNovelty(KERNEL, PassiveAggressive(0.125), DropRandom(12), random_state=1), "novelty"),
    "novelty-additive": (KernelNovelty(Additive(Laplacian(1.0)), hinge, DropOldest(12)), "novelty"),
    "feature-classifier": (FeatureClassifier(MAP, PassiveAggressive()), "three"),
    "feature-classifier-average": (FeatureClassifier(MAP, Perceptron(), average=True), "binary"),
    "feature-regressor": (FeatureRegressor(MAP, tube), "number"),
    "feature-regressor-float32": (FeatureRegressor(MAP, PassiveAggressive(epsilon=0.0625)), "number-float32"),
    "feature-novelty": (FeatureNovelty(MAP, hinge), "novelty"),
    "auc": (PairwiseAUC(buffer=ReservoirX(10), rate=0.25, random_state=0), "binary"),
    "auc-words": (PairwiseAUC(loss=Logistic(), buffer=Fifo(10), radius=2.0, random_state=0), "binary-words"),
    "auc-l1": (PairwiseAUC(loss=SquaredHinge(), buffer=Reservoir(10), radius=1.0, norm="l1", random_state=0), "binary"),
    "auc-average": (
        PairwiseAUC(loss=ExponentialLoss(), buffer=Fifo(8), rate=0.0625, radius=2.0, average=True),
        "binary",
    ),
    "auc-kernel": (
        PairwiseAUC(KERNEL, buffer=ReservoirX(6), radius=4.0, budget=DropSmallest(10), random_state=0),
        "binary",
    ),
    "auc-kernel-random": (
        PairwiseAUC(KERNEL, buffer=Fifo(6), budget=DropRandom(10), opposite_only=True, random_state=0),
        "binary",
    ),
    "auc-kernel-average": (
        PairwiseAUC(Laplacian(1.0), buffer=Fifo(6), budget=Unbounded(), average=True, random_state=0),
        "binary",
    ),
    "auc-map": (PairwiseAUC(buffer=Fifo(8), features=MAP, rate=0.25, random_state=0), "binary"),
    "oam": (OAM("gra", C=0.125, size=10, random_state=0), "binary"),
    "oam-seq": (OAM("seq", C=0.125, size=10, random_state=0), "binary"),
    "metric": (PairwiseMetric(buffer=ReservoirX(8), rate=0.25, random_state=0), "three"),
    "metric-trace": (PairwiseMetric(buffer=Fifo(8), radius=2.0, norm="trace", average=True), "binary"),
    "similarity": (PairwiseSimilarity(buffer=Fifo(8), rate=0.25, random_state=0), "three"),
    "similarity-psd": (
        PairwiseSimilarity(buffer=Reservoir(8), psd=True, goal="goodness", radius=2.0, norm="group", random_state=0),
        "binary",
    ),
    "prepared": (Prepared(KernelClassifier(KERNEL, hinge, DropOldest(12)), "standard"), "binary"),
    "prepared-minmax": (
        Prepared(KernelRegressor(KERNEL, tube, DropOldest(12)), "minmax", warmup=20, target=None),
        "number",
    ),
    "prepared-plain": (Prepared(KernelNovelty(KERNEL, hinge, DropOldest(12)), None), "novelty-csr"),
}

#: learners whose numbers pass NumPy, BLAS or LAPACK, whose last bits are the machine's own
BEYOND = {
    "structured": (StructuredLearner(KERNEL, labels=[0, 1, 2], budget=DropSmallest(12)), "three"),
    "structured-words": (
        StructuredLearner(KERNEL, ["grist", "mill", "water"], rule=Perceptron(), budget=DropRandom(12), random_state=4),
        "three-words",
    ),
    "structured-project": (
        StructuredLearner(KERNEL, [0, 1, 2], rule=MarginProjection(), budget=Project(0.75), average=True),
        "three-csr",
    ),
    "kernel-pca": (KernelPCA(2, KERNEL, Merge(12), decay=0.96875), "binary"),
    "kernel-k-means": (KernelKMeans(2, KERNEL, Project(0.5, 12), random_state=0), "binary"),
    "stream-landmarks": (StreamLandmarkClassifier(Manhattan(), n_landmarks=8, random_state=0), "three"),
    "stream-landmarks-binary": (StreamLandmarkClassifier(KERNEL, 8, freeze=30, C=0.5, random_state=0), "binary-words"),
    "stream-landmarks-number": (StreamLandmarkRegressor(KERNEL, 8, epsilon=0.0625, random_state=0), "number"),
    "pairs": (PairwiseLearner(AUCPairs(), L1Ball(1.0), buffer=Fifo(8), random_state=0), "binary"),
    "pairs-metric": (PairwiseLearner(MetricPairs(), PSDCone(), buffer=ReservoirX(8), random_state=0), "three"),
    "pairs-alignment": (PairwiseLearner(AlignmentPairs(SquaredHinge()), buffer=Fifo(8), reg=0.125), "binary"),
    "mixture": (TwoStageMKL([Gaussian(0.5), Gaussian(8.0), Linear()], buffer=Fifo(8), random_state=0), "three"),
    "mixture-views": (
        TwoStageMKL([OnColumns(Linear(), (0, 2)), Gaussian(1.0)], constraint="l2", average=True, buffer=Fifo(8)),
        "binary",
    ),
}

#: learners of a whole batch: only their files are kept
BATCH = {
    "landmarks": (Landmarks(KERNEL, 6, random_state=0), "binary"),
    "landmarks-csr": (Landmarks(KERNEL, 6, selection="diverse", random_state=0), "binary-csr"),
    "spectrum-landmarks": (SpectrumLandmarks(KERNEL, 6, random_state=0), "binary"),
    "landmark-classifier": (LandmarkClassifier(KERNEL, 6, random_state=0), "three-words"),
    "landmark-pairs": (LandmarkPairClassifier(KERNEL, 8, transfer=Ramp(5.0), random_state=0), "binary"),
    "landmark-regressor": (LandmarkRegressor(KERNEL, 6, random_state=0), "number"),
    "landmark-sparse": (SparseLandmarkRegressor(KERNEL, 4, 10, random_state=0), "number"),
    "landmark-ordinal": (LandmarkOrdinal(KERNEL, 6, random_state=0), "three"),
    "landmark-ranker": (LandmarkRanker(KERNEL, 6, random_state=0), "three"),
    "map": (MAP, "binary"),
    "map-exact": (RandomMaclaurin(Exponential(1.0), 12, exact_low_order=True, random_state=1), "binary"),
    "map-structured": (
        RandomMaclaurin(Polynomial(3, coef0=1.0), 12, structured=True, signs="real", random_state=1),
        "binary",
    ),
}

_NEEDED = {
    "kernel": KERNEL, "rate": 0.25, "reg": 0.0625, "nu": 0.25, "size": 12, "epsilon": 0.125, "C": 1.0, "passes": 1,
    "meta_rate": 0.0625, "decay": 0.875, "random_state": 0,
}  # fmt: skip


def catalogue_learners() -> dict[str, tuple[object, str]]:
    """Every function of the catalogue, with a budget of its own where it takes one."""
    import inspect

    found = {}
    for name in catalogue.__all__:
        function = getattr(catalogue, name)
        parameters = inspect.signature(function).parameters
        given = {k: _NEEDED[k] for k, p in parameters.items() if p.default is p.empty or k in ("size", "random_state")}
        if name.startswith("passive_aggressive"):
            given.pop("size")  # its own budget is another one by now
        model = function(**given)
        kind = {"classification": "binary", "regression": "number", "novelty": "novelty"}[model.learning_task.name]
        found[f"catalogue-{name}"] = (model, kind)
    return found


# ---- what is kept -------------------------------------------------------------------------------------------


def learn(model: object, X: object, y: object, kind: str) -> np.ndarray:
    """Scores before each event, where the learner goes along a stream."""
    import inspect

    named = known(kind, y) if "classes" in inspect.signature(model.prequential).parameters else {}
    return np.asarray(model.prequential(X, y, **named), dtype=np.float64)


def answers(model: object, X: object) -> np.ndarray:
    """What a model says of rows, as numbers."""
    for verb in ("decision_function", "transform", "predict"):
        if hasattr(model, verb):
            return np.asarray(getattr(model, verb)(X), dtype=np.float64)
    return np.asarray(getattr(model, "matrix_" if hasattr(model, "matrix_") else "weights_"), dtype=np.float64)


def digest(scores: np.ndarray) -> str:
    """SHA-256 of the exact numbers; minus zero counts as zero."""
    return hashlib.sha256(np.ascontiguousarray(scores + 0.0, dtype="<f8").tobytes()).hexdigest()[:32]
