from .cluster import Cluster as Cluster
from .fleet import ShardedFleet as ShardedFleet
from .log import LogError as LogError
