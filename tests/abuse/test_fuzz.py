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

from abuse import commands, configs
from abuse.readers import READERS
from abuse.saved import SAVED

randoms = st.randoms(use_true_random=False)
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Keep the libraries beneath from telling of every damaged file."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def tried(case: Callable[[Random, Path], None], random: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        case(random, Path(folder))


@pytest.mark.parametrize("kind", READERS)
@FEW
@given(random=randoms)
def test_damaged_data_is_read_or_named_and_skipped(kind: str, random: Random) -> None:
    tried(READERS[kind].case, random)


@pytest.mark.parametrize("kind", SAVED)
@FEW
@given(random=randoms)
def test_a_damaged_file_is_read_or_named_in_a_clear_error(kind: str, random: Random) -> None:
    tried(SAVED[kind].case, random)


@settings(FEW, max_examples=100)
@given(random=randoms)
def test_an_odd_config_is_read_or_refused_with_the_key(random: Random) -> None:
    tried(configs.case, random)


@settings(FEW, max_examples=20)
@given(random=randoms)
def test_an_odd_command_line_ends_with_a_message_and_writes_nothing_else(random: Random) -> None:
    tried(commands.case, random)
