"""Named data sets from a data home: the files of the papers, wherever the reader keeps them.

The data home is the folder that the environment variable GRISTMILL_DATA names; else `gristmill` in the user's
cache. A file may lie there as it is or packed (.xz, .gz, .bz2, .zst).
"""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .streams.errors import StreamError
from .streams.files.source import open_binary
from .streams.read import read
from .streams.stream import Stream, from_arrays

_PACKED = ("", ".xz", ".gz", ".bz2", ".zst")
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"


@dataclass(frozen=True)
class Entry:
    """One data set: the file it lies in, what it is for, and where people get it."""

    file: str  #: without the ending of a packer
    task: str
    what: str
    n_features: int | None = None  #: of LIBSVM text whose last features never occur
    categorical: bool = False
    drop: tuple[int, ...] = ()  #: columns that are no features
    url: str = ""  #: for machines with a network
    labels: str = ""  #: a second file, for idx images


def _libsvm(file: str, what: str, n_features: int, name: str) -> Entry:
    return Entry(file, "classification", what, n_features, url=f"{_LIBSVM}binary/{name}")


_ENTRIES = {
    "a9a": _libsvm("a9a.libsvm", "Adult census income, binary encoding", 123, "a9a"),
    "a9a.t": _libsvm("a9a.t.libsvm", "Adult, test part", 123, "a9a.t"),
    "ijcnn1": _libsvm("ijcnn1.libsvm", "IJCNN 2001 challenge", 22, "ijcnn1.bz2"),
    "ijcnn1.t": _libsvm("ijcnn1.t.libsvm", "IJCNN 2001 challenge, test part", 22, "ijcnn1.t.bz2"),
    "cod-rna": _libsvm("cod-rna.libsvm", "Non-coding RNA; sorted by label", 8, "cod-rna"),
    "fourclass": _libsvm("fourclass.libsvm", "Ho and Kleinberg's fourclass", 2, "fourclass_scale"),
    "usps": Entry("usps-train.csv", "classification", "USPS digits, 16 x 16, raw grey values in [-1, 1]"),
    "usps.t": Entry("usps-test.csv", "classification", "USPS digits, test part"),
    "mnist": Entry(
        "train-images-idx3-ubyte", "classification", "MNIST digits, 28 x 28, 0 to 255",
        url=f"{_MNIST}train-images-idx3-ubyte.gz", labels="train-labels-idx1-ubyte",
    ),
    "mnist.t": Entry(
        "t10k-images-idx3-ubyte", "classification", "MNIST digits, test part",
        url=f"{_MNIST}t10k-images-idx3-ubyte.gz", labels="t10k-labels-idx1-ubyte",
    ),
    "spambase": Entry("spambase.csv", "classification", "UCI Spambase, 1 is spam"),
    "nursery": Entry("nursery.csv", "classification", "UCI Nursery, all categories", categorical=True),
    "heart": Entry("heart.csv", "classification", "Statlog heart"),
    "diabetes": Entry("diabetes.csv", "classification", "Pima Indians diabetes"),
    "german": Entry("german.csv", "classification", "Statlog German credit, numeric"),
    "ionosphere": Entry("ionosphere.csv", "classification", "UCI Ionosphere"),
    "svmguide1": Entry("svmguide1.csv", "classification", "Astroparticle application"),
    "svmguide1.t": Entry("svmguide1.t.csv", "classification", "Astroparticle application, test part"),
    "breast-cancer": Entry(
        "breast-cancer.csv", "classification", "Wisconsin breast cancer, sample number left out", drop=(0,)
    ),
    "elec2": Entry("elec2.csv", "classification", "Electricity prices of New South Wales, in time order"),
    "voting": Entry("voting.csv", "classification", "Congressional voting records", categorical=True),
    "aural-sonar": Entry("sim-aural-sonar.csv", "classification", "Aural Sonar, a matrix of similarities of 100 objects"),
    "protein": Entry("sim-protein.csv", "classification", "Protein, a matrix of evolutionary distances of 213 objects"),
    "abalone": Entry("abalone.csv", "regression", "UCI Abalone, age in rings", categorical=True),
    "cadata": Entry("cadata.csv", "regression", "California housing"),
    "winequality-red": Entry("winequality-red.csv", "regression", "UCI Wine Quality, red"),
    "winequality-white": Entry("winequality-white.csv", "regression", "UCI Wine Quality, white"),
    "cpusmall": Entry("cpusmall.csv", "regression", "Computer activity, small set"),
    "puma8nh": Entry("puma8nh.csv", "regression", "PumaDyn, 8 dimensions, noisy"),
    "bodyfat": Entry("bodyfat.csv", "regression", "StatLib bodyfat"),
    "kdd-http": Entry("kdd-http.csv", "novelty", "KDD Cup 99, http connections; 1 is an attack"),
    "stream-weather": Entry("stream-weather.csv", "classification", "Weather at Bellevue, one row a day, in time order"),
    "stream-outdoor": Entry("stream-outdoor.csv", "classification", "40 objects seen outdoors, in time order"),
    "stream-pageblocks": Entry("stream-pageblocks.csv", "classification", "Blocks of pages, five classes, some rare"),
    "novelty-thyroid": Entry("novelty-thyroid.csv", "novelty", "UCI Thyroid; 1 is an anomaly"),
    "novelty-mammography": Entry("novelty-mammography.csv", "novelty", "Mammography; 1 is an anomaly"),
    "novelty-vowels": Entry("novelty-vowels.csv", "novelty", "Japanese vowels; 1 is an anomaly"),
    "novelty-shuttle": Entry("novelty-shuttle.csv", "novelty", "Statlog Shuttle, anomalies in clusters; 1 is an anomaly"),
}  # fmt: skip


