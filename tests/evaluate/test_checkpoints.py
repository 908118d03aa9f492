"""Checkpoints beside files of others, and of models that have learned before the run."""

from __future__ import annotations

import numpy as np
import public_learners
import pytest

from gristmill import DropOldest, Gaussian, KernelClassifier
from gristmill.evaluate import prequential

#: public learners that a run can follow
FOLLOWED = sorted(
    name
    for name in public_learners.public()
    if not name.startswith(("OAM", "Pairwise", "TwoStage", "Landmark"))
    and name not in ("StructuredLearner", "KernelPCA", "KernelKMeans")
)


def learner():
    return KernelClassifier(Gaussian(1.0), budget=DropOldest(20))


def events(count):
    X = np.random.default_rng(0).normal(size=(count, 2))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("name", ["m.gm", "m[1].gm", "m*.gm", "m?.gm", "-m.gm", "m"])
def test_a_checkpoint_removes_no_file_but_its_own_records(name, tmp_path):
    X, y = events(600)
    others = [
        f"{name}.notes.json", f"{name}.2024.metrics.json", f"{name}.2024.json", f"{name}.json", f"{name}.100.json.bak",
        "m1.gm.100.json", "mm.gm.100.json", f"x{name}.100.json",
    ]  # fmt: skip
    for other in others:
        (tmp_path / other).write_text(f"{{the only copy of {other}}}", encoding="utf-8")
    path = tmp_path / name
    prequential(learner(), (X[:400], y[:400]), checkpoint=path, checkpoint_every=100, drift=False)
    result = prequential(learner(), (X, y), checkpoint=path, checkpoint_every=100, drift=False)
    assert result.n_events == 600
    own = {path.name for path in tmp_path.iterdir()} - set(others)
    assert own == {name, f"{name}.600.json"}
    for other in others:
        assert (tmp_path / other).read_text(encoding="utf-8") == f"{{the only copy of {other}}}"


def test_a_file_in_the_place_of_a_record_is_neither_overwritten_nor_read(tmp_path):
    X, y = events(200)
    path, place = tmp_path / "m.gm", tmp_path / "m.gm.200.json"
    place.write_text("{mine}", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"m\.gm\.200\.json is not a record of gristmill.*give checkpoint another name"
    ):
        prequential(learner(), (X, y), checkpoint=path, drift=False)
    assert place.read_text(encoding="utf-8") == "{mine}"
    assert not path.exists()
    learner().partial_fit(X, y).save(path)
    with pytest.raises(ValueError, match=r"its record m\.gm\.200\.json is missing"):
        prequential(learner(), (X, y), checkpoint=path, drift=False)


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_model_that_has_learned_before_goes_on_from_its_checkpoint(name, tmp_path):
    X, y = public_learners.stream(name, 200)
    y = None if name.endswith("Novelty") else y
    before, all_ = slice(0, 80), slice(80, 200)

    def trained():
        model = public_learners.made(name)
        return model.partial_fit(X[before]) if y is None else model.partial_fit(X[before], y[before])

    def run(end, **how):
        stream = [(X[at : at + 20], None if y is None else y[at : at + 20]) for at in range(80, end, 20)]
        return prequential(trained(), stream, window=30, drift=False, **how)

    whole = run(200)
    run(140, checkpoint=tmp_path / "m", checkpoint_every=40)
    again = run(200, checkpoint=tmp_path / "m", checkpoint_every=40)
    assert again.n_events == whole.n_events == 120
    assert again.metrics == whole.metrics
    for entry in [*again.curve, *whole.curve]:
        del entry["bytes"]  # a model that was loaded has no spare capacity
    assert again.curve == whole.curve
    found, wanted = (public_learners.answers(result.model, X[all_]) for result in (again, whole))
    np.testing.assert_array_equal(found, wanted)
