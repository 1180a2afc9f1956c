from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

import intervalnn
from leftovers import Snapshot

torch.set_num_threads(1)
# Processes that a test starts import what is tested here, from whatever folder, and leave a core to the other worker.
HERE = Path(__file__).parent
PLACES = (Path(intervalnn.__file__).parents[1], HERE, HERE.parent / "benchmarks")
os.environ |= {"PYTHONPATH": os.pathsep.join(map(str, PLACES)), "OMP_NUM_THREADS": "1"}
# A run in the background inherits that Ctrl-C is ignored; the tests of stopping need it here and in their processes.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same examples each time, however long one takes on a busy machine; new ones are what the benchmarks search for.
settings.register_profile(
    "tests", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

QUARTERS = 4


def pytest_addoption(parser: pytest.Parser) -> None:
    ours = parser.getgroup("intervalnn")
    ours.addoption(
        "--quarter",
        choices=["all", "today", *map(str, range(QUARTERS))],
        default="all",
        help="of the tests that are marked as rotating, which quarter to run; 'today' for another one each day",
    )
    ours.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order, drawn from this seed")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.quarter == "today":  # settled here, so that all workers run the same
        config.option.quarter = str(date.today().toordinal() % QUARTERS)


def pytest_report_header(config: pytest.Config) -> list[str]:
    quarter, seed = config.option.quarter, config.option.shuffle
    chosen = [f"of the rotating tests only quarter {quarter}: --quarter {quarter}"] if quarter != "all" else []
    return chosen + ([f"in random order: --shuffle {seed}"] if seed is not None else [])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Any:
    """Leave the other quarters out, each test in the same one wherever it runs, and shuffle what is left."""
    result = yield
    others = [item for item in items if not _has_its_turn(item, config.option.quarter)]
    config.hook.pytest_deselected(items=others)
    left_out = set(others)
    items[:] = [item for item in items if item not in left_out]
    if config.option.shuffle is not None:
        random.Random(config.option.shuffle).shuffle(items)
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # what was collected stays, and is much: Python need not look through it again and again


def _has_its_turn(item: pytest.Item, quarter: str) -> bool:
    if quarter == "all" or item.get_closest_marker("rotating") is None:
        return True
    return zlib.crc32(item.nodeid.encode()) % QUARTERS == int(quarter)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw the same numbers in each test, whichever ran before it in this process."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what libraries draw from it
    # torch.manual_seed also notes, each time with the whole stack, to seed devices once they are there.
    (torch if torch.accelerator.is_available() else torch.default_generator).manual_seed(0)


@pytest.fixture(scope="session")
def _untouched() -> Snapshot:
    return Snapshot()


@pytest.fixture(autouse=True)
def _nothing_stays_behind(_untouched: Snapshot) -> Iterator[None]:
    """Fail where a test leaves torch changed for those that come after it."""
    yield
    left = _untouched.differences()
    if left:
        pytest.fail("left behind for the rest of the process: " + "; ".join(left))


SETTINGS = "_hypothesis_internal_use_settings"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Give a test its own settings back: hypothesis puts new ones around the last ones for each of its cases.

    After about a thousand cases they were nested too deeply for Python.
    """
    test = getattr(item, "obj", None)
    kept = getattr(test, SETTINGS, None)
    try:
        return (yield)
    finally:
        if kept is not None:
            setattr(test, SETTINGS, kept)


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