#: what `digest` gives for the sets that can be fetched
_DIGESTS = {
    "a9a": "440813b1ff1618c0353b6daaa0c3aadc4c7b7fc0ec0c7c049feb755bf2030738",
    "a9a.t": "52e087cc76a8cef1dbf3f88c626bb4ca4360b87b430dc023002189e7990cdb1a",
    "ijcnn1": "0619df459978431e3b0ce65fe5dc0bec394972ddb5cb582873f7c8c911facc0c",
    "ijcnn1.t": "f2fe4800ce729323fc08fb0c4877931802976a1234b850f2d7c33347ffec69ca",
    "cod-rna": "4e4aff25fad0646f5436d806ebf1a2a8ecd1b85c3f36af7992b98cb520cdd03e",
    "fourclass": "dca6d1b58f4567b7e5fb10f9b02e02347f4d30956288912b64f021bb1cd4900d",
    "mnist": "6322396f64cff679701b5bf10e94064c514a3b68e5ac5ac8025c01c8966866de",
    "mnist.t": "0498b655ace6df3e131df5dac47996f29125fdf90ac9916ac5392445151db2ac",
}


def names() -> list[str]:
    """The names that `load` knows.

    Examples
    --------
    >>> from gristmill import datasets
    >>> len([name for name in datasets.names() if name.startswith("mnist")])
    2
    """
    return list(_ENTRIES)


def home() -> Path:
    """The data home: GRISTMILL_DATA, or the user's cache."""
    folder = os.environ.get("GRISTMILL_DATA")
    if folder:
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gristmill"


def path_of(name: str) -> Path:
    """Path of a data set; if it is missing, the error explains how to get it."""
    return _find(name, _entry(name).file)


def load(name: str) -> Stream:
    """A data set of the papers as a stream, in the order of its file.

    Parameters
    ----------
    name : str
        One of `names()`.

    Examples
    --------
    >>> from gristmill import datasets
    >>> datasets.load("a8a")
    Traceback (most recent call last):
    ...
    ValueError: unknown data set 'a8a'; did you mean 'a9a'?
    """
    entry, path = _entry(name), path_of(name)
    if entry.labels:
        X = _idx(path).reshape(-1, 28 * 28).astype(np.float64)
        return from_arrays(X, _idx(_find(name, entry.labels)).astype(np.int64), name=name)
    stream = read(
        path,
        "libsvm" if entry.file.endswith(".libsvm") else "csv",
        n_features=entry.n_features,
        categorical="onehot" if entry.categorical else None,
    )
    if entry.task == "classification" and not entry.drop:
        return Stream(stream.chunks, name=name)
    return Stream(lambda: (_adapted(chunk, entry) for chunk in stream), name=name)


def _adapted(chunk: Any, entry: Entry) -> Any:
    X, y = chunk.X, chunk.y
    if entry.drop:
        X = np.delete(X, entry.drop, axis=1)
    if entry.task == "regression":
        y = np.asarray(y, dtype=np.float64)
    if entry.task == "novelty":
        y = np.where(np.asarray(y) == 1, -1, 1)  # scikit-learn's outlier labels
    return chunk._replace(X=X, y=y, names=None if entry.drop else chunk.names)


