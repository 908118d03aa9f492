"""What a person writes without a service: FastAPI around River's adaptive random forest, pickled every 1,000 events."""

from __future__ import annotations

import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import fastapi
import pydantic
import uvicorn

from river import forest


class Body(pydantic.BaseModel):
    rows: list[dict[str, float]]
    labels: list[bool]


def application(folder: Path) -> Any:
    """Two lines of learning, one of saving."""
    app, model, lock, seen = fastapi.FastAPI(), forest.ARFClassifier(seed=0), threading.Lock(), [0]

    @app.post("/v1/models/m/learn")
    def learn(body: Body) -> dict[str, Any]:
        predictions = []
        with lock:
            for row, label in zip(body.rows, body.labels, strict=True):
                predictions.append(model.predict_one(row))
                model.learn_one(row, label)
                seen[0] += 1
                if seen[0] % 1000 == 0:
                    (folder / "model.pickle").write_bytes(pickle.dumps(model))
        return {"learned": len(predictions), "position": seen[0], "predictions": predictions}

    return app


class Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(f"serves at http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}/", flush=True)


if __name__ == "__main__":
    Server(uvicorn.Config(application(Path(sys.argv[1])), port=0, log_level="warning", access_log=False)).run()
