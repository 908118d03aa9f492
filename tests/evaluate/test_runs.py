"""Runs that are delayed, broken off, taken up again, and shown."""

from __future__ import annotations

import base64
import re
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from gristmill import (
    DropOldest,
    Gaussian,
    KernelClassifier,
    Perceptron,
    norma_novelty,
    norma_regressor,
    passive_aggressive,
    perceptron,
)
from gristmill.evaluate import (
    BudgetDisplay,
    NoveltyDisplay,
    PrequentialDisplay,
    Report,
    SupportDisplay,
    compare,
    prequential,
)
from gristmill.evaluate.run_report import run_report
from gristmill.streams import Stream, drifting_digits, from_arrays, two_gaussians


def learner():
    return passive_aggressive(Gaussian(1.0), size=30)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# ---- delay
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [1, 7, 150])
def test_delayed_labels_are_learned_late(delay):
    X, y = two_gaussians(600).arrays()
    reference = learner()
    wrong = []
    for step in range(600):
        if reference.__sklearn_is_fitted__():
            wrong.append((1 if reference.score_one(X[step]) >= 0 else -1) != y[step])
        if step >= delay:
            if step == delay:
                reference.partial_fit(X[[0]], y[[0]], classes=[-1, 1])
            else:
                reference.learn_one(X[step - delay], y[step - delay])
    result = prequential(learner(), two_gaussians(600), delay=delay)
    assert result.metrics["error"] == pytest.approx(np.mean(wrong))
    assert result.model.n_seen_ == 600 - delay
    assert result.n_scored == len(wrong) == 600 - delay - 1


def test_no_delay_is_the_usual_run():
    assert prequential(learner(), two_gaussians(400), delay=0).metrics == prequential(
        learner(), two_gaussians(400)
    ).metrics  # fmt: skip


def test_delay_with_classes_that_come_late_and_with_numbers():
    X, y = drifting_digits(800).arrays()
    result = prequential(KernelClassifier(Gaussian(0.001), Perceptron(), DropOldest(50)), (X, y), delay=20)
    assert 0 < result.metrics["error"] < 0.6
    targets = np.sin(X[:, 10])
    late = prequential(norma_regressor(Gaussian(0.001), rate=0.1, reg=0.01, size=50), (X, targets), delay=5)
    assert np.isfinite(late.metrics["mae"])
    alarms = prequential(
        norma_novelty(Gaussian(0.001), nu=0.1, rate=0.1, schedule="inv_sqrt", size=50), from_arrays(X), delay=3
    )
    assert 0 < alarms.metrics["alarm_rate"] < 0.5
    with pytest.raises(ValueError, match="delayed labels need labels"):
        prequential(learner(), from_arrays(X), delay=5)
    with pytest.raises(ValueError, match="delay must be at least 0"):
        prequential(learner(), (X, y), delay=-1)


# ---- checkpoints and interrupts
# -----------------------------------------------------------------------------------


class _Crash(Exception):
    pass


def _breaking(stream, after, error):
    def chunks():
        done = 0
        for chunk in stream:
            if done >= after:
                raise error
            done += len(chunk.y)
            yield chunk

    return Stream(chunks, n_events=stream.n_events, name=stream.name, classes=stream.classes)


@pytest.mark.parametrize("window", [130, 1000])
def test_a_run_that_crashed_goes_on_as_if_nothing_had_happened(tmp_path, window):
    X, y = two_gaussians(3000).arrays()
    stream = from_arrays(X, y, rows=110)
    metrics = ["error", "balanced_accuracy", "roc_auc"]
    whole = prequential(learner(), stream, metrics, window)
    path = tmp_path / "model"
    with pytest.raises(_Crash):
        prequential(
            learner(),
            _breaking(stream, 1600, _Crash()),
            metrics,
            window,
            checkpoint=path,
            checkpoint_every=500,
        )
    assert len(list(tmp_path.glob("model.*.json"))) == 1
    result = prequential(learner(), stream, metrics, window, checkpoint=path, checkpoint_every=500)
    assert result.metrics == whole.metrics
    assert result.rolling == whole.rolling
    assert result.curve == whole.curve
    assert np.array_equal(result.model.dual_coef_, whole.model.dual_coef_)
    again = prequential(learner(), stream, metrics, window, checkpoint=path)
    assert again.n_events == 3000


