"""Files, configs and command lines that are damaged or odd: a clear error or the right result, every time."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzzing import commands, configs
from fuzzing.lines import LEAVES, RIGHT, SLOW, Line
from fuzzing.readers import READERS
from fuzzing.saved import SAVED

randoms = st.randoms(use_true_random=False)
STOPPED = "ignore::pytest.PytestUnraisableExceptionWarning"  # Ctrl-C in a weak reference's callback
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Keep the libraries beneath from telling of every damaged file."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def tried(case: Callable[[Random, Path], object], random: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        case(random, Path(folder))


@pytest.mark.rotating
@pytest.mark.parametrize("kind", READERS)
@FEW
@given(random=randoms)
def test_damaged_data_is_read_or_named_and_skipped(kind: str, random: Random) -> None:
    tried(READERS[kind].case, random)


@pytest.mark.rotating
@pytest.mark.parametrize("kind", SAVED)
@FEW
@given(random=randoms)
def test_a_damaged_file_is_read_or_named_in_a_clear_error(kind: str, random: Random) -> None:
    tried(SAVED[kind].case, random)


@settings(FEW, max_examples=100)
@given(random=randoms)
def test_an_odd_config_is_read_or_refused_with_the_key(random: Random) -> None:
    tried(configs.case, random)


@pytest.mark.filterwarnings(STOPPED)
@settings(FEW, max_examples=6)
@given(random=randoms)
def test_an_odd_command_line_ends_with_a_message_and_writes_nothing_else(random: Random) -> None:
    tried(commands.case, random)


@pytest.mark.slow
@pytest.mark.filterwarnings(STOPPED)
@settings(FEW, max_examples=30)
@given(random=randoms)
def test_so_does_each_of_many_odd_command_lines(random: Random) -> None:
    tried(commands.case, random)


def test_every_command_has_a_line_that_is_right() -> None:
    assert RIGHT.keys() == LEAVES.keys()


LINES = {f"{name} {i}": (name, line) for name, lines in RIGHT.items() for i, line in enumerate(lines)}
QUICK = [key for key, (name, _) in LINES.items() if name not in ("demo", "report") or key == "report 0"]


@pytest.mark.rotating
@pytest.mark.parametrize("key", [key for key in QUICK if not key.startswith("reproduce") or "denoising" in key])
def test_a_right_line_does_what_it_promises(key: str, tmp_path: Path) -> None:
    name, groups = LINES[key]
    words = [*name.split(), *(word for group in groups for word in group)]

    code = commands.check(Line(words, seconds=SLOW["view"] if key == "view 1" else None), tmp_path)

    assert code == 0


REPORT = ["report", "run.json", "--out", "grö\udcff.html"]
ASCII = {"PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize(
    ("words", "shell", "code"),
    [
        (REPORT, ASCII, 0),
        ([*REPORT, "--nothing"], {}, 2),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                (REPORT, {}, 0),
                ([*REPORT, "--nothing"], ASCII, 2),
                (["report", "empty", "--debug"], {}, 1),
                (["report", "empty", "--debug"], ASCII, 1),
            )
        ),
    ],
    ids=ascii,
)
def test_a_shell_sees_the_same(words: list[str], shell: dict[str, str], code: int, tmp_path: Path) -> None:
    assert commands.check(Line(words), tmp_path, shell) == code
