"""Sizes: at which others than the example's a file is tried."""

from __future__ import annotations

from collections.abc import Iterator

from intervalnn.network.network import IntervalNetwork
from intervalnn.saving.exporting.example import Example
from intervalnn.saving.exporting.standalone import Standalone

__all__ = ["other_sizes"]

Sizes = dict[str, int]


def other_sizes(net: IntervalNetwork, program: Standalone, example: Example) -> list[Example]:
    """Return the example as one sample, and at other sizes of all that may vary, as far as the model takes them."""
    now = program.varying(example)
    first = (value.shape[0] for value in program.inputs.values() if value.shape)
    batches = [axis for axis in first if isinstance(axis, str)]
    signals = [axis for axis in now if axis not in batches]
    single = program.resized(example, dict.fromkeys(batches, 1))
    more = {axis: now[axis] + 1 for axis in batches}
    candidates = (program.resized(example, more | sizes) for sizes in _signals(now, signals))
    other = next((each for each in candidates if program.model.fits(each.tensors) and each.runs(net.model)), example)
    return [each for each in (single, other) if each.shapes != example.shapes and each.runs(net.model)]


def _signals(now: Sizes, signals: list[str]) -> Iterator[Sizes]:
    """Yield sizes to try: halves first, since they are quick; one alone first, to tell height from width."""
    for some in (signals[:1], signals):
        yield {axis: now[axis] // 2 for axis in some}
    for some in (signals[:1], signals):
        yield {axis: now[axis] * 2 for axis in some}
    yield {}
