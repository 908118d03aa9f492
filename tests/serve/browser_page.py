"""The page in a real browser; `make test-browser` runs it. It needs Debian's chromium and chromium-driver.

Set GRISTMILL_SHOTS to a folder to look at the page: light and dark, desktop and phone.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-dev-shm-usage",
]  # fmt: skip
TASKS = {"doors": "classification", "price": "regression", "pumps": "novelty"}
DESKTOP, PHONE = (1400, 1000), (390, 844)


@pytest.fixture
def browse(tmp_path):
    """Opens pages in fresh browsers; at the end nothing may have been logged as an error."""
    opened = []

    def open_page(url, size=DESKTOP, dark=False):
        options = Options()
        options.binary_location = CHROMIUM
        place = tmp_path / f"browser-{len(opened)}"
        for flag in [*FLAGS, f"--user-data-dir={place}", f"--window-size={size[0]},{size[1]}"]:
            options.add_argument(flag)
        if dark:
            options.add_argument("--blink-settings=preferredColorScheme=0")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(DRIVER))
        opened.append(browser)
        browser.set_page_load_timeout(60)
        browser.set_script_timeout(30)
        browser.get(url)
        return browser

    yield open_page
    logged = []
    for browser in opened:
        logged += [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        browser.quit()
    assert logged == []


class Feed(threading.Thread):
    """Sends events of three models until it is stopped; the first one drifts."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.client = httpx.Client(base_url=f"{url}/v1/models", timeout=30, trust_env=False)
        self.stop, self.rounds = False, 0
        for name, task in TASKS.items():
            self.client.post(name, json={"learner": "auto", "task": task, "memory": "100 kB"}).raise_for_status()
        weighed = {"learner": "passive_aggressive(Gaussian(0.5), size=50)", "scale": "relevance"}
        self.client.post("lamps", json=weighed).raise_for_status()
        other = {"learner": "passive_aggressive(Gaussian(0.5), size=50)"}
        self.client.post("doors/challenger", json=other).raise_for_status()

    def run(self):
        rng = np.random.default_rng(0)
        while not self.stop:
            X, side = rng.normal(size=(50, 3)), rng.choice(["left", "right"], size=50).tolist()
            score = X[:, 0] + (np.array(side) == "left") if self.rounds < 24 else -X[:, 1]
            labels = np.where(score > 0.3, "open", "shut").tolist()
            rows = [
                {"speed": a, "wind": b, "load": c, "side": s} for (a, b, c), s in zip(X.tolist(), side, strict=True)
            ]
            for name in ("doors", "lamps"):
                self.client.post(f"{name}/learn", json={"rows": rows, "labels": labels})
            self.client.post("doors/predict", json={"rows": rows[:5], "ids": list(range(5))})
            self.client.post("price/learn", json={"rows": X.tolist(), "labels": (3 * X[:, 0] + 100).tolist()})
            X[0, 1] = 30.0
            self.client.post("pumps/learn", json={"rows": [dict(zip("abc", row, strict=True)) for row in X.tolist()]})
            self.rounds += 1
            time.sleep(0.05)
        self.client.close()


@pytest.fixture
def feed(start):
    server = start(model=None)
    running = Feed(server.url)
    running.url = server.url
    running.start()
    yield running
    running.stop = True
    running.join(60)


def pixels(browser, chart):
    """The picture of a chart as text."""
    return browser.execute_script(f"return document.querySelector('#{chart} canvas').toDataURL()")


def visible(browser, part):
    return browser.find_element(By.ID, part).is_displayed()


def position(browser):
    return int(browser.find_element(By.TAG_NAME, "body").get_attribute("data-position") or 0)


def choose(browser, until, name):
    """Choose a model by keyboard."""
    box = browser.find_element(By.ID, "model")
    names = [option.get_attribute("value") for option in box.find_elements(By.TAG_NAME, "option")]
    box.send_keys(Keys.HOME, *[Keys.ARROW_DOWN] * names.index(name))
    until(lambda: box.get_attribute("value") == name, "the model is chosen")
    until(lambda: browser.find_element(By.TAG_NAME, "body").get_attribute("data-model") == name, "the model is shown")


