"""C headers that learn: equal to the library after 10,000 events, and back again as models."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import gristmill as g
from gristmill.export import ExportError, from_device, to_c

from .cases import relative
from .test_c import COMPILERS, STRICT

PROGRAM = Path(__file__).parent / "learn.c"
BUDGETS = [g.DropOldest(40), g.DropSmallest(40), g.Merge(40)]
RULES = {
    "two": [
        g.Perceptron(),
        g.PassiveAggressive(0.5),
        g.SGD(g.Hinge(nu=0.3), rate=0.2, reg=0.01),
        g.Implicit(g.Hinge(), reg=0.01),
        g.Implicit(g.Logistic(), rate=0.3),
    ],
    "three": [
        g.Perceptron(),
        g.PassiveAggressive(1.0, variant=2),
        g.SGD(g.Logistic(), rate=0.5, reg=0.001, schedule="inv_sqrt", intercept=True),
        g.Implicit(g.Hinge(), rate=2.0, reg=0.01, schedule="inv_sqrt"),
    ],
    "number": [
        g.PassiveAggressive(1.0, variant=2, epsilon=0.01),
        g.SGD(g.EpsilonInsensitive(0.1, nu=0.2), rate=0.1, reg=0.01, intercept=True),
        g.SGD(g.Huber(0.5, nu=0.3), rate=0.2),
        g.SGD(g.Pinball(0.7), rate=0.1),
        g.Implicit(g.Squared(), C=0.5),
    ],
    "novelty": [g.SGD(g.Hinge(0.0, nu=0.1), rate=0.2, reg=0.01), g.Implicit(g.Hinge(), reg=0.05)],
}
KERNELS = [
    g.Gaussian(0.5),
    g.Laplacian(0.4),
    g.Normalized(g.Polynomial(2)),
    g.Gaussian(1.0) + 0.5 * g.Linear() * g.Laplacian(0.2),
    g.Sigmoid(0.1, 0.1) + g.Linear(),
]
LEARNERS = {
    "two": g.KernelClassifier,
    "three": g.KernelClassifier,
    "number": g.KernelRegressor,
    "novelty": g.KernelNovelty,
}
PLACES = [(task, rule, budget) for task, rules in RULES.items() for rule in range(len(rules)) for budget in range(3)]


def stream(count, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4))
    noise = rng.random(count) < 0.05
    labels = {
        "two": np.where((X[:, 0] * X[:, 1] > 0) ^ noise, "b", "a"),
        "three": np.array([7, 3, 5])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)],
        "number": 100 * (np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=count)) + 7,
        "novelty": None,
    }
    return X, labels


def some(values, part):
    return () if values is None else (values[part],)


class Device:
    """An exported model, compiled; each run starts it, learns events and answers rows."""

    def __init__(self, model, folder, number="float64", compiler="gcc", more=()):
        self.model, self.folder = model, folder
        (folder / "gm.h").write_text(to_c(model, learn=True, number=number, name="gm"))
        regression = not hasattr(model, "classes_") and hasattr(model, "predict_interval")
        extra = ["-DGM_NUMBERS"] if regression else []
        command = [
            compiler,
            *STRICT,
            *extra,
            *more,
            "-I",
            str(folder),
            str(PROGRAM),
            "-o",
            str(folder / "device"),
            "-lm",
        ]
        subprocess.run(command, check=True)

    def __call__(self, X, y, rows):
        """Answers, how many events were learned, and the state."""
        codes = np.zeros(len(X)) if y is None else y
        if hasattr(self.model, "classes_"):
            codes = np.searchsorted(self.model.classes_, y)
        np.column_stack([X, codes]).astype(float).tofile(self.folder / "events")
        np.asarray(rows, dtype=float).tofile(self.folder / "rows")
        return self.run()

    def run(self):
        """The same with the files that are there."""
        places = [str(self.folder / name) for name in ("device", "events", "rows", "state")]
        done = subprocess.run(places, capture_output=True, text=True, check=True)
        said = np.array([[float(part) for part in line.split()] for line in done.stdout.splitlines()])
        return said, int(done.stderr), (self.folder / "state").read_bytes()


def agree(model, rows, said, limit=1e-12):
    expected = model.decision_function(rows).reshape(len(rows), -1)
    outputs = expected.shape[1]
    if hasattr(model, "classes_"):
        assert relative(said[:, outputs:-1], model.predict_proba(rows)) <= limit
        assert (model.classes_[said[:, -1].astype(int)] == model.predict(rows)).all()
        if outputs == 1:
            assert relative(np.abs(said[:, :1]), np.abs(expected)) <= limit
    elif hasattr(model, "predict_interval"):
        assert relative(said[:, :1], expected) <= limit
        half_widths = [
            np.diff(model.predict_interval(rows, level), axis=1)[:, 0] / 2 for level in (0.5, 0.8, 0.9, 0.95, 0.99)
        ]
        assert relative(said[:, 1:], np.stack(half_widths, axis=1)) <= limit
    else:
        assert (said[:, -1] == model.predict(rows)).all()
        assert relative(said[:, 0], model.score_samples(rows)) <= limit


def same_fields(back, model):
    """All that their model files hold, up to rounding."""
    (found, plain), (expected, values) = back.saved_fields(), model.saved_fields()
    assert plain == values
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if name.endswith("partner_rows"):  # how often a row was looked up is not counted on a device
            continue
        if values.dtype.kind in "iu":
            assert (found[name] == values).all(), name
        elif values.size:
            assert relative(found[name], values) <= 1e-11, name


@pytest.mark.parametrize(("task", "rule", "budget"), PLACES)
def test_equal_after_ten_thousand_events(task, rule, budget, tmp_path):
    place = PLACES.index((task, rule, budget))
    model = LEARNERS[task](KERNELS[place % len(KERNELS)], RULES[task][rule], BUDGETS[budget], random_state=0)
    X, labels = stream(10_600)
    y, rows = labels[task], stream(200, seed=1)[0]
    if place % 3 < 2:  # otherwise rows and targets as they come
        model = g.Prepared(model, ["standard", None][place % 3])
    if place % 3 == 0:
        X, rows = X * [1.0, 100.0, 0.01, 3.0] + 3.0, rows * [1.0, 100.0, 0.01, 3.0] + 3.0
    elif place % 3 == 2 and task == "number":
        y = y / 100
    model.partial_fit(X[:300], *some(y, slice(0, 300)))
    device = Device(model, tmp_path, compiler=COMPILERS[place % len(COMPILERS)])
    exported = g.from_bytes(model.to_bytes())
    rest = slice(300, 10_300)
    said, learned, state = device(X[rest], None if y is None else y[rest], rows)
    assert learned == 10_000
    model.partial_fit(X[rest], *some(y, rest))
    agree(model, rows, said)
    back = from_device(state, exported)
    assert back.n_seen_ == model.n_seen_
    assert relative(back.decision_function(rows), model.decision_function(rows)) <= 1e-12
    same_fields(back, model)
    for one in (back, model):
        one.partial_fit(X[10_300:], *some(y, slice(10_300, None)))
    assert relative(back.decision_function(rows), model.decision_function(rows)) <= 1e-12


@pytest.mark.parametrize("start", [5, 40, 900])
def test_a_scaling_that_stays_after_some_events(start, tmp_path):
    X, labels = stream(2000)
    X[1200:] *= 40.0  # what is far out is drawn in, and counts as less
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5), g.PassiveAggressive(), g.Merge(30)), warmup=700)
    model.partial_fit(X[:start], labels["two"][:start], classes=["a", "b"])
    said, _, _ = Device(model, tmp_path)(X[start:], labels["two"][start:], X[:100])
    agree(model.partial_fit(X[start:], labels["two"][start:]), X[:100], said)


@pytest.mark.parametrize("far", range(12, 20))
def test_one_event_far_out_among_the_first(far, tmp_path):
    X, labels = stream(60)
    X[far] *= 1000.0
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5), g.PassiveAggressive(), g.DropOldest(30)))
    model.partial_fit(X[:10], labels["two"][:10], classes=["a", "b"])
    said, _, state = Device(model, tmp_path)(X[10:], labels["two"][10:], X)
    back = from_device(state, model)
    agree(model.partial_fit(X[10:], labels["two"][10:]), X, said)
    same_fields(back, model)


@pytest.mark.parametrize("budget", range(3))
def test_steps_that_forget_everything(budget, tmp_path):
    X, labels = stream(600)
    rule = g.SGD(g.Hinge(), rate=1.0, reg=1.0)  # keeps 1 - rate * reg = 0 of what was learned
    model = g.KernelClassifier(g.Gaussian(0.5), rule, type(BUDGETS[budget])(1)).fit(X[:300], labels["two"][:300])
    said, _, state = Device(model, tmp_path)(X[300:], labels["two"][300:], X[:50])
    back = from_device(state, model)
    agree(model.partial_fit(X[300:], labels["two"][300:]), X[:50], said)
    same_fields(back, model)


def test_targets_that_are_measured_anew(tmp_path):
    X, labels = stream(3000)
    y = labels["number"] * np.linspace(1.0, 30.0, 3000)
    model = g.Prepared(g.KernelRegressor(g.Gaussian(0.5), g.SGD(g.EpsilonInsensitive(0.1, nu=0.3)), g.DropOldest(50)))
    model.partial_fit(X[:20], y[:20])
    spread = model._pipeline.targets.spread
    said, _, state = Device(model, tmp_path)(X[20:], y[20:], X[:100])
    back = from_device(state, model)
    model.partial_fit(X[20:], y[20:])
    assert model._pipeline.targets.spread > 5 * spread
    agree(model, X[:100], said)
    assert relative(back.predict(X[:100]), model.predict(X[:100])) <= 1e-12


def test_what_is_no_number_changes_nothing(tmp_path):
    X, labels = stream(600)
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5), g.PassiveAggressive(), g.Merge(30)))
    model.partial_fit(X[:300], labels["two"][:300])
    events, told = X[300:].copy(), labels["two"][300:].copy()
    events[::3, 1], events[1::3, 2] = np.nan, np.inf
    device = Device(model, tmp_path)
    said, learned, _ = device(events, told, X[:50])
    assert learned == 100
    agree(model.partial_fit(events[2::3], told[2::3]), X[:50], said)
    gaps = X[:50].copy()
    gaps[::4, 0] = np.nan
    agree(model, gaps, device(events, told, gaps)[0])


def test_labels_out_of_range_change_nothing(tmp_path):
    X, labels = stream(400)
    model = g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.DropOldest(20)).fit(X[:300], labels["three"][:300])
    device = Device(model, tmp_path)
    codes = np.tile([-1.0, 3.0, 1e9, -7.0], 25)
    np.column_stack([X[300:], codes]).tofile(tmp_path / "events")
    X[:9].tofile(tmp_path / "rows")
    assert device.run()[1] == 0
    agree(model, X[:9], device(X[:0], labels["three"][:0], X[:9])[0])


@pytest.mark.parametrize("task", ["two", "three", "number"])
def test_single_precision_costs_little(task, tmp_path):
    X, labels = stream(6000)
    y = labels[task]
    model = g.Prepared(LEARNERS[task](g.Gaussian(0.5), g.PassiveAggressive(0.5), g.Merge(40)))
    model.partial_fit(X[:200], y[:200])
    said, learned, state = Device(model, tmp_path, "float32")(X[200:5000], y[200:5000], X[5000:])
    assert learned == 4800
    back = from_device(state, model)
    model.partial_fit(X[200:5000], y[200:5000])
    if task == "number":
        ours = np.abs(model.predict(X[5000:]) - y[5000:]).mean()
        assert np.abs(said[:, 0] - y[5000:]).mean() < 1.02 * ours + 0.01
        assert relative(back.predict(X[5000:]), said[:, 0]) < 1e-4
        return
    ours = (model.predict(X[5000:]) == y[5000:]).mean()
    assert (model.classes_[said[:, -1].astype(int)] == y[5000:]).mean() > ours - 0.02
    assert (back.predict(X[5000:]) == model.classes_[said[:, -1].astype(int)]).mean() > 0.999


def test_devices_unite(tmp_path):
    X, labels = stream(3000)
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5), g.PassiveAggressive(), g.Merge(60)))
    model.partial_fit(X[:50], labels["two"][:50])
    device = Device(model, tmp_path)
    left, right = X[:, 0] < 0, X[:, 0] >= 0
    parts = [from_device(device(X[side][:900], labels["two"][side][:900], X[:1])[2], model) for side in (left, right)]
    test, truth = stream(1000, seed=3)
    alone = [(one.predict(test) == truth["two"]).mean() for one in parts]
    together = (g.merge(parts, size=120).predict(test) == truth["two"]).mean()
    assert together > max(alone) + 0.05


def test_a_state_of_the_other_byte_order(tmp_path):
    X, labels = stream(600)
    model = g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.Merge(30)).fit(X[:300], labels["two"][:300])
    _, _, state = Device(model, tmp_path)(X[300:], labels["two"][300:], X[:1])
    from gristmill.export._description import describe
    from gristmill.export._learning import learning_of
    from gristmill.export.c import state as layout

    fields = layout.fields(describe(model), learning_of(model), single=False)
    read = np.frombuffer(state, dtype=layout.dtype_of(fields, False))
    swapped = read.astype(layout.dtype_of(fields, False, ">")).tobytes()
    assert swapped != state
    assert (from_device(swapped, model).decision_function(X) == from_device(state, model).decision_function(X)).all()


def test_damaged_states_are_refused(tmp_path):
    X, labels = stream(600)
    model = g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.Merge(30)).fit(X[:300], labels["two"][:300])
    _, _, state = Device(model, tmp_path)(X[300:], labels["two"][300:], X[:1])
    other = g.KernelClassifier(g.Gaussian(0.6), g.Perceptron(), g.Merge(30)).fit(X[:300], labels["two"][:300])
    from_device(state, model)
    for wrong, who, why in [
        (b"", model, "no state"),
        (b"\0" * len(state), model, "no state"),
        (state[:-1], model, "bytes"),
        (state + b"\0", model, "bytes"),
        (state[:4] + b"\x77\0\0\0" + state[8:], model, "format"),
        (state, other, "another model"),
        (state[:12] + b"\xff\xff\0\0" + state[16:], model, "points"),
        (state[:16] + b"\0" * 8 + state[24:], model, "order"),
    ]:
        with pytest.raises(ExportError, match=why):
            from_device(wrong, who)


def test_damage_anywhere_is_refused_or_gives_a_model(tmp_path):
    """Whatever single field is overwritten: an error that says so, or a model that answers."""
    X, labels = stream(400)
    model = g.Prepared(g.KernelRegressor(g.Gaussian(0.5), g.PassiveAggressive(), g.Merge(20)))
    model.partial_fit(X[:300], labels["number"][:300])
    _, _, state = Device(model, tmp_path)(X[300:], labels["number"][300:], X[:1])
    refused = 0
    for at in range(0, len(state) - 8, 8):
        for junk in (b"\xff" * 8, b"\0" * 8, np.float64(-1e300).tobytes()):
            try:
                back = from_device(state[:at] + junk + state[at + 8 :], model)
                back.predict(X[:3])
            except ValueError:
                refused += 1
    assert refused > 20


def test_what_cannot_learn_on_a_device_is_refused_by_name():
    X, labels = stream(200)
    y = labels["two"]
    made = g.KernelClassifier
    for model, name in [
        (made(g.Gaussian(1.0), g.Romma(), g.Unbounded()), "Romma"),
        (made(g.Gaussian(1.0), g.Perceptron(), g.DropRandom(20)), "DropRandom"),
        (made(g.Gaussian(1.0), g.Perceptron(), g.Merge(20), average=True), "average"),
        (made(g.Gaussian(1.0), g.Perceptron(), g.Merge(20), class_weight="balanced"), "class_weight"),
        (made(g.Additive(g.Laplacian(1.0)), g.Perceptron(), g.DropOldest(20)), "Additive"),
        (g.Prepared(made(g.Gaussian(1.0), g.Perceptron(), g.Merge(20)), "minmax"), "minmax"),
        (g.Prepared(made(g.Gaussian(1.0), g.Perceptron(), g.Merge(20)), "relevance"), "relevance"),
    ]:
        with pytest.raises(ExportError, match=name):
            to_c(model.fit(X, y), learn=True)
    with pytest.raises(ExportError, match="function"):
        to_c(made(g.Gaussian(1.0), lambda trial: None, g.DropOldest(9)).fit(X, y), learn=True)
    with pytest.raises(ExportError, match="sparse"):
        to_c(
            g.Prepared(made(g.Gaussian(1.0), g.Perceptron(), g.Merge(20))).fit(csr_array(np.maximum(X, 0)), y),
            learn=True,
        )
    with pytest.raises(ExportError, match="32,767"):
        to_c(made(g.Gaussian(1.0), g.Perceptron(), g.Merge(40_000)).fit(X, y), learn=True)
    with pytest.raises(ExportError, match="several targets"):
        to_c(g.KernelRegressor(g.Gaussian(1.0)).fit(X, X[:, :2]), learn=True)
    with pytest.raises(ExportError, match="one class"):
        to_c(made(g.Gaussian(1.0), g.Perceptron()).fit(X, ["x"] * len(X)), learn=True)


def test_budgets_in_bytes(tmp_path):
    X, labels = stream(2000)
    model = g.KernelClassifier(g.Gaussian(0.5), g.PassiveAggressive(), g.Merge("8 kB")).fit(
        X[:500], labels["two"][:500]
    )
    said, _, _ = Device(model, tmp_path)(X[500:], labels["two"][500:], X[:100])
    agree(model.partial_fit(X[500:], labels["two"][500:]), X[:100], said)


def hostile(count, seed, most):
    """Rows of any size, equal rows, zeros, and what is no number."""
    rng = np.random.default_rng(seed)
    X, kinds = rng.normal(size=(count, 4)), rng.integers(8, size=count)
    X[kinds == 0] *= 10.0 ** rng.uniform(-most, most, size=((kinds == 0).sum(), 1))
    X[kinds == 1] = 0
    X[kinds == 2] = X[0]
    X[kinds == 3, 1] = rng.choice([np.nan, np.inf, -np.inf, 10.0**most, -(10.0**most), 5e-324], (kinds == 3).sum())
    return X


@pytest.mark.parametrize(
    ("task", "rule", "budget"), [("two", 1, 2), ("three", 2, 0), ("number", 1, 2), ("novelty", 0, 1)]
)
def test_hostile_events_under_the_sanitizers(task, rule, budget, tmp_path):
    X, labels = stream(300)
    model = g.Prepared(LEARNERS[task](g.Gaussian(0.5), RULES[task][rule], BUDGETS[budget], random_state=0))
    model.partial_fit(X, *some(labels[task], slice(None)))
    checks = ["-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all", "-O1"]
    device = Device(model, tmp_path, "float32", "gcc", checks)
    events = hostile(1500, 0, 30)
    codes = np.tile([-1.0, 0.0, 1.0, 2.0, 3.0], 300) if task in ("two", "three") else events[:, 0] * 1e3
    np.column_stack([events, codes]).tofile(tmp_path / "events")
    X[:20].tofile(tmp_path / "rows")
    said, learned, state = device.run()
    assert 500 < learned < 1500
    assert np.isfinite(said).all()
    from_device(state, model).decision_function(X)