def test_checkpoints_of_another_run_are_refused(tmp_path):
    stream, path = two_gaussians(500), tmp_path / "model"
    prequential(learner(), stream, checkpoint=path)
    with pytest.raises(ValueError, match="the run had metrics"):
        prequential(learner(), stream, "accuracy", checkpoint=path)
    with pytest.raises(ValueError, match="holds a KernelClassifier, and the run is of a KernelRegressor"):
        prequential(norma_regressor(Gaussian(1.0), 0.1, 0.1), stream, checkpoint=path)
    next(iter(tmp_path.glob("*.json"))).unlink()
    with pytest.raises(ValueError, match=r"its record .* is missing"):
        prequential(learner(), stream, checkpoint=path)
    with pytest.raises(ValueError, match="give checkpoint or delay"):
        prequential(learner(), stream, delay=3, checkpoint=path)


def test_an_interrupt_keeps_what_was_learned():
    result = prequential(learner(), _breaking(two_gaussians(5000), 2000, KeyboardInterrupt()))
    assert result.stopped == "interrupted"
    assert result.n_events == result.model.n_seen_ == 2000
    page = run_report(compare({"a": learner()}, two_gaussians(500)), "A run", {}).html()
    assert "stopped" not in page


# ---- displays and reports
# -----------------------------------------------------------------------------------------


def test_prequential_display():
    comparison = compare({"a": learner(), "b": perceptron(Gaussian(1.0))}, two_gaussians(3000), window=500)
    display = PrequentialDisplay.from_results(comparison, bayes_error=0.1076).plot()
    assert len(display.lines_) == 4
    assert display.lines_[1].get_ydata().tolist() == [entry["error"] for entry in comparison["a"].curve]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b", "best possible"]
    _, ax = plt.subplots()
    assert PrequentialDisplay.from_estimator(learner(), two_gaussians(1000)).plot(ax).ax_ is ax


def test_budget_display():
    builders = {"newest": lambda size: KernelClassifier(Gaussian(1.0), Perceptron(), DropOldest(size))}
    display = BudgetDisplay.from_builders(builders, [20, 5], two_gaussians(1000)).plot()
    assert display.lines_[0].get_xdata().tolist() == [5, 20]
    single = compare({"a": learner()}, two_gaussians(500))
    assert BudgetDisplay.from_results(single).points["a"][0][0] == 30


def test_novelty_display():
    X = np.random.default_rng(0).normal(size=(600, 16))
    X[300] = 9.0
    truth = np.ones(600)
    truth[300] = -1
    model = norma_novelty(Gaussian(0.05), nu=0.05, rate=0.1, schedule="inv_sqrt", size=60)
    display = NoveltyDisplay.from_estimator(model, X, image_shape=(4, 4), truth=truth)
    assert display.most_novel(5).tolist()[0] in np.flatnonzero(display.alarms_)
    assert len(display.plot().points_.get_offsets()) == display.alarms_.sum()
    assert display.plot_images().image_.get_array().shape == (25, 50)
    with pytest.raises(ValueError, match="needs X and image_shape"):
        NoveltyDisplay(display.scores).plot_images()


def test_pictures_without_matplotlib_say_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'gristmill\[plot\]'"):
        NoveltyDisplay(np.zeros(3)).plot()


def test_support_display():
    plane = SupportDisplay.from_estimator(learner().fit(*two_gaussians(500).arrays())).plot()
    assert plane.ax_.get_ylabel() == "x1"
    digits = perceptron(Gaussian(0.001)).fit(*drifting_digits(500).arrays())
    assert SupportDisplay.from_estimator(digits, image_shape=(8, 8)).plot().ax_.images
    assert SupportDisplay.from_estimator(digits).plot().ax_.get_ylabel() == "|coefficient|"


def test_report_is_one_file_that_escapes_what_it_is_given(tmp_path):
    comparison = compare({"<b>bold</b>": learner()}, two_gaussians(1000))
    run_report(comparison, "A & B", {"stream": "<script>"}, 0.1).write(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert "<script" not in page
    assert "&lt;b&gt;bold" in page
    assert "A &amp; B" in page
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(images) == 2
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in images)
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    stopped = comparison
    stopped[0].stopped = "interrupted"
    assert "Stopped after 1,000 events: interrupted" in run_report(stopped, "x", {}).html()
    assert "<pre>1 &lt; 2</pre>" in Report("x").code("1 < 2").html()
