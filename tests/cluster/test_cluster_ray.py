"""Fleets on a real Ray of two workers: shards, drivers and both are killed, and the result is that of one process.

A few kills here; GRISTMILL_CHAOS says how many by `make chaos`.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import cluster_jobs
import cluster_stream
import numpy as np
import pytest

import gristmill
from gristmill.evaluate import compare
from gristmill.streams import drifting_digits

pytestmark = pytest.mark.alone
HERE = Path(__file__).parent.parent / "support"
KILLS = int(os.environ.get("GRISTMILL_CHAOS", "3"))
TOKEN = secrets.token_hex(32)  # of the Ray that is started here, and of no other
RAY = """
import sys, ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
         _node_ip_address="127.0.0.1", object_store_memory=200_000_000)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""


def environment():
    path = os.pathsep.join([str(HERE), *(entry for entry in sys.path if entry)])
    ray = {
        "RAY_worker_niceness": "0",
        "RAY_raylet_start_wait_time_s": "120",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
    }
    return {**os.environ, **ray, "PYTHONPATH": path}


@pytest.fixture(scope="module")
def address():
    """A Ray of two workers that outlives the programs that use it."""
    for _ in range(3):  # on a busy machine the parts of Ray may lose patience with each other
        with subprocess.Popen(
            [sys.executable, "-c", RAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        ) as ray:
            found = ray.stdout.readline().strip()
            if found:
                yield found
                ray.stdin.close()
                return
    pytest.fail("Ray did not start")


class Driver:
    """A program in a process of its own."""

    def __init__(self, address, folder, shards=2, count=20):
        command = [sys.executable, str(HERE / "cluster_program.py"), address, str(folder), str(shards), str(count)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        )
        self.last = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def read(self):
        """The next line that it says, or None at its end."""
        line = "-"
        while line and not line.startswith("{"):  # Ray says on standard output, too, when a worker dies
            line = self.process.stdout.readline()
        if not line:
            return None
        self.last = {**self.last, **json.loads(line)}
        return self.last

    def until(self, position):
        while self.last.get("position", -1) < position:
            assert self.read() is not None, self.process.stderr.read()
        return self.last

    def finish(self):
        while self.read() is not None:
            pass
        assert "digest" in self.last, self.process.stderr.read()
        return self.last

    def kill(self):
        self.process.kill()
        self.process.wait()


def end(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def in_the_middle_of_a_snapshot(folder, driver):
    """Waits for a file that is being written; False where the program comes to its end without one being seen."""
    while driver.process.poll() is None:
        if any(name.endswith(".part") for name in os.listdir(folder / "keyed")):
            return True
        time.sleep(0.0002)  # the program needs the processor, too
    return False


@pytest.fixture(scope="module")
def wanted():
    return cluster_stream.alone(20)


def test_a_shard_that_is_killed_comes_back_and_nothing_shows(address, wanted, tmp_path):
    with Driver(address, tmp_path) as driver:
        said = driver.until(3)
        assert end(said["processes"][1])
        said = driver.until(9)
        assert end(said["processes"][0])
        said = driver.finish()
    assert said["digest"] == wanted[0]
    np.testing.assert_array_equal(np.array(said["scores"]), wanted[1])
    assert [row["restarts"] >= 1 for row in said["report"]] == [True, True]
    assert sum(row["keys"] for row in said["report"]) == cluster_stream.KEYS
    assert said["position"] == 20
    with Driver(address, tmp_path, shards=3, count=23) as driver:  # two shards become three, and the stream goes on
        said = driver.finish()
    assert said["digest"] == cluster_stream.alone(23)[0]
    assert len(said["report"]) == 3


def test_ctrl_c_stops_cleanly_and_leaves_snapshots(address, tmp_path):
    with Driver(address, tmp_path, count=10**6) as driver:
        driver.until(6)
        os.killpg(driver.process.pid, signal.SIGINT)
        _, err = driver.process.communicate(timeout=300)
        assert driver.process.returncode != 0
        assert "KeyboardInterrupt" in err
        assert "stopping: the shards write snapshots" in err
    names = [name for name in os.listdir(tmp_path / "keyed") if name.endswith(".snapshot")]
    newest = {shard: max(int(name[10:22]) for name in names if name[5:9] == f"{shard:04d}") for shard in (0, 1)}
    assert newest[0] == newest[1] >= 6
    with Driver(address, tmp_path, count=newest[0] + 2) as driver:
        said = driver.finish()
    assert said["digest"] == cluster_stream.alone(newest[0] + 2)[0]
    assert [row["replayed"] for row in said["report"]] == [0, 0]


class Reference:
    """One fleet in one process, and its digest after each batch."""

    def __init__(self):
        self.fleet, self.digests = cluster_stream.fleet(), {}

    def __getitem__(self, position):
        for number in range(len(self.digests) + 1, position + 1):
            self.fleet.partial_fit(*cluster_stream.batch(number))
            self.digests[number] = cluster_stream.digest(self.fleet)
        return self.digests[position]


def test_random_kills_of_shard_driver_and_both(address, tmp_path):
    """One stream, and kills at random moments of it, most in the middle of a snapshot; the digest is compared after each."""
    rng = np.random.default_rng(int(os.environ.get("GRISTMILL_SEED", "0")))
    reference, begun, caught = Reference(), time.monotonic(), 0
    driver = Driver(address, tmp_path, count=10**6)
    try:
        for kill in range(KILLS):
            victim = ("both", "shard", "driver")[kill % 3]
            said = driver.until(driver.last.get("position", 0) + int(rng.integers(1, 6)))
            waits = rng.random() < 0.7
            caught += waits and in_the_middle_of_a_snapshot(tmp_path, driver)
            if victim != "driver":
                end(said["processes"][int(rng.integers(2))])
            if victim != "shard":
                driver.kill()
                driver.__exit__()
                driver = Driver(address, tmp_path, count=10**6)
                driver.until(0)
            at = driver.last["position"] + 3
            while driver.last.get("at", 0) < at:
                assert driver.read() is not None, driver.process.stderr.read()
            assert driver.last["found"] == reference[driver.last["at"]], (kill, victim)
            print(f"kill {kill + 1} of {KILLS} ({victim}): digests equal, {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        driver.__exit__()
    print(f"{caught} of them in the middle of a snapshot")


def run(*command, timeout=300):
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, env=environment(), timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_data_that_live_apart_and_many_settings(address, tmp_path):
    out = run(HERE / "cluster_jobs.py", address, tmp_path)
    said = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    alone = compare(cluster_jobs.grid(), drifting_digits(n_events=1500))
    assert said["map"] == [result.model.to_bytes().hex() for result in alone]
    assert "perceptron" in said["table"]
    assert said["fit"]["points"] <= 100
    assert min(said["fit"]["right"], said["race"], said["dataset"]) > 0.85
    assert [fit[1:] for fit in said["fits"][:2]] == [[399, 3], [400, 2]]
    assert "events held out" in said["report"]


def test_the_command_line_goes_on_over_files(address, tmp_path):
    """A run over one file, then one over both, which goes on after the first; the model is that of one process."""
    rng = np.random.default_rng(0)
    for name, count in (("a.csv", 600), ("b.csv", 400)):
        keys, X = rng.integers(0, 10, size=count), rng.normal(size=(count, 2))
        rows = [
            f"s{key},{u!r},{v!r},{'up' if u * v > 0 else 'down'}" for key, (u, v) in zip(keys, X.tolist(), strict=True)
        ]
        (tmp_path / name).write_text("device,u,v,label\n" + "\n".join(rows) + "\n")
    start = ["-c", "from gristmill.cli import main; main()", "learn", "--key", "device"]
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    on_ray = [*start, "--cluster", address, "--snapshots", tmp_path / "snapshots"]
    run(*start, *files, "--no-prior", "--model", tmp_path / "one")
    run(*on_ray, files[0])
    out = run(*on_ray, *files, "--model", tmp_path / "two", "--json")
    said = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    assert said["n_events"] == 400
    assert said["keys"] == 10
    one, two = gristmill.load(tmp_path / "one"), gristmill.load(tmp_path / "two")
    assert two.key_column_ == "device"
    assert sorted(one.keys_) == sorted(two.keys_)
    assert all(one[key].to_bytes() == two[key].to_bytes() for key in one.keys_)
    run(*on_ray, *files, "--model", tmp_path / "three")  # all was learned before
    assert (tmp_path / "three").read_bytes() == (tmp_path / "two").read_bytes()


LOCAL = """
import socket
from gristmill.cluster import Cluster
with Cluster(None, shards=1, progress=False):
    import ray
    print([node["NodeManagerAddress"] for node in ray.nodes()])
    host, port = ray.get_runtime_context().gcs_address.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; it tells which address of this machine others see
        own = probe.getsockname()[0]
    for place in (host, own):
        with socket.socket() as probe:
            probe.settimeout(10)
            print(place, probe.connect_ex((place, int(port))) == 0)
"""


def test_without_an_address_ray_listens_on_the_loopback_address():
    found = subprocess.run(
        [sys.executable, "-c", LOCAL], check=True, capture_output=True, text=True, env=environment()
    ).stdout.splitlines()
    assert found[0] == "['127.0.0.1']"
    assert found[1] == "127.0.0.1 True"
    assert found[2].endswith(" False") or found[2].startswith("127.")
