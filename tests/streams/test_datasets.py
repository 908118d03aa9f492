"""Named data sets from a data home made for the test, and fetched from a local server."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import lzma
import threading

import numpy as np
import pytest

from gristmill import datasets
from gristmill.streams import StreamError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    return tmp_path


def put(path, text, pack=lzma.compress):
    path.write_bytes(pack(text if isinstance(text, bytes) else text.encode()))


def test_libsvm_csv_and_plain(home):
    put(home / "a9a.libsvm.xz", "-1 3:1 7:1\n+1 1:1\n")
    X, y = datasets.load("a9a").arrays()
    assert (X.shape, y.tolist()) == ((2, 123), [-1, 1])
    put(home / "elec2.csv", "a,b,class\n1,2,UP\n3,4,DOWN\n", pack=bytes)
    assert datasets.load("elec2").arrays()[1].tolist() == ["UP", "DOWN"]
    put(home / "cadata.csv.gz", "a,price\n1,2\n3,4\n", gzip.compress)
    assert datasets.load("cadata").arrays()[1].dtype == np.float64


def test_categories_dropped_columns_and_attacks(home):
    put(home / "abalone.csv.xz", "Sex,Length,Rings\nM,0.5,9\nF,0.4,7\n")
    assert datasets.load("abalone").arrays()[0].tolist() == [[0.0, 1.0, 0.5], [1.0, 0.0, 0.4]]
    put(home / "breast-cancer.csv.xz", "id,a,Class\n100,1,benign\n200,2,malignant\n")
    assert datasets.load("breast-cancer").arrays()[0].tolist() == [[1.0], [2.0]]
    put(home / "sim-protein.csv.xz", "d1,d2,class\n0,0.5,HA\n0.5,0,G\n")
    X, y = datasets.load("protein").arrays()
    assert (X.tolist(), y.tolist()) == ([[0.0, 0.5], [0.5, 0.0]], ["HA", "G"])
    put(home / "kdd-http.csv.xz", "a,attack\n1,0\n2,1\n")
    assert datasets.load("kdd-http").arrays()[1].tolist() == [1, -1]


def idx(array):
    head = b"\0\0\x08" + bytes([array.ndim])
    return head + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.astype(np.uint8).tobytes()


def test_mnist(home):
    images = np.arange(2 * 784).reshape(2, 28, 28) % 256
    put(home / "train-images-idx3-ubyte.xz", idx(images))
    put(home / "train-labels-idx1-ubyte.xz", idx(np.array([7, 2])))
    X, y = datasets.load("mnist").arrays()
    assert np.array_equal(X, images.reshape(2, 784))
    assert y.tolist() == [7, 2]
    put(home / "train-images-idx3-ubyte.xz", idx(images)[:-5])
    with pytest.raises(StreamError, match="1563 bytes where"):
        datasets.load("mnist")
    put(home / "train-images-idx3-ubyte.xz", b"nonsense")
    with pytest.raises(StreamError, match="this is not an idx file"):
        datasets.load("mnist")


def test_what_is_not_there_is_explained(home):
    with pytest.raises(FileNotFoundError, match=r"a9a: a9a.libsvm is not in the data home .*datasets.fetch\('a9a'\)"):
        datasets.load("a9a")
    with pytest.raises(FileNotFoundError, match=r"heart\.csv is not in the data home .*: put the file there"):
        datasets.load("heart")
    with pytest.raises(ValueError, match="did you mean 'ijcnn1'"):
        datasets.load("ijcnn")


def test_home_is_the_cache_unless_said(monkeypatch, tmp_path):
    monkeypatch.delenv("GRISTMILL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.home() == tmp_path / "gristmill"


@pytest.fixture
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, directory=str(folder), **settings)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def test_fetch_checks_the_sum(home, server):
    folder, address = server
    data = lzma.compress(b"-1 1:1\n1 2:1\n")
    (folder / "a9a.xz").write_bytes(data)
    wrong = "0" * 64
    with pytest.raises(ValueError, match="hash"):
        datasets.fetch("a9a", f"{address}/a9a.xz", sha256=wrong)
    with pytest.raises(FileNotFoundError):
        datasets.load("a9a")
    path = datasets.fetch("a9a", f"{address}/a9a.xz", sha256=hashlib.sha256(data).hexdigest())
    assert path == home / "a9a.libsvm.xz"
    assert datasets.load("a9a").arrays()[1].tolist() == [-1, 1]
    with pytest.raises(ValueError, match="heart: no address is known"):
        datasets.fetch("heart")


def test_fetch_checks_the_numbers(home, server, monkeypatch):
    """However they are written: packed or not, with blanks, with zeros written out, as 1.0 or as 1."""
    folder, address = server
    (folder / "a9a").write_bytes(b"-1 1:1 3:0.5 \n+1 2:0 7:1\n")
    with pytest.raises(ValueError, match=r"does not hold the numbers of a9a \(digest [0-9a-f]{64}, expected 44081"):
        datasets.fetch("a9a", f"{address}/a9a")
    assert list(home.iterdir()) == []
    put(home / "a9a.libsvm.xz", "-1 1:1.0 3:5e-1\n1 7:1\n")
    monkeypatch.setitem(datasets._DIGESTS, "a9a", datasets.digest("a9a"))
    (home / "a9a.libsvm.xz").unlink()
    assert datasets.fetch("a9a", f"{address}/a9a") == home / "a9a.libsvm"
    put(home / "a9a.libsvm", "-1 1:1.0 3:5e-1\n1 7:2\n", pack=bytes)
    assert datasets.digest("a9a") != datasets._DIGESTS["a9a"]


def test_images_are_fetched_with_their_labels(home, server, monkeypatch):
    folder, address = server
    images, labels = np.arange(2 * 784, dtype=np.uint8), np.array([7, 3], dtype=np.uint8)
    head = b"\0\0\x08"
    put(home / "train-images-idx3-ubyte", head + b"\3\0\0\0\2\0\0\0\x1c\0\0\0\x1c" + images.tobytes(), bytes)
    put(home / "train-labels-idx1-ubyte", head + b"\1\0\0\0\2" + labels.tobytes(), bytes)
    monkeypatch.setitem(datasets._DIGESTS, "mnist", datasets.digest("mnist"))
    for path in list(home.iterdir()):
        put(folder / f"{path.name}.gz", path.read_bytes(), gzip.compress)
        path.unlink()
    datasets.fetch("mnist", f"{address}/train-images-idx3-ubyte.gz")
    assert datasets.load("mnist").arrays()[1].tolist() == [7, 3]
    with pytest.raises(ValueError, match="the address must hold t10k-images-idx3-ubyte"):
        datasets.fetch("mnist.t", f"{address}/train-images-idx3-ubyte.gz")


def test_a_download_that_cannot_be_read_is_deleted(home, server):
    folder, address = server
    (folder / "a9a").write_bytes(b"<html>moved</html>\n")
    with pytest.raises(ValueError, match="line 1"):
        datasets.fetch("a9a", f"{address}/a9a")
    assert list(home.iterdir()) == []
