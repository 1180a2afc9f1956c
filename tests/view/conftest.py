from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from intervalnn.view import serving


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Serve what is under a path until the test is over, and return the address."""
    with ExitStack() as servers:
        yield lambda path: servers.enter_context(serving(path))


@pytest.fixture
def open_page(browser: Any, serve: Callable[[Path], str]) -> Iterator[Callable[..., Any]]:
    """Open an address; afterwards, fail if the page complained or asked for anything elsewhere.

    Pages fetch ahead, so they are closed before what serves them is stopped: hence `serve` here.
    """
    contexts: list[Any] = []
    complaints: list[str] = []
    asked: list[tuple[str, str]] = []

    def opened(address: str, *, width: int = 1440, height: int = 900, refused: str = "-", **options: Any) -> Any:
        def is_complaint(message: Any) -> bool:  # the browser also tells of each answer that is an error, as one may be
            return message.type != "log" and refused not in message.text

        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
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
