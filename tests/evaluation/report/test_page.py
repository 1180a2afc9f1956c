"""The page in a browser: it complains of nothing, asks for nothing, sorts, and fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Open]:
    """Open the page; afterwards, fail if it complained or asked for anything but itself."""
    contexts: list[Any] = []
    complaints: list[str] = []
    asked: list[str] = []

    def open_page(width: int = 1440, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        found = context.new_page()
        found.on("console", lambda message: complaints.append(message.text))
        found.on("pageerror", lambda error: complaints.append(str(error)))
        found.on("request", lambda request: asked.append(request.url))
        found.goto(page.as_uri())
        return found

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("data:", page.as_uri()))] == []


def column(found: Any, place: int) -> list[str]:
    """Return the values of a column of the last table, from top to bottom."""
    rows = found.locator("table.sortable").last.locator("tbody tr")
    return [row.locator("td").nth(place - 1).get_attribute("data-value") for row in rows.all()]


def test_every_figure_is_shown(opened: Open) -> None:
    found = opened()

    sizes = found.eval_on_selector_all("figure img", "all => all.map(i => [i.complete, i.naturalWidth, i.alt.length])")

    assert len(sizes) >= 14
    assert all(done and width > 300 and text > 20 for done, width, text in sizes)


def test_a_heading_sorts_and_sorts_back(opened: Open) -> None:
    found = opened()
    table = found.locator("table.sortable").last
    pearson = table.get_by_role("button", name="Pearson")
    place = int(pearson.get_attribute("data-place"))

    pearson.click()
    up = column(found, place)
    pearson.click()
    down = column(found, place)

    known = sorted(float(value) for value in up if value)
    assert len(known) == 2 and up == [*map(str, known), ""]  # constant widths have no correlation: always last
    assert down == [*map(str, reversed(known)), ""]
    assert table.locator("th[aria-sort]").count() == 1
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("Pearson")


def test_names_sort_by_letters(opened: Open) -> None:
    found = opened()

    found.locator("table.sortable").last.get_by_role("button", name="method").click()

    rows = found.locator("table.sortable").last.locator("tbody th")
    assert rows.all_inner_texts() == ["constant", "INN", "leaning"]


@pytest.mark.rotating
@pytest.mark.parametrize("width", [1440, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_text_stands_out(opened: Open, width: int, scheme: str) -> None:
    found = opened(width, color_scheme=scheme)

    inner, paper, ink = found.evaluate(
        "[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.body).color]"
    )

    assert inner <= width
    assert abs(brightness(ink) - brightness(paper)) > 180 and (brightness(paper) > 128) == (scheme == "light")


def test_figures_keep_a_light_ground_in_the_dark(opened: Open) -> None:
    found = opened(color_scheme="dark")

    grounds = found.eval_on_selector_all("figure .scroll", "all => all.map(e => getComputedStyle(e).backgroundColor)")

    assert set(grounds) == {"rgb(255, 255, 255)"}


def test_what_is_closed_opens_for_paper(opened: Open) -> None:
    found = opened()
    closed = found.locator("details:not([open])").count()

    found.evaluate("dispatchEvent(new Event('beforeprint'))")

    assert closed >= 2 and found.locator("details:not([open])").count() == 0


def brightness(color: str) -> float:
    red, green, blue = map(float, color.removeprefix("rgb(").removesuffix(")").split(","))
    return 0.3 * red + 0.59 * green + 0.11 * blue
