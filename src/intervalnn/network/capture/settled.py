"""Settled values: known while torch captures a model, so that the model may branch on them, or take sizes from them.

``torch.export`` captures a model with stand-ins that have shapes and no numbers, and refuses a model that reads one.
But no interval reaches what follows from buffers, constants and whole numbers among the inputs alone. Examples are the
times of a solver with fixed steps, a flag that a layer was initialised, and the number of graphs in a batch. These
values are computed beside the stand-ins, and the model reads them. The program holds as long as they stay as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from intervalnn.network.capture.kept import words
from intervalnn.torch_private import no_modes, pytree, version_of

__all__ = ["READS", "Origin", "Settling"]

_MOST = 1 << 20  # numbers that a settled value may have
_NEVER = -2  # a count of changes that no tensor has
READS: set[Any] = {
    Tensor.item, Tensor.tolist, Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__index__, Tensor.__complex__,
    Tensor.__format__, Tensor.__contains__, Tensor.numpy, Tensor.__array__,
    Tensor.is_nonzero, torch.is_nonzero, Tensor.equal, torch.equal, Tensor.allclose, torch.allclose,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where a settled value comes from, and what it was.

    Attributes:
        kind: ``"buffer"``, ``"constant"`` or ``"input"``.
        name: Name of the buffer.
        index: Which of the tensors of the call, for an input.
        constant: The constant itself.
        value: A copy of the numbers.
    """

    kind: str
    value: Tensor
    name: str = ""
    index: int = -1
    constant: Tensor | None = None

    def holds(self, model: nn.Module, tensors: Sequence[Any]) -> bool:
        """Say whether the numbers are what they were."""
        now: Any = self.constant
        if self.kind == "buffer":
            now = dict(model.named_buffers(remove_duplicate=False)).get(self.name)
        elif self.kind == "input":
            now = tensors[self.index]
        return isinstance(now, Tensor) and _same(now, self.value)


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    return torch.equal(words(a), words(b))  # by the bit: zeros of both signs differ


@dataclass(eq=False)
class _Known:
    """A settled value, and what it follows from. The stand-in is held, so that nothing else takes its id.

    Views share their counter of changes, so a stand-in tells that its memory was written to through any of them.
    """

    stand_in: Any
    value: Tensor
    origins: frozenset[Origin]
    version: int = -1

    def __post_init__(self) -> None:
        self.version = self.now

    @property
    def now(self) -> int:
        return version_of(self.stand_in)


