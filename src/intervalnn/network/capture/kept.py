"""Kept: copies of tensors, by which to see whether these have changed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from intervalnn.torch_private import version_of

__all__ = ["Kept", "words"]


class Kept:
    """What some tensors were, to the last bit, and where they lay.

    Torch's version counter misses changes made through ``.data``, NumPy, a memory-mapped file or shared memory. So the
    numbers themselves are compared. On the CPU they are compared before they are used. On other devices the comparison
    is asynchronous: :meth:`differ` returns its result as a tensor on the device, which marks the bounds.

    Args:
        tensors: The tensors.
        only_read: Tensors whose numbers may change, where only their place must stay.

    Raises:
        RuntimeError: If a tensor has no memory of its own to look at, such as one of ``torch.func``.

    Example:
        >>> weight = torch.zeros(3)
        >>> kept = Kept([weight])
        >>> weight.data[1] = 1.0
        >>> weight._version, kept.are([weight])
        (0, False)
    """

    def __init__(self, tensors: Sequence[Tensor], only_read: Sequence[Tensor] = ()) -> None:
        for x in tensors:
            x.data_ptr()  # which raises where there is no memory
        self.places = [(x.detach(), _read_as(x)) for x in (*tensors, *only_read)]  # and none comes to lie there
        all_words = [words(x.detach()) for x in tensors if x.device.type != "meta"]
        here = [x for x in all_words if _is_here(x.device)]
        self.here = [(x, x.clone()) for x in here]
        groups: dict[Any, list[Tensor]] = {}
        for x in all_words:
            if not _is_here(x.device):
                groups.setdefault((x.device, x.dtype), []).append(x)
        self.elsewhere = [(group, _joined(group)) for group in groups.values()]
        self.report: tuple[Any, Tensor] | None = None

    def are(self, tensors: Sequence[Tensor], only_read: Sequence[Tensor] = ()) -> bool:
        """Say whether these are the tensors that were kept, unchanged as far as is known without synchronisation."""
        now = (*tensors, *only_read)
        try:
            if len(now) != len(self.places) or not all(map(_lies_at, now, self.places)):
                return False
        except RuntimeError:  # they have no memory of their own, and these had
            return False
        return all(torch.equal(x, copy) for x, copy in self.here) and not self._differed()

    def differ(self) -> Tensor | None:
        """Return whether some tensor has changed, as a boolean on its device; None where :meth:`are` can tell."""
        if not self.elsewhere:
            return None
        each = [(_joined(group) != copy).any() for group, copy in self.elsewhere]
        found = torch.stack([x.to(each[0].device, non_blocking=True) for x in each]).any()
        self.report = _on_its_way(found)
        return found

    def _differed(self) -> bool:
        """Say whether the last result of :meth:`differ` has arrived and was true."""
        if self.report is None or _is_recording():
            return False
        arrived, found = self.report
        return (arrived is None or arrived.query()) and bool(found)


def _is_here(device: torch.device) -> bool:
    """Say whether numbers on a device can be read without synchronisation."""
    return device.type == "cpu"


def _lies_at(x: Tensor, place: tuple[Tensor, Any]) -> bool:
    """Say whether a tensor has the memory, sizes and strides of one that was kept, and is read as that was."""
    known, read_as = place
    return x.is_set_to(known) and _read_as(x) == read_as


def _read_as(x: Tensor) -> tuple[torch.dtype, int]:
    """Return how the memory of a tensor is interpreted and, off the CPU, its version counter."""
    if x.is_conj() or x.is_neg():
        raise RuntimeError("a tensor that is read as another one than it holds cannot be compared bit by bit")
    return x.dtype, 0 if _is_here(x.device) or x.is_inference() else version_of(x)


_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}
_WIDEST = 8  # bytes that are compared at once


def words(x: Tensor) -> Tensor:
    """Return the same memory as whole numbers, as wide as may be.

    Compared as floating-point numbers, NaN would differ from itself, and -0.0 would equal 0.0.
    """
    strides = x.stride()
    x = x.permute(sorted(range(x.dim()), key=lambda dim: -strides[dim]))  # as it lies in memory
    size = x.element_size()
    if not x.is_contiguous():
        return x.view(_INTEGERS[size]) if size <= _WIDEST else torch.view_as_real(x).view(torch.int64)
    x = x.reshape(-1)
    whole = not (x.numel() * size % _WIDEST or x.storage_offset() * size % _WIDEST)
    return x.view(torch.int64 if whole else _INTEGERS[size])


def _joined(words: list[Tensor]) -> Tensor:
    """Return the tensors concatenated, so that one kernel launch compares all of them."""
    return torch.cat([x.reshape(-1) for x in words])


def _is_recording() -> bool:
    """Say whether a CUDA graph is being recorded, during which the device must not be synchronised."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _on_its_way(found: Tensor) -> tuple[Any, Tensor] | None:
    """Start an asynchronous copy of a boolean to the CPU, and return the copy and the event that marks its arrival."""
    if found.device.type == "cpu":
        return None, found
    if _is_recording():
        return None
    arriving, arrived = found.to("cpu", non_blocking=True), torch.Event(found.device)
    arrived.record()
    return arrived, arriving
