"""Draw pictures/playground.png, a still of the playground, after `make playground`.

Needs Chromium, its driver and selenium. Arguments: width of the window, height, file, and whether it is dark.
"""

from __future__ import annotations

import functools
import http.server
import io
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

ROOT = Path(__file__).parents[2]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of the build, without a line for each on the terminal."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def main(width: int = 1280, height: int = 755, file: str = "", scheme: str = "light") -> None:
    """Run 2,600 events of the turning crescents and take the picture."""
    handler = functools.partial(Quiet, directory=str(ROOT / "build" / "playground"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = webdriver.ChromeOptions()
    with tempfile.TemporaryDirectory() as profile:
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        driver.get(f"http://127.0.0.1:{server.server_port}/playground/")
        while not driver.execute_script("return typeof playground === 'object'"):
            time.sleep(0.1)
        driver.execute_script(
            "playground.pause(true); playground.restart(); for (let i = 0; i < 2600; i++) playground.next()"
        )
        time.sleep(1.5)  # so that no point is drawn as just come or gone
        picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
        picture.quantize(256, kmeans=2).save(
            file or ROOT / "docs" / "results" / "pictures" / "playground.png", optimize=True
        )
        driver.quit()
    server.shutdown()


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))  # type: ignore[arg-type]
