"""Example: one call of a model with named inputs, and the same at other sizes."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.side_effects import refuse_training
from intervalnn.saving.exporting.names import apart, joined_name
from intervalnn.torch_private import pytree

__all__ = ["Example"]


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One call of a model.

    Attributes:
        call: The call, taken apart.
        names: Of its tensors, in order: the model's own names for its arguments.
    """

    call: Call
    names: list[str]

    @staticmethod
    def of(model: nn.Module, example: Any) -> Example:
        """Read what a user gives: one tensor, a tuple of arguments, or a mapping of arguments by name.

        Example:
            >>> Example.of(nn.Bilinear(2, 3, 1), (torch.ones(4, 2), torch.ones(4, 3))).names
            ['input1', 'input2']
        """
        refuse_training(model)
        args, kwargs = pytree.tree_map_only(Tensor, _plain, _arguments(example))
        call = Call.of(args, kwargs)
        if any(isinstance(tensor, Interval) for tensor in call.tensors):
            raise TypeError("the example must be made of tensors: an exported network takes no intervals")
        if not call.tensors:
            raise ValueError(f"the example must hold at least one tensor, got {example!r}")
        try:
            _run(model, args, kwargs)
        except Exception as error:
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in call.tensors)
            raise ValueError(
                f"{type(model).__name__} does not take this example (tensors of shape {shapes}): "
                f"{type(error).__name__}: {error}"
            ) from error
        return Example(call, _names(model, call))

    def apart_from(self, outputs: Collection[str]) -> Example:
        """Return the same call with other names for tensors that share theirs with an output."""
        names = (f"input_{name}" if name in outputs else name for name in self.names)
        return Example(self.call, apart(names, taken=outputs))

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call the model with."""
        return self.call.rebuild(self.call.tensors)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [tensor for tensor in self.call.tensors if isinstance(tensor, Tensor)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the tensors."""
        return [tuple(tensor.shape) for tensor in self.tensors]

    def several(self, model: nn.Module) -> Example:
        """Return the same call with two samples where it has one, if the model takes that.

        Torch takes a size of one for a fixed one.
        """
        two = self.resized([(2, *shape[1:]) if shape and shape[0] == 1 else shape for shape in self.shapes])
        return two if two.runs(model) else self

    def resized(self, shapes: Sequence[Sequence[int]]) -> Example:
        """Return the same call with tensors of other sizes, cut off or repeated along each dimension."""
        tensors = [_resized(*pair) for pair in zip(self.tensors, shapes, strict=True)]
        return Example(Call.of(*self.call.rebuild(tensors)), self.names)

    def runs(self, model: nn.Module) -> bool:
        """Say whether a model takes it."""
        args, kwargs = self.arguments
        try:
            _run(model, args, kwargs)
        except Exception:
            return False
        return True


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example, Mapping):
        return (), dict(example)
    return (tuple(example), {}) if isinstance(example, tuple | list) else ((example,), {})


def _plain(tensor: Tensor) -> Tensor:
    """Return a tensor in the usual order in memory, in which compiled code will expect it."""
    return tensor.detach().clone(memory_format=torch.contiguous_format)


@torch.no_grad()
def _run(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    model(*args, **kwargs)


class _Place:
    """Stands where a tensor stood."""


def _names(model: nn.Module, call: Call) -> list[str]:
    places = [_Place() for _ in call.tensors]
    args, kwargs = call.rebuild(places)
    bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    found = {id(leaf): joined_name(*path) for path, leaf in pytree.tree_flatten_with_path(dict(bound))[0]}
    return apart(found[id(place)] for place in places)


def _resized(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    for dim, size in enumerate(shape):
        if tensor.size(dim) != size:
            tensor = tensor.index_select(dim, torch.arange(size, device=tensor.device) % tensor.size(dim))
    return tensor
