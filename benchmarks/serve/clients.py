"""Clients of others: Triton's for the Open Inference Protocol, and Prometheus' parser."""

from __future__ import annotations

import tempfile
from typing import Any

import httpx
import numpy as np

from .servers import service


def run() -> list[tuple[str, bool, str]]:
    """What was asked, whether the answer was right, and details."""
    import tritonclient.http as triton
    from prometheus_client.parser import text_string_to_metric_families

    X = np.random.default_rng(0).normal(size=(200, 3))
    found: list[tuple[str, bool, str]] = []
    with (
        tempfile.TemporaryDirectory() as folder, service(folder, "passive_aggressive(Gaussian(0.5), size=50)") as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=30, trust_env=False) as plain,
    ):  # fmt: skip
        labels = ["near" if value < 0 else "far" for value in X[:, 0] * X[:, 1]]
        plain.post("/v1/models/m/learn", json={"rows": X.tolist(), "labels": labels})
        expected = plain.post("/v1/models/m/predict", json={"rows": X[:9].tolist()}).json()["predictions"]
        client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
        try:
            live = client.is_server_live() and client.is_server_ready() and client.is_model_ready("m")
            found.append(("tritonclient: live, ready, model ready", live, ""))
            about = client.get_model_metadata("m")
            found.append(("tritonclient: metadata", about["name"] == "m", about["outputs"][0]["datatype"]))
            for binary in (True, False):
                answer = _infer(triton, client, X[:9], binary)
                good = [one.decode() if isinstance(one, bytes) else one for one in answer.tolist()] == expected
                found.append(
                    (f"tritonclient: infer, {'binary' if binary else 'JSON'} tensors", good, f"{len(answer)} rows")
                )
        finally:
            client.close()
        families = list(text_string_to_metric_families(plain.get("/metrics").text))
        learned = next(one for one in families if one.name == "gristmill_learned_rows").samples[0].value
        found.append(("prometheus_client's parser: /metrics", learned == 200, f"{len(families)} families"))
    return found


def _infer(triton: Any, client: Any, rows: Any, binary: bool) -> Any:
    tensor = triton.InferInput("rows", list(rows.shape), "FP64")
    tensor.set_data_from_numpy(rows, binary_data=binary)
    output = triton.InferRequestedOutput("prediction", binary_data=binary)
    return client.infer("m", [tensor], outputs=[output]).as_numpy("prediction")
