from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser that is installed on this machine; nothing is downloaded."""
    playwright = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("browser tests need chromium, and there is none on the path")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open an address; afterwards, fail if the page complained or asked for anything elsewhere."""
    contexts: list[Any] = []
    complaints: list[str] = []
    asked: list[tuple[str, str]] = []

    def opened(address: str, *, width: int = 1440, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append((address, request.url)))
        page.goto(address)
        page.wait_for_selector("html[data-drawn]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for address, url in asked if not url.startswith((address, "data:", "blob:"))] == []
