"""Ordinary queries find a right page among the first three of the site's search, which Sphinx's own code runs in Node.js.

`make test-search` runs it over site/, after `make docs`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "site"
#: query -> pages of which one must be among the first three
QUERIES = {
    "online svm python": ["index", "guide/users/scikit-learn"],
    "online learning": ["index", "glossary", "results/papers/norma"],
    "incremental learning": ["index", "glossary", "guide/users/scikit-learn"],
    "incremental learning pandas": ["cookbook/pandas-chunks"],
    "streaming": ["index", "guide/data/streams", "glossary"],
    "concept drift": ["guide/learn/drift"],
    "drift detection": ["guide/learn/drift"],
    "anomaly detection": ["guide/learn/anomalies"],
    "anomaly detection streaming": ["guide/learn/anomalies"],
    "outlier detection": ["guide/learn/anomalies"],
    "novelty detection": ["guide/learn/anomalies"],
    "isolation forest": ["guide/learn/anomalies", "guide/learn/auto", "guide/users/scikit-learn"],
    "imbalanced": ["guide/learn/pairwise", "cookbook/fraud"],
    "fraud": ["cookbook/fraud"],
    "predictive maintenance": ["cookbook/maintenance"],
    "time series forecast": ["gallery/regress/water_flow", "cookbook/demand"],
    "deploy": ["guide/deploy/serve", "guide/deploy/export", "cookbook/service"],
    "rest api": ["guide/deploy/serve", "cookbook/service"],
    "kafka": ["guide/data/brokers", "cookbook/kafka"],
    "mqtt": ["guide/data/brokers"],
    "onnx": ["guide/deploy/export"],
    "microcontroller": ["guide/deploy/export"],
    "parquet": ["cookbook/parquet"],
    "polars": ["cookbook/polars"],
    "pandas": ["cookbook/pandas-chunks", "guide/data/tables"],
    "missing values": ["guide/data/tables"],
    "categorical": ["guide/data/tables"],
    "text classification": ["gallery/classify/text_lines", "cookbook/spam"],
    "spam": ["cookbook/spam"],
    "prediction interval": ["guide/learn/predictions", "gallery/regress/water_flow"],
    "probability calibration": ["guide/learn/predictions", "gallery/classify/probabilities", "glossary"],
    "explain prediction": ["guide/learn/predictions", "gallery/deploy/explain_tumours"],
    "hyperparameter tuning": ["guide/learn/choosing", "guide/learn/auto", "gallery/compare/search_segments"],
    "grid search": ["gallery/compare/grid_search", "guide/learn/evaluate", "guide/users/scikit-learn"],
    "river": ["guide/users/river"],
    "scikit-learn": ["guide/users/scikit-learn"],
    "install": ["install"],
    "save model": ["guide/deploy/files", "tour"],
    "memory limit": ["index", "guide/learn/choosing", "tour"],
    "random fourier features": ["guide/learn/features"],
    "metric learning": ["guide/learn/pairwise", "gallery/own/wine_metric"],
    "edit distance": ["gallery/classify/strings", "guide/learn/similarity"],
    "delayed labels": ["glossary", "gallery/classify/late_labels", "guide/learn/evaluate"],
    "gpu": ["install"],
    "windows": ["install"],
    "custom kernel": ["guide/learn/composition", "gallery/own/own_kernel"],
    "passive aggressive": [
        "guide/learn/composition",
        "guide/learn/choosing",
        "reference/names/gristmill.passive_aggressive",
    ],
    "multi-output regression": ["guide/learn/predictions"],
    "ensemble": ["guide/learn/auto", "glossary"],
    "cross validation": ["guide/users/scikit-learn", "gallery/compare/grid_search"],
}


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    assert (SITE / "searchindex.js").exists(), "make docs comes first"
    script = ROOT / "docs" / "_scripts" / "search.js"
    done = subprocess.run(["node", script, SITE, *QUERIES], capture_output=True, text=True, check=True)
    return dict(zip(QUERIES, map(json.loads, done.stdout.splitlines()), strict=True))


def test_the_pages_that_are_wanted_exist():
    wanted = {page for pages in QUERIES.values() for page in pages}
    assert [page for page in sorted(wanted) if not (SITE / f"{page}.html").exists()] == []


@pytest.mark.parametrize("query", QUERIES)
def test_a_right_page_is_among_the_first_three(query, found):
    assert set(found[query][:3]) & set(QUERIES[query]), found[query][:6]


def test_a_query_without_an_answer_finds_nothing(found):
    script = ROOT / "docs" / "_scripts" / "search.js"
    done = subprocess.run(["node", script, SITE, "zebracrossing"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
