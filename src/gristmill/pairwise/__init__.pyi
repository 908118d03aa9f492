from .auc import PairwiseAUC as PairwiseAUC
from .buffers import Fifo as Fifo, PairBuffer as PairBuffer, Reservoir as Reservoir, ReservoirX as ReservoirX
from .learner import AlignmentPairs as AlignmentPairs, AUCPairs as AUCPairs, GoodnessPairs as GoodnessPairs
from .learner import MetricPairs as MetricPairs, PairwiseLearner as PairwiseLearner, PairwiseLoss as PairwiseLoss
from .losses import ExponentialLoss as ExponentialLoss, SquaredHinge as SquaredHinge
from .metric import PairwiseMetric as PairwiseMetric
from .mkl import OnColumns as OnColumns, TwoStageMKL as TwoStageMKL
from .oam import OAM as OAM
from .projections import ConvexSet as ConvexSet, GroupBall as GroupBall, L1Ball as L1Ball, L2Ball as L2Ball
from .projections import PSDCone as PSDCone, Simplex as Simplex, TraceBall as TraceBall
from .similarity import PairwiseSimilarity as PairwiseSimilarity
