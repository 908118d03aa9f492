"""Keyed fleets over several processes: driver, shards, the durable log, snapshots; Ray only in `ray_workers.py`.

Imported by `cluster.py`. Begin with `driver.py` and `shard.py`.
"""
