"""
A model in another runtime
==========================

A race of learners over a table with a category, exported as one ONNX graph. The second half needs onnxruntime only:
it turns columns into labels and probabilities without gristmill.
"""

import numpy as np
import onnxruntime

from gristmill import AutoClassifier, Prepared
from gristmill.export import to_onnx

rng = np.random.default_rng(0)
sizes, hues = rng.normal(100, 10, size=4000), rng.choice(["red", "green", "blue"], size=4000)
y = np.where((sizes > 100) != (hues == "red"), "keep", "drop")
rows = [{"size": size, "hue": hue} for size, hue in zip(sizes, hues, strict=True)]
model = Prepared(AutoClassifier(), scale=None).fit(rows[:3000], y[:3000])
data = to_onnx(model).SerializeToString()
print(f"graph: {len(data):,} bytes")

# ---- from here on without gristmill

session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
columns = {"size": sizes[3000:, None], "hue": hues[3000:, None].astype(object)}
label, scores, probabilities = session.run(["label", "scores", "probabilities"], columns)
print(f"right in onnxruntime: {(label == y[3000:]).mean():.3f}")
print(f"same label as gristmill: {(label == model.predict(rows[3000:])).mean():.4f}")
print(f"columns: {session.get_modelmeta().custom_metadata_map['gristmill.columns']}")