class Settling(TorchFunctionMode):
    """Computes settled values beside the stand-ins of a capture, and lets the model read them.

    Args:
        model: The model that is captured.
        points: The tensors of the call.
        intervals: Which of these are intervals, which are not settled.

    Attributes:
        read: What the values follow from that were read, by identity.
    """

    def __init__(self, model: nn.Module, points: Sequence[Tensor], intervals: Collection[int]) -> None:
        super().__init__()
        self.model, self.points, self.intervals = model, points, intervals
        self.read: dict[int, Origin] = {}
        self.known: dict[int, _Known] = {}
        self._memory = {_storage(parameter) for parameter in model.parameters()}

    def begin(self, stand_ins: Sequence[Any], buffers: dict[str, Any]) -> None:
        """Take note of the stand-ins of inputs and buffers, before the model runs."""
        self.read.clear()
        self.known.clear()
        for index, (stand_in, point) in enumerate(zip(stand_ins, self.points, strict=True)):
            if index not in self.intervals and not (point.is_floating_point() or point.is_complex()):
                self._add(stand_in, point, "input", index=index)
        own = dict(self.model.named_buffers(remove_duplicate=False))
        for name, stand_in in buffers.items():
            if name in own and _storage(own[name]) not in self._memory:
                self._add(stand_in, own[name], "buffer", name=name)

    def _add(self, stand_in: Any, tensor: Tensor, kind: str, **which: Any) -> None:
        if tensor.numel() <= _MOST and tensor.layout == torch.strided and not tensor.is_meta:
            with no_modes():
                value, kept = tensor.detach().clone(), tensor.detach().clone()
            self.known[id(stand_in)] = _Known(stand_in, value, frozenset({Origin(kind, kept, **which)}))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves, tree = pytree.tree_flatten((args, kwargs))
        found = [self._of(leaf) for leaf in leaves]
        if not _is_settled(leaves, found):
            if _writes(func):  # what is written to may hold an interval now, and not each way of writing is counted
                self._forget({_storage(known.stand_in) for known in found if known is not None})
            return func(*args, **kwargs)
        own_args, own_kwargs = pytree.tree_unflatten(
            [leaf if known is None else known.value for leaf, known in zip(leaves, found, strict=True)], tree
        )
        origins = frozenset().union(*(known.origins for known in found if known is not None))
        if func in READS:
            self.read.update({id(origin): origin for origin in origins})
            with no_modes():
                return func(*own_args, **own_kwargs)
        result = self._followed(func(*args, **kwargs), lambda: func(*own_args, **own_kwargs), origins)
        self._take_note({_storage(known.value) for known in found if known is not None and known.now != known.version})
        return result

    def _of(self, leaf: Any) -> _Known | None:
        """Return what is known of an argument; a constant that the model holds is known from its first use on."""
        if not isinstance(leaf, Tensor):
            return None
        if id(leaf) not in self.known and type(leaf) is Tensor and _storage(leaf) not in self._memory:
            self._add(leaf, leaf, "constant", constant=leaf)
        known = self.known.get(id(leaf))
        return known if known is not None and known.now == known.version else None

    def _followed(self, result: Any, compute: Callable[[], Any], origins: frozenset[Origin]) -> Any:
        """Return a result, and compute its numbers beside it, unless it is random or large.

        A result whose shape follows from numbers, such as that of ``nonzero``, becomes a constant of the program.
        """
        stand_ins, tree = pytree.tree_flatten(result)
        if not any(isinstance(x, Tensor) for x in stand_ins):
            return result
        devices = {x.device for x in stand_ins if isinstance(x, Tensor)}
        if any(device.type not in ("cpu", "cuda") for device in devices):
            return result
        with no_modes(), torch.random.fork_rng(devices=[device for device in devices if device.type == "cuda"]):
            state = _random_state(devices)
            try:
                values = pytree.tree_leaves(compute())
            except Exception:
                return result
            is_random = _random_state(devices) != state
        if (
            is_random
            or len(values) != len(stand_ins)
            or any(isinstance(x, Tensor) and x.numel() > _MOST for x in values)
        ):
            return result
        shaped = [isinstance(x, Tensor) and not _is_backed(x) for x in stand_ins]
        if any(shaped):
            self.read.update({id(origin): origin for origin in origins})
        for place, value in enumerate(values):
            if shaped[place]:
                with no_modes():
                    numbers = value.tolist()
                stand_ins[place] = torch.tensor(numbers, dtype=value.dtype, device=value.device).reshape(value.shape)
            if isinstance(value, Tensor):
                self.known[id(stand_ins[place])] = _Known(stand_ins[place], value, origins)
        return pytree.tree_unflatten(stand_ins, tree) if any(shaped) else result

    def _forget(self, written: set[int]) -> None:
        """Forget what lies in memory that something unsettled was written to."""
        for known in self.known.values() if written else ():
            if _storage(known.stand_in) in written:
                known.version = _NEVER

    def _take_note(self, written: set[int]) -> None:
        """Take note that memory was written to by settled values alone, so that what lies there is still known."""
        for known in self.known.values() if written else ():
            if _storage(known.value) in written:
                known.version = known.now


def _writes(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name.endswith("_") and not name.endswith("__")


def _is_settled(leaves: Sequence[Any], found: Sequence[_Known | None]) -> bool:
    """Say whether a call has nothing but settled values and plain ones among its arguments."""
    for leaf, known in zip(leaves, found, strict=True):
        if isinstance(leaf, Tensor) and known is None:
            return False
        if isinstance(leaf, torch.SymInt | torch.SymFloat | torch.SymBool | torch.Generator):
            return False
    return True


def _is_backed(x: Tensor) -> bool:
    """Say whether the sizes of a stand-in follow from sizes, not from numbers."""
    sizes: Sequence[Any] = x.shape
    return all(isinstance(size, int) or size.node.has_hint() for size in sizes)


def _random_state(devices: Collection[torch.device]) -> list[Any]:
    """Return the states of the random generators of the CPU and of these devices."""
    gpus = [torch.cuda.get_rng_state(device) for device in devices if device.type == "cuda"]
    return [state.tolist() for state in (torch.random.get_rng_state(), *gpus)]


def _storage(x: Tensor) -> int:
    with contextlib.suppress(Exception):
        return x.untyped_storage().data_ptr()
    return 0
