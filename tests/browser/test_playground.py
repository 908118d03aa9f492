"""The playground in headless Chromium, against the Python package: run by `make test-playground`, after `make playground`.

Not among the tests of `make test`: it needs a browser and the build for browsers.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from sklearn.datasets import load_iris

import gristmill
from gristmill import KernelClassifier, KernelNovelty, KernelRegressor, budgets, kernels, losses, rules
from gristmill.budgets import Budget
from gristmill.kernels import Kernel
from gristmill.losses import Loss
from gristmill.persist.model_file import encode, parts
from gristmill.rules import Rule

SITE = Path(__file__).parents[2] / "build" / "playground"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--window-size=1280,1000")  # fmt: skip


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of the build, without a line for each on the terminal."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the build is served, on this machine only."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/playground/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One Chromium for all tests, with a profile of its own."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: webdriver.Chrome, address: str) -> webdriver.Chrome:
    """The playground, loaded afresh and at rest."""
    browser.get_log("performance")
    browser.get(address)
    wait(lambda: browser.execute_script("return typeof playground === 'object'"))
    browser.execute_script("playground.pause(true); playground.restart()")
    return browser


def wait(seen: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def run(page: webdriver.Chrome, events: int) -> None:
    """So many events of the stream, at once."""
    page.execute_script("for (let i = 0; i < arguments[0]; i++) playground.next()", events)


def seen(page: webdriver.Chrome) -> list[dict[str, Any]]:
    """What the panels have learned, and from which events: scores on a coarse grid."""
    found = page.execute_script("""
      const rows = [];
      for (let x = -2; x <= 2; x += 0.25) for (let y = -1.5; y <= 1.5; y += 0.25) rows.push([x, y]);
      const events = playground.state.events.map(({x, y, label}) => [x, y, label]);
      return playground.panels.map((panel) => ({rows, events, refused: panel.refused, wrong: panel.wrong, error: panel.error,
        history: panel.history, size: panel.refused ? 0 : panel.model.size, parts: panel.refused ? null : panel.model.parts,
        scores: panel.refused ? [] : Array.from(panel.model.decision(rows), (row) => row.length ? Array.from(row) : row)}));
    """)
    assert isinstance(found, list)
    return found


def assert_same(found: Any, expected: Any) -> None:
    """To 1e-12, and bit for bit where Python runs without fused multiply-add as a browser does."""
    exact = gristmill._core.isa() == "baseline"
    np.testing.assert_allclose(found, expected, rtol=0 if exact else 1e-12, atol=0 if exact else 1e-12)


def part(spec: dict[str, Any]) -> Any:
    """The Python value of a part of the page."""
    fields = {name: part(value) if isinstance(value, dict) else value for name, value in spec.items() if name != "type"}
    return getattr(gristmill, spec["type"])(**fields)


def test_drawn_points_are_learned(page: webdriver.Chrome) -> None:
    Select(page.find_element(By.ID, "stream")).select_by_value("drawing")
    page.execute_script("""
      for (const slider of document.querySelectorAll('.size')) {
        slider.value = 12;
        slider.dispatchEvent(new Event('input'));
      }
    """)
    canvas = page.find_element(By.CSS_SELECTOR, ".panel canvas")
    for label, (left, top) in enumerate([(-90, -50), (70, -45), (-20, 60)]):
        page.find_elements(By.CSS_SELECTOR, "#classes button")[label].click()
        stroke = ActionChains(page, duration=20).move_to_element_with_offset(canvas, left, top).click_and_hold()
        for step in range(8):
            stroke.move_by_offset(6, 8 if step % 2 else -8)
        stroke.release().perform()
    drawn = page.execute_script("return playground.state.drawing.points.length")
    assert drawn >= 15
    page.execute_script("playground.pause(false)")
    wait(lambda: page.execute_script("return playground.state.events.length") > 600)
    page.execute_script("playground.pause(true)")
    panels = seen(page)
    # Forget has a meaning for two classes only.
    assert [panel["refused"] != "" for panel in panels] == [False, True, False]
    assert "two classes only" in panels[1]["refused"]
    for panel in (panels[0], panels[2]):
        errors = [point["error"] for point in panel["history"]]
        assert errors[-1] < errors[0] / 2
        assert errors[-1] < 0.1
    assert 0 < panels[2]["size"] <= 12
    assert max(point["size"] for point in panels[2]["history"]) <= 12


def test_keyboard_draws(page: webdriver.Chrome) -> None:
    canvas = page.find_element(By.CSS_SELECTOR, ".panel canvas")
    page.execute_script("arguments[0].focus()", canvas)
    canvas.send_keys("2")
    for key in ("\ue014", "\ue013", " "):  # right, up, draw
        canvas.send_keys(key)
    assert page.execute_script("return playground.state.drawing.points") == [{"x": 0.1, "y": 0.1, "label": 1}]


@pytest.mark.parametrize("stream", ["turning", "switching", "digits"])
@pytest.mark.parametrize("kernel", ["Gaussian", "Laplacian", "Polynomial"])
def test_scores_equal_those_of_python(page: webdriver.Chrome, stream: str, kernel: str) -> None:
    Select(page.find_element(By.ID, "stream")).select_by_value(stream)
    Select(page.find_element(By.ID, "kernel")).select_by_value(kernel)
    page.find_element(By.ID, "more").click()
    run(page, 1500)
    compared = 0
    for panel in seen(page):
        if panel["refused"]:
            continue
        events = np.array(panel["events"])
        model = KernelClassifier(*(part(panel["parts"][name]) for name in ("kernel", "rule", "budget")))
        model.partial_fit(events[:, :2], events[:, 2].astype(int))
        assert_same(panel["scores"], model.decision_function(np.array(panel["rows"])))
        assert panel["size"] == model.n_support_
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "kernel",
    ["Gaussian(2)", "Laplacian(1)", "Exponential(2)", "Polynomial(5, 0.7, 0.5)", "Normalized(Polynomial(8))",
     "Polynomial(2, 1, 0)", "Sum(Gaussian(1), Linear())"],
)  # fmt: skip
def test_a_surface_shows_the_scores(page: webdriver.Chrome, kernel: str, classes: int) -> None:
    """The grid has ways of its own for kernels that factor and for polynomials."""
    found = page.execute_async_script(
        """
        const done = arguments[2];
        import('./gristmill.js').then(async (m) => {
          const {Gaussian, Laplacian, Exponential, Polynomial, Normalized, Sum, Linear} = m;
          const parts = {kernel: eval(arguments[0]), rule: m.PassiveAggressive(), budget: m.Merge(40)};
          const model = (await m.load()).classifier(parts);
          const {STREAMS} = await import('./streams.js'), stream = arguments[1] === 2 ? STREAMS.turning : STREAMS.switching;
          for (let t = 0; t < 300; t++) { const {x, y, label} = stream.event(t, 0.4); model.learnOne([x, y], label); }
          const box = {left: -2, right: 2, top: 1.5, bottom: -1.5, columns: 9, rows: 7}, rows = [];
          for (let j = 0; j < 7; j++) for (let i = 0; i < 9; i++) rows.push([-2 + i / 2, 1.5 - j / 2]);
          const grid = model.grid(box), order = grid.arrived.map((label) => model.classes.indexOf(label));
          const scores = Array.from(grid.scores), exact = model.decision(rows);
          done({scores, exact: grid.outputs === 1 ? Array.from(exact, (v) => order[1] === 0 ? -v : v)
                                                  : exact.flatMap((row) => order.map((at) => row[at]))});
        });
        """,
        kernel,
        classes,
    )
    assert len(found["scores"]) == 63 * (1 if classes == 2 else 3)
    scale = np.abs(found["exact"]).max()
    assert scale > 0.1
    np.testing.assert_allclose(found["scores"], found["exact"], rtol=1e-12, atol=1e-11 * scale)


@pytest.mark.parametrize("algorithm", ["Perceptron", "Passive-aggressive", "Projectron", "Forgetron", "NORMA", "Merge"])
def test_algorithms(page: webdriver.Chrome, algorithm: str) -> None:
    Select(page.find_element(By.CSS_SELECTOR, ".algorithm")).select_by_value(algorithm)
    run(page, 800)
    panel = seen(page)[0]
    assert panel["error"] < 0.35
    assert algorithm == "Perceptron" or panel["size"] <= 40
    events = np.array(panel["events"])
    model = KernelClassifier(*(part(panel["parts"][name]) for name in ("kernel", "rule", "budget")))
    model.partial_fit(events[:, :2], events[:, 2].astype(int))
    assert_same(panel["scores"], model.decision_function(np.array(panel["rows"])))


@pytest.mark.parametrize("stream", ["turning", "switching", "digits", "drawing"])
def test_copied_program_prints_what_is_shown(page: webdriver.Chrome, stream: str, tmp_path: Path) -> None:
    Select(page.find_element(By.ID, "stream")).select_by_value(stream)
    if stream == "drawing":
        canvas = page.find_element(By.CSS_SELECTOR, ".panel canvas")
        for label, offset in ((0, -60), (1, 60)):
            page.find_elements(By.CSS_SELECTOR, "#classes button")[label].click()
            ActionChains(page, duration=20).move_to_element_with_offset(canvas, offset, 0).click_and_hold().move_by_offset(
                0, 20).move_by_offset(15, 15).release().perform()  # fmt: skip
            run(page, 20)
    run(page, 700)
    page.find_element(By.ID, "copy").click()
    program = page.find_element(By.ID, "code").text
    panels = [panel for panel in seen(page) if not panel["refused"]]
    (tmp_path / "copied.py").write_text(program, "utf-8")
    # Drawn points come again until they lie on a margin to the last bit: only the same bits store the same points.
    environment = {**os.environ, "GRISTMILL_ISA": "baseline"} if stream == "drawing" else None
    command = [sys.executable, tmp_path / "copied.py"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    shown = [f"{panel['wrong']} of {len(panel['events'])} wrong, {panel['size']} points" for panel in panels]
    assert [line.split(": ")[1] for line in said.splitlines()] == shown


def test_nothing_is_fetched_but_the_page(page: webdriver.Chrome, address: str) -> None:
    run(page, 100)
    page.find_element(By.ID, "copy").click()
    sent = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = {entry["params"]["request"]["url"] for entry in sent if entry["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith((address, "data:"))} == set()
    assert f"{address}gristmill.wasm" in urls
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("compare", ["algorithms", "more", "sizes", "budgets"])
def test_comparisons(page: webdriver.Chrome, compare: str) -> None:
    Select(page.find_element(By.ID, "compare")).select_by_value(compare)
    run(page, 600)
    panels = seen(page)
    assert len(panels) == (4 if compare == "budgets" else 3)
    assert all(not panel["refused"] and panel["error"] < 0.3 for panel in panels)
    sizes = page.execute_script(
        "return playground.panels.map(({budget, size}) => budget === 'Unbounded' ? Infinity : size)"
    )
    assert all(panel["size"] <= (size or np.inf) for panel, size in zip(panels, sizes, strict=True))
    if compare == "sizes":
        assert sizes == [10, 40, 160]
        assert [panel["size"] for panel in panels[:2]] == [10, 40]
    # Only the settings that one of the learners reads are shown.
    assert page.find_element(By.ID, "of-rate").is_displayed() == (compare == "more")
    assert page.find_element(By.ID, "of-tolerance").is_displayed() == (compare == "more")


def test_an_address_chooses_what_is_shown(page: webdriver.Chrome, address: str) -> None:
    page.get("about:blank")
    page.get(f"{address}#stream=switching&compare=budgets&kernel=Laplacian")
    wait(lambda: page.execute_script("return typeof playground === 'object'"))
    assert Select(page.find_element(By.ID, "stream")).first_selected_option.text == "Switching blobs"
    assert page.execute_script("return playground.panels.map(({budget}) => budget)")[1] == "DropSmallest"
    assert page.execute_script("return playground.settings.kernel") == "Laplacian"


def test_every_control_has_a_name(page: webdriver.Chrome) -> None:
    """What a screen reader says of each control, and that the curves are told in words."""
    run(page, 300)
    wait(lambda: "Merge" in page.find_element(By.ID, "error").get_attribute("aria-label"))
    controls = page.find_elements(By.CSS_SELECTOR, "button, select, input, canvas")
    assert len(controls) > 25
    assert [
        control.get_attribute("outerHTML")
        for control in controls
        if control.is_displayed() and not control.accessible_name
    ] == []
    assert "% " in page.find_element(By.ID, "error").accessible_name + " "
    assert "kB" in page.find_element(By.ID, "memory").accessible_name


def test_nothing_moves_where_that_is_asked(page: webdriver.Chrome, address: str) -> None:
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        page.get("about:blank")
        page.get(address)
        wait(lambda: page.execute_script("return typeof playground === 'object'"))
        assert page.execute_script("return playground.state.paused")
        assert page.find_element(By.ID, "pause").text == "Go on"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_end_of_a_stream_is_said_once(page: webdriver.Chrome) -> None:
    status = page.find_element(By.ID, "status")
    greeting = status.text
    page.execute_script("while (playground.next());")
    wait(lambda: "8,000 events" in status.text)
    page.execute_script("document.getElementById('copy').click()")
    wait(lambda: "program" in status.text)
    page.execute_async_script(
        "const done = arguments[0]; let n = 0; (function f() { n++ < 5 ? requestAnimationFrame(f) : done(); })()"
    )
    assert "8,000" not in status.text
    Select(page.find_element(By.ID, "stream")).select_by_visible_text("Draw your own")
    wait(lambda: status.text == greeting)


def test_phone(page: webdriver.Chrome) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        run(page, 50)
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
        assert page.find_element(By.CSS_SELECTOR, ".panel canvas").size["width"] > 300
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# ---- the module itself --------------------------------------------------------------------------------------------

SCRIPT = """
const done = arguments[arguments.length - 1], [bytes, X, y] = arguments;
(async () => {
  const module = await import('./gristmill.js');
  const gristmill = await module.load();
  const model = gristmill.open(Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)));
  const before = Array.from(model.decision(X), (row) => row.length ? Array.from(row) : row), answers = model.predict(X);
  const shares = model.estimator === 'KernelClassifier' ? model.probabilities(X).map((row) => Array.from(row)) : null;
  model.learn(X, y);
  const after = Array.from(model.decision(X), (row) => row.length ? Array.from(row) : row);
  return {before, answers, shares, after, saved: btoa(String.fromCharCode(...model.save()))};
})().then(done, (error) => done({error: `${error.name}: ${error.message}`}));
"""
_BLENDED = kernels.Laplacian(1.0) + 0.5 * kernels.Linear()
_CUBIC = kernels.Normalized(kernels.Polynomial(3))
MODELS = [
    KernelClassifier(kernels.Gaussian(0.5), rules.PassiveAggressive(), budgets.Merge(30), class_weight="balanced"),
    KernelClassifier(_BLENDED, rules.SGD(losses.Logistic(), rate=0.3, reg=0.01), budgets.DropOldest(25)),
    KernelClassifier(_CUBIC, rules.MarginProjection(), budgets.Project(0.2)),
    KernelClassifier(kernels.Gaussian(1.0), rules.Perceptron(), average=True, class_weight={"one": 2.0}),
    KernelRegressor(kernels.Gaussian(0.3), rules.Implicit(losses.Squared()), budgets.DropSmallest(40)),
    KernelRegressor(kernels.Exponential(3.0), rules.SGD(losses.Huber(0.5, nu=0.2), rate=0.05), budgets.DropRandom(25)),
    KernelNovelty(kernels.Gaussian(2.0), rules.Density(nu=0.05), budgets.DropRandom(50, uniform=True), random_state=2),
]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{type(model.budget).__name__}")
def test_files_go_both_ways(page: webdriver.Chrome, model: Any, single: bool) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3)).astype(np.float32 if single else np.float64)
    y: Any = X[:, 0] - X[:, 1] * X[:, 2]
    if isinstance(model, KernelClassifier):
        y = np.array(["one", "two", "three"])[np.digitize(y, [-0.5, 0.5])]
    model = type(model)(**model.get_params(deep=False)).partial_fit(X[:200], y[:200])
    rest = X[200:].astype(float)
    given = (base64.b64encode(model.to_bytes()).decode(), rest.tolist(), y[200:].tolist())
    found = page.execute_async_script(SCRIPT, *given)
    assert "error" not in found, found["error"]
    close = functools.partial(
        np.testing.assert_allclose, rtol=1e-3 if single else 1e-12, atol=1e-3 if single else 1e-12
    )
    close(found["before"], model.decision_function(X[200:]))
    if isinstance(model, KernelClassifier):
        assert found["answers"] == model.predict(X[200:]).tolist()
        close(found["shares"], model.predict_proba(X[200:]))
    model.partial_fit(X[200:], y[200:])
    close(found["after"], model.decision_function(X[200:]))
    back = gristmill.from_bytes(base64.b64decode(found["saved"]))
    assert back.get_params() == model.get_params()
    close(back.decision_function(X), model.decision_function(X))
    assert back.n_seen_ == 300


def test_the_example_page_answers_and_learns(page: webdriver.Chrome, address: str, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(len(y))
    model = KernelClassifier(kernels.Gaussian(0.3), rules.PassiveAggressive(), budgets.Merge(30))
    model.partial_fit(X[order], names[order]).save(tmp_path / "iris.safetensors")
    page.get(f"{address}example.html")
    page.find_element(By.ID, "file").send_keys(str(tmp_path / "iris.safetensors"))
    answer = page.find_element(By.ID, "answer")
    wait(lambda: "150 events" in answer.text)
    row = page.find_element(By.ID, "row")
    row.clear()
    row.send_keys("5.1, 3.5, 1.4, 0.2")
    shares = model.predict_proba([[5.1, 3.5, 1.4, 0.2]])[0]
    told = ", ".join(f"{name}: {100 * share:.0f}%" for name, share in zip(model.classes_, shares, strict=True))
    assert answer.text == f"{told} (150 events, {model.n_support_} points)"
    Select(page.find_element(By.ID, "truth")).select_by_visible_text("virginica")
    page.find_element(By.ID, "learn").click()
    model.learn_one([5.1, 3.5, 1.4, 0.2], "virginica")
    assert f"(151 events, {model.n_support_} points)" in answer.text
    row.send_keys(", 7")
    assert answer.text == "row 0 has 5 numbers, where 4 are needed"
    (tmp_path / "none.safetensors").write_bytes(b"no model")
    page.find_element(By.ID, "file").send_keys(str(tmp_path / "none.safetensors"))
    wait(lambda: "not a model" in answer.text)


def test_the_program_of_the_guide_runs(page: webdriver.Chrome) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "deploy" / "playground.md").read_text("utf-8")
    program = guide.split("```js\n")[1].split("```")[0]
    model = KernelClassifier(kernels.Gaussian(1.0)).partial_fit([[0.0, 1.0], [2.0, 0.0]], ["left", "right"])
    page.execute_script(
        """
        const bytes = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0)), real = fetch;
        globalThis.fetch = async (url) => String(url) === 'model.safetensors' ? new Response(bytes) : real(url);
        const script = document.createElement('script');
        script.type = 'module';
        const told = '; globalThis.ran = {answer: model.predict([[0.1, 1.4]]), seen: trained.seen, file};';
        script.textContent = arguments[1] + told;
        document.head.append(script);
        """,
        base64.b64encode(model.to_bytes()).decode(),
        program,
    )
    wait(lambda: page.execute_script("return typeof ran === 'object'"))
    ran = page.execute_script("return {...ran, file: btoa(String.fromCharCode(...ran.file))}")
    assert ran["answer"] == ["left"]
    assert ran["seen"] == 3
    model.learn_one([0.3, 0.2], "left")
    assert gristmill.from_bytes(base64.b64decode(ran["file"])).n_seen_ == model.n_seen_


def test_other_files_are_refused_by_name(page: webdriver.Chrome) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    whole = KernelClassifier(kernels.Gaussian(1.0)).partial_fit(X, X[:, 0] > 0).to_bytes()
    damaged = bytearray(whole)
    damaged[-3] ^= 1
    for data, why in (
        (gristmill.AutoClassifier(random_state=0).partial_fit(X, X[:, 0] > 0).to_bytes(), "it is a AutoClassifier"),
        (bytes(damaged), "its checksum is wrong"),
        (whole[:-40], "does not fit the file"),
        (b"no model", "the header is cut off"),
    ):
        found = page.execute_async_script(SCRIPT, base64.b64encode(data).decode(), X.tolist(), [0] * 60)
        assert found["error"].startswith("ModelFileError")
        assert why in found["error"]


def test_parts_are_those_of_python(page: webdriver.Chrome) -> None:
    """Names, order of fields and defaults; a new part of Python is seen here."""
    text = page.execute_async_script("""
      const done = arguments[0];
      const shown = (_, value) => value === Infinity ? {type: 'float', value: 'inf'} : value;
      import('./gristmill.js').then(({PARTS, makePart}) => {
        const all = Object.entries(PARTS).map(([name, {kind, fields}]) => {
          const full = Object.values(fields).every(([otherwise]) => otherwise !== undefined);
          return {name, kind, fields: Object.keys(fields), made: full ? makePart(name) : null};
        });
        done(JSON.stringify(all, shown));
      });
    """)
    found = {spec["name"]: spec for spec in json.loads(text)}
    homes = {
        module.__name__ for module in (kernels, losses, rules, budgets)
    }  # parts of other families are not for browsers
    python = {
        name: value
        for name, value in parts().items()
        if issubclass(value, Kernel | Loss | Rule | Budget) and value.__module__ in homes
    }
    assert set(found) == set(python)
    for name, cls in python.items():
        assert found[name]["fields"] == [field.name for field in dataclasses.fields(cls)]
        if found[name]["made"] is not None and name != "Window":  # which needs one of two
            assert found[name]["made"] == encode(cls(), "rule")
