from .cluster import Cluster as Cluster
from .shards.log import LogError as LogError
from .shards.sharded_fleet import ShardedFleet as ShardedFleet
