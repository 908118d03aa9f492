from .classifiers import LandmarkClassifier as LandmarkClassifier
from .compare import SimilarityError as SimilarityError
from .criteria import Goodness as Goodness, GoodnessReport as GoodnessReport, goodness as goodness
from .landmarks import Landmarks as Landmarks
from .ordinal import LandmarkOrdinal as LandmarkOrdinal
from .pairs import LandmarkPairClassifier as LandmarkPairClassifier
from .ranking import LandmarkRanker as LandmarkRanker
from .regression import LandmarkRegressor as LandmarkRegressor
from .sparse import SparseLandmarkRegressor as SparseLandmarkRegressor
from .stream import StreamLandmarkClassifier as StreamLandmarkClassifier
from .stream import StreamLandmarkRegressor as StreamLandmarkRegressor
from .transfer import Identity as Identity, Ramp as Ramp, Sign as Sign
