"""Events, the learner that they are sent to, and the same learner in one process."""

from __future__ import annotations

import hashlib

import numpy as np

import gristmill

TEXT = "passive_aggressive(Gaussian(0.5), size=50)"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = (X[:, 0] * X[:, 1] > 0).tolist()
ROWS = [dict(zip("abc", row, strict=True)) for row in X.tolist()]


def fresh():
    model = gristmill.passive_aggressive(gristmill.Gaussian(0.5), size=50, random_state=0)
    return gristmill.Prepared(model)


def digest(model):
    return hashlib.sha256(model.to_bytes()).hexdigest()


def served(client):
    return client.app.state.service.store.get("m").served


def learn(client, start, stop, **headers):
    body = {"rows": ROWS[start:stop], "labels": Y[start:stop]}
    return client.post("/v1/models/m/learn", json=body, headers=headers)
