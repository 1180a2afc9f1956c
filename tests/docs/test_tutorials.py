"""The pages of the documentation: their code runs, and says what they say."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import intervalnn as inn
from intervalnn import metrics
from intervalnn.table import RULES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The first page is tried always; what is long on one core with the slow tests; of the others a quarter each day.
SLOW = ("choose-coverage.md", "command-line.md", "ct.md", "export.md", "multi-gpu.md")
MARKS: dict[str, list[pytest.MarkDecorator]] = {"quickstart.md": [], **{name: [pytest.mark.slow] for name in SLOW}}


def load(path: Path) -> ModuleType:
    """Return a module of the documentation, which is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = load(DOCS / "make_pages.py")


@pytest.fixture
def own_rules() -> Iterator[None]:
    """Take back what a page adds to the table of rules."""
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=MARKS.get(page.name, [pytest.mark.rotating])) for page in pages.pages()],
)
@pytest.mark.usefixtures("own_rules")
def test_the_code_of_a_page_prints_and_draws_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    printed = pages.run(page, tmp_path)

    assert [each.difference for each in printed if each.difference] == []
    drawn = {path.name for path in tmp_path.glob("*.png")}
    shown = set(pages.PICTURE.findall(page.read_text()))
    assert drawn <= shown  # so that every picture comes to be seen
    assert all((DOCS / "images" / name).stat().st_size for name in shown)


def test_every_tutorial_has_code_to_run() -> None:
    assert {*(DOCS / "tutorials").glob("*.md"), DOCS / "quickstart.md"} <= set(pages.pages())


@pytest.mark.parametrize(
    ("shown", "found", "same"),
    [
        ("width 0.275", "width  0.29", True),
        ("width 0.275", "width 0.4", False),
        ("factor 0.02", "factor 0.03", True),  # one unit of the last digit
        ("10 images", "12 images", False),
        ("coverage 0.9: True", "coverage 0.9: False", False),
        ("┃ 0.5 ┃\n┡━━━━━┩", "┃ 0.512 ┃\n┡━━━━━━━┩", True),
        ("took 5 s", "took 12 s", True),
        ("sha256 2706b258c905...", "sha256 ffff1171a461...", True),
        ("1 2", "1 2 3", False),
    ],
)
def test_numbers_may_differ_a_little_and_words_not_at_all(shown: str, found: str, same: bool) -> None:
    assert pages.alike(shown, found) == same


def test_what_is_printed_without_a_place_to_show_it_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\nText.\n\n```output\n1\n```\n")

    (printed,) = pages.run(page, tmp_path)

    assert "no output block follows" in printed.difference


def test_outputs_and_files_are_written_into_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n# file: one.py\nvalue = 1\n```\n\n```python\nfrom one import value\n\nprint(value)\n```\n\n"
        "```output\n7\n```\n\n```console\n$ cat \\\n  one.py\nold\n$ echo done\n```\n"
    )

    pages.write(page)

    text = page.read_text()
    assert "```output\n1\n```" in text
    assert "```console\n$ cat \\\n  one.py\nvalue = 1\n$ echo done\ndone\n```" in text


# --- what the pages say of what others measured ---


@pytest.mark.skipif(not (ROOT / "benchmarks/results").is_dir(), reason="the sdist has no results")
def test_the_table_of_peers_has_the_numbers_that_were_measured() -> None:
    measured = json.loads((ROOT / "benchmarks/results/peer-methods.json").read_text())["methods"]
    text = (DOCS / "peers.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)

    assert {name for name, *_ in rows} == set(measured)
    for name, *numbers in rows:
        own = measured[name]
        wanted = [own["coverage"], own["winkler / mae, calibrated"], own["seconds to predict 8000"]]
        assert [float(number) for number in numbers] == wanted, name


# What a page tells, and what it was told from.
TOLD = """
tutorials/direction.md: in 63 % of all components, and in 90 % <- paper-map.md: 63% (52%) to 90% (80%)
tutorials/direction.md: The more frequent side has 52 % and 80 % <- paper-map.md: 63% (52%) to 90% (80%)
tutorials/direction.md: right in 49 % of all <- paper-map.md: with noise 49% (50%)
tutorials/direction.md: the side in three of four <- results-deconv.md: | INN | 49.1% | 54.3% | 75.6% |
when-not.md: was 1.33 times theirs without noise <- results-deconv.md: is 1.327 times that of quantile heads
when-not.md: and 1.02 times with noise <- results-deconv.md: is 1.017 times that of quantile heads
when-not.md: it is then 1.11 times <- results-deconv.md: | INN | 0.91 | 1.327 | 0.93 | 1.107 |
../README.md: is 0.52 to 0.86 times <- results-scouts.md: | 0.862 (0.979) | 0.930 (1.035) |
../README.md: and 0.60 to 0.93 times <- results-scouts.md: | 0.862 (0.979) | 0.930 (1.035) |
../README.md: the score is that of quantile heads <- results-scouts.md: | 1.001 |
../README.md: and no better <- results-scouts.md: | 1.000 |
../README.md: [136 of 141 networks tried] <- coverage.md: 136 of 141 convert
../README.md: and 147 of 153 networks of 18 <- coverage.md: 147 of 153 convert, 6 are refused, 0 are wrong or crash
how-it-works.md: adds 11 % of its time <- ../benchmarks/results/propagation-cpu.md: a scout | 175.40 | **1.11**
how-it-works.md: 7.1 plain passes <- results-deconv.md: | INN, published | 7.1 | 3.8 |
"""


def claims() -> Iterator[list[str]]:
    """Return page, what it tells, source, and what that says."""
    for line in TOLD.strip().splitlines():
        yield [part for side in line.split(" <- ") for part in side.split(": ", 1)]


@pytest.mark.parametrize(("page", "told", "source", "found"), list(claims()))
def test_numbers_of_the_runs_are_told_as_they_were_found(page: str, told: str, source: str, found: str) -> None:
    assert found in (DOCS / source).read_text()  # else the page must tell something new
    assert told in " ".join((DOCS / page).read_text().split())


# --- the reference ---


@pytest.mark.parametrize("module", [inn, metrics], ids=["intervalnn", "intervalnn.metrics"])
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    text = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))

    def is_there(name: str) -> bool:
        found = getattr(module, name)
        if isinstance(found, ModuleType):
            return any(f":: {place}" in text for place in (found.__name__, f"{module.__name__}.{name}"))
        home = re.search(rf"automodule:: {re.escape(found.__module__)}\n(?!   :(members: \w|no-members))", text)
        return home is not None or re.search(rf":: {module.__name__}\.{name}\n", text) is not None

    assert [name for name in module.__all__ if not name.startswith("_") and not is_there(name)] == []


def test_every_test_that_the_map_of_the_paper_names_is_there() -> None:
    named = [
        found
        for template in DOCS.glob("paper-map*.template.md")
        for found in re.findall(r"`(tests/[\w/.]+)::(\w+)`", template.read_text())
    ]

    assert len(named) > 10
    for place, name in named:
        assert f"def {name}(" in (ROOT / place).read_text(), (place, name)
