"""Make ``images/viewer.png``: the viewer, with the patient of the tomography tutorial; needs Chromium."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from make_pages import DOCS, run
from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name).resolve()
        run(DOCS / "tutorials" / "ct.md", folder)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto((folder / "patient.html").as_uri())
        page.wait_for_timeout(2000)
        page.screenshot(path=DOCS / "images" / "viewer.png")
        browser.close()
