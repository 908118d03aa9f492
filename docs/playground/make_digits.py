"""Write digits.js, the images of four digits and a plane to look at them in: `python docs/playground/make_digits.py`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

DIGITS = (1, 7, 3, 9)  # in the order in which they enter the stream


def main() -> None:
    """Two directions that tell the digits apart, in whole numbers, so that every machine computes the same places."""
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, DIGITS)
    X, y = X[chosen], y[chosen]
    plane = LinearDiscriminantAnalysis(n_components=2).fit(X, y).scalings_[:, :2]
    whole = np.round(plane / np.abs(plane).max(axis=0) * 99).astype(int)
    places = X @ whole
    middle = np.round(places.mean(axis=0)).astype(int)
    reach = np.ceil(np.abs(places - middle).max(axis=0) / [1.9, 1.4]).astype(int)
    images = ["".join(f"{min(int(value), 15):x}" for value in row) for row in X]
    text = (
        "// Four digits of scikit-learn's load_digits, 8 x 8 pixels of 0 to 15, and the plane that they are seen in.\n"
    )
    text += "// Written by make_digits.py.\n"
    for name, value in {
        "DIGITS": DIGITS, "PLANE": whole.T.tolist(), "MIDDLE": middle.tolist(), "REACH": reach.tolist(),
        "PLACES": places.astype(int).tolist(), "LABELS": "".join(map(str, y)), "IMAGES": "".join(images),
    }.items():  # fmt: skip
        text += f"export const {name} = {json.dumps(value, separators=(',', ':'))};\n"
    Path(__file__).with_name("digits.js").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
