"""A program that feeds a cluster, to be killed and started again: `cluster_program.py ADDRESS FOLDER SHARDS COUNT`.

After every third batch it prints the processes of its shards and the digest of all keys, and once more at the end.
"""

from __future__ import annotations

import json
import sys

import cluster_stream
import numpy as np

from gristmill.cluster import Cluster


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def main(address: str, folder: str, shards: int, count: int) -> None:
    with Cluster(address, shards=shards, snapshots=folder, every=300, progress=False) as cluster:
        keyed = cluster.keyed(cluster_stream.fleet())
        say(position=keyed.position_, processes=[row.process for row in cluster.report()])
        for number in range(keyed.position_ + 1, count + 1):
            said = keyed.prequential(*cluster_stream.batch(number), position=number)
            if number % 3 == 0:
                found = cluster_stream.digest(keyed.collect())
                say(position=number, processes=[row.process for row in cluster.report()], at=number, found=found)
            if number == count:
                say(scores=np.asarray(said).tolist())
            keyed.partial_fit(*cluster_stream.batch(number), position=number)  # once more, which changes nothing
        say(digest=cluster_stream.digest(keyed.collect()), report=cluster.report().rows(), position=keyed.position_)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