def shoot(browser, name, size):
    folder = os.environ.get("GRISTMILL_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.set_window_size(size[0], browser.execute_script("return document.documentElement.scrollHeight") + 140)
        time.sleep(1.5)
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))


def test_curves_move_and_every_part_is_shown(feed, browse, until):
    until(lambda: feed.rounds > 45, "events are learned", 120)
    browser = browse(f"{feed.url}/")
    until(lambda: position(browser) > 1000, "the page shows a position")
    first, place = {chart: pixels(browser, chart) for chart in ("error", "rate", "latency", "size")}, position(browser)
    until(lambda: position(browser) > place + 200, "the position moves")
    until(lambda: all(pixels(browser, chart) != one for chart, one in first.items()), "the curves move")
    assert browser.find_element(By.ID, "state").text == "live"
    until(lambda: visible(browser, "drifts"), "drift is marked")
    until(lambda: visible(browser, "calibration"), "probabilities are compared")
    for part in ("classes", "experts", "challenger", "storage"):
        assert visible(browser, part), part
    assert not visible(browser, "alarms")
    shoot(browser, "classification", DESKTOP)
    choose(browser, until, "lamps")
    names = [row.text.split()[0] for row in browser.find_elements(By.CSS_SELECTOR, "#relevance tr")[1:]]
    assert sorted(names) == ["load", "side", "speed", "wind"]
    choose(browser, until, "pumps")
    assert visible(browser, "alarms")
    assert "b = 30" in browser.find_element(By.ID, "alarms").text
    shoot(browser, "novelty", DESKTOP)
    choose(browser, until, "price")
    assert not visible(browser, "classes")
    shoot(browser, "regression", DESKTOP)


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, True), (PHONE, False), (PHONE, True)])
def test_dark_and_phone(feed, browse, until, size, dark):
    until(lambda: feed.rounds > 12, "events are learned", 120)
    browser = browse(f"{feed.url}/", size, dark)
    until(lambda: position(browser) > 0, "the page shows a position")
    back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back[4:-1].split(","))) < 128) == dark
    width, inner = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= inner, "nothing stands out to the side"
    shoot(browser, f"{'phone' if size == PHONE else 'desktop'}-{'dark' if dark else 'light'}", size)


def test_everything_is_reached_by_keyboard(feed, browse, until):
    until(lambda: feed.rounds > 12, "events are learned", 120)
    browser = browse(f"{feed.url}/")
    until(lambda: position(browser) > 0, "the page shows a position")
    reached = []
    for _ in range(12):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        here = browser.switch_to.active_element
        reached.append(here.get_attribute("id") or here.get_attribute("aria-label") or here.text)
    assert reached[:2] == ["Skip to the charts", "model"]
    assert {"Champion and challenger", "Classes", "Weights of the experts"} <= set(reached)


def test_a_token_is_asked_for(start, browse, until, tmp_path):
    (tmp_path / "tokens").write_text(f"read {'r' * 16}\nwrite {'w' * 16}\n")
    os.chmod(tmp_path / "tokens", 0o600)
    server = start("--token-file", str(tmp_path / "tokens"))
    browser = browse(f"{server.url}/")
    until(lambda: visible(browser, "token"), "a token is asked for")
    browser.find_element(By.ID, "token").send_keys("r" * 16, Keys.ENTER)
    until(lambda: browser.find_element(By.ID, "state").text == "live", "the page is open")
    # Chromium logs each 401 as an error of the network; that is the question itself.
    assert all("401" in entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE")


def test_a_service_that_is_gone_is_told(start, browse, until):
    server = start()
    browser = browse(f"{server.url}/")
    until(lambda: browser.find_element(By.ID, "state").text == "live", "the page is open")
    server.end()
    until(lambda: browser.find_element(By.ID, "state").text == "the service does not answer", "the page tells it")
    assert all(
        "ERR_CONNECTION" in entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"
    )