def _entry(name: str) -> Entry:
    if name not in _ENTRIES:
        near = difflib.get_close_matches(name, _ENTRIES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_ENTRIES)}"
        raise ValueError(f"unknown data set {name!r}{hint}")
    return _ENTRIES[name]


def _find(name: str, file: str) -> Path:
    folder = home()
    for ending in _PACKED:
        path = folder / f"{file}{ending}"
        if path.exists():
            return path
    url = _entry(name).url
    how = f"fetch it with gristmill.datasets.fetch({name!r}), or put" if url else "put"
    source = f" (from {url})" if url else ""
    raise FileNotFoundError(
        f"{name}: {file} is not in the data home {folder}: {how} the file there{source}, plain or packed as "
        f".xz, .gz or .bz2; GRISTMILL_DATA says where the data home is"
    )


def digest(name: str) -> str:
    """The checksum of what a data set says, whatever it is packed in and however its numbers are written.

    SHA-256 over the numbers of non-zeros of the rows, their columns, their values and the labels; a dense
    set has values and labels only.

    Parameters
    ----------
    name : str
    """
    counts, columns, values, labels = (hashlib.sha256() for _ in range(4))
    for chunk in load(name):
        X = chunk.X
        if hasattr(X, "tocsr"):
            X = X.tocsr(copy=True)
            X.eliminate_zeros()
            X.sort_indices()
            counts.update(np.diff(X.indptr).astype("<i8").tobytes())
            columns.update(X.indices.astype("<i8").tobytes())
            X = X.data
        values.update(np.ascontiguousarray(X, dtype="<f8").tobytes())
        labels.update("".join(f"{label}\n" for label in np.asarray(chunk.y).tolist()).encode())
    whole = hashlib.sha256(b"".join(part.digest() for part in (counts, columns, values, labels)))
    return whole.hexdigest()


def fetch(name: str, url: str | None = None, sha256: str | None = None) -> Path:
    """Download a data set into the data home; needs a network.

    Parameters
    ----------
    name : str
    url : str, optional
        The usual place otherwise.
    sha256 : str, optional
        The checksum of the downloaded file. Without one the numbers in it are checked, by `digest`: they must
        be those that this library was tested with. What does not pass is deleted.

    Returns
    -------
    path : Path
    """
    entry = _entry(name)
    address = url or entry.url
    if not address:
        raise ValueError(f"{name}: no address is known; give url=, or put {entry.file} into {home()}")
    try:
        import pooch
    except ImportError:
        raise ImportError("fetch needs pooch: pip install 'gristmill[data]'") from None
    if entry.labels and entry.file not in address:
        raise ValueError(f"{name}: the address must hold {entry.file}, for that of its labels to be found")
    home().mkdir(parents=True, exist_ok=True)
    ending = next((e for e in _PACKED[1:] if address.endswith(e)), "")
    pooch.get_logger().setLevel("WARNING")  # it logs the checksum, which is checked here
    known = None if sha256 is None else f"sha256:{sha256}"
    got = [pooch.retrieve(address, known, fname=f"{entry.file}{ending}", path=home())]
    if entry.labels:
        other = address.replace(entry.file, entry.labels)
        got.append(pooch.retrieve(other, None, fname=f"{entry.labels}{ending}", path=home()))
    if sha256 is None:
        _check(name, got)
    return path_of(name)


def _check(name: str, files: list[str]) -> None:
    expected = _DIGESTS.get(name, "")
    found = ""
    try:
        found = digest(name) if expected else ""
    finally:
        if found != expected:
            for file in files:
                Path(file).unlink()
    if found != expected:
        raise ValueError(
            f"{name}: the download does not hold the numbers of {name} (digest {found}, expected {expected}); it was "
            f"deleted. Give sha256= to take another version on purpose"
        )


def _idx(path: Path) -> Any:
    """An array in the idx format of MNIST."""
    file, name = open_binary(path)
    with file:
        head = file.read(4)
        if len(head) < 4 or head[:3] != b"\0\0\x08":
            raise StreamError(f"{name}: this is not an idx file of bytes")
        shape = tuple(int.from_bytes(file.read(4), "big") for _ in range(head[3]))
        data = np.frombuffer(file.read(), dtype=np.uint8)
    if data.size != int(np.prod(shape)):
        raise StreamError(f"{name}: {data.size} bytes where {shape} were announced")
    return data.reshape(shape)
