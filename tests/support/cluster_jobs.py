"""Data that live apart and many settings, on Ray: `cluster_jobs.py ADDRESS FOLDER` prints what came of them as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from gristmill import AutoClassifier, Gaussian, Prepared, passive_aggressive, perceptron
from gristmill.cluster import Cluster
from gristmill.streams import drifting_digits


def data(count: int = 4000):
    X = np.random.default_rng(0).normal(size=(count, 3)) * [1.0, 50.0, 1.0]
    return X, np.where(X[:, 0] * X[:, 1] > 0, "up", "down")


def write_parts(folder: Path) -> list[str]:
    """Three files of Parquet, each with a third of the events."""
    import pyarrow as pa
    from pyarrow import parquet

    X, y = data()
    paths = [str(folder / f"part-{part}.parquet") for part in range(3)]
    for part, path in enumerate(paths):
        columns = {name: X[part::3, at] for at, name in enumerate("abc")}
        parquet.write_table(pa.table({**columns, "label": y[part::3]}), path)
    return paths


def grid():
    return {f"PA {size}": passive_aggressive(Gaussian(0.001), size=size, random_state=0) for size in (20, 60)} | {
        "perceptron": perceptron(Gaussian(0.001), random_state=0)
    }


def main(address: str, folder: Path) -> None:
    X, y = data()
    paths = write_parts(folder)
    with Cluster(address, shards=2, progress=False) as cluster:
        mapped = cluster.map(grid(), drifting_digits(n_events=1500))
        said = {"map": [model.to_bytes().hex() for model in mapped], "table": str(mapped)}
        learner = Prepared(passive_aggressive(Gaussian(0.5), size=150))
        model = cluster.fit(learner, paths, size=100)
        said["fit"] = {"points": int(model.model_.n_support_), "right": float((model.predict(X) == y).mean())}
        race = cluster.fit(AutoClassifier(memory="200 kB"), [(X[0::2], y[0::2]), (X[1::2], y[1::2])], size="150 kB")
        said["race"] = float((race.predict(X) == y).mean())
        import pyarrow.parquet
        import ray

        # Ray's own reader of files asks for a package that it does not install.
        dataset = ray.data.from_arrow([pyarrow.parquet.read_table(path) for path in paths])
        found = cluster.fit(learner, dataset, target="label", size=100)
        said["dataset"] = float((found.predict(X) == y).mean())
        said["fits"] = [[fit.loss, fit.held_out, len(fit.apart)] for fit in cluster.report().fits]
        said["report"] = str(cluster.report())
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
