"""Call: how a model is called: its tensors, and what is needed to call it again with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.network.capture.parts import Parts, is_plain
from intervalnn.torch_private import pytree

__all__ = ["Call", "memory_shared"]


@dataclass(frozen=True, slots=True)
class Call:
    """The tensors of one call of a model, and what is needed to call it again with others.

    Attributes:
        leaves: Tensors and plain values; objects that torch does not know how to flatten, taken apart.
        spec: How the leaves stand in the arguments.
        tensors: The tensors and intervals, each once, however often it was passed.
    """

    leaves: list[Any]
    spec: pytree.TreeSpec
    tensors: list[Tensor | Interval]

    @staticmethod
    def of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Take a call apart."""
        try:
            leaves, spec = pytree.tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, Interval))
        except RecursionError as error:
            raise TypeError(
                "an argument holds itself, or is nested too deeply; pass its tensors by themselves"
            ) from error
        leaves = [x if isinstance(x, Tensor | Interval) or is_plain(x) else Parts.of(x) for x in leaves]
        inside = (x.tensors if isinstance(x, Parts) else [x] for x in leaves if not is_plain(x))
        once = {id(tensor): tensor for tensors in inside for tensor in tensors}
        return Call(leaves, spec, list(once.values()))

    @property
    def key(self) -> Any:
        """What another call must have in common with this one to share its program, sizes aside."""
        places = {id(tensor): place for place, tensor in enumerate(self.tensors)}
        described = (_described(leaf, places) for leaf in self.leaves)
        kinds = ((type(t), t.dtype, t.dim(), str(t.device), *_seen(_point(t))) for t in self.tensors)
        return (_structure(self.spec), torch.get_default_dtype(), *described, *kinds, *memory_shared(self.tensors))

    def rebuild(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with other tensors in the place of the tensors."""
        others = {id(own): other for own, other in zip(self.tensors, tensors, strict=True)}

        def put(leaf: Any) -> Any:
            if isinstance(leaf, Parts):
                return leaf.rebuild([others[id(tensor)] for tensor in leaf.tensors])
            return others.get(id(leaf), leaf) if isinstance(leaf, Tensor | Interval) else leaf

        args, kwargs = pytree.tree_unflatten([put(leaf) for leaf in self.leaves], self.spec)
        return args, kwargs


def _described(leaf: Any, places: dict[int, int]) -> Any:
    """Return a key that tells this argument from others, whatever the values of its tensors."""
    if isinstance(leaf, Parts):
        return leaf.content, leaf.types, tuple(places[id(tensor)] for tensor in leaf.tensors)
    return places[id(leaf)] if isinstance(leaf, Tensor | Interval) else (type(leaf), repr(leaf))


def _structure(spec: pytree.TreeSpec) -> Any:
    """Return what tells one structure of arguments from others."""
    return (spec.type, _context(spec.context), *map(_structure, spec.children())) if spec.type is not None else None


def _context(value: Any) -> Any:
    """Return a key for what a structure holds beside its leaves, such as the keys of a dict."""
    if value is None or isinstance(value, type) or (isinstance(value, FunctionType) and not value.__closure__):
        return value
    if isinstance(value, list | tuple):
        return tuple(map(_context, value))
    if is_plain(value):
        return type(value), repr(value)
    parts = Parts.of(value)
    if parts.tensors:
        raise TypeError(f"an argument holds tensors in its structure ({type(value).__name__}); pass them by themselves")
    return parts.types, parts.content


def _point(x: Tensor | Interval) -> Tensor:
    return x.point if isinstance(x, Interval) else x


def _seen(x: Tensor) -> tuple[Any, ...]:
    """Return properties of a tensor that a model may read, beside its sizes and numbers.

    These are its layout, whether it requires a gradient and, if it is not contiguous, the order of its strides and
    which of them are zero.
    """
    if x.layout != torch.strided or x.is_contiguous():
        return x.layout, x.requires_grad
    strides = x.stride()
    order = sorted(range(x.dim()), key=lambda d: -strides[d])
    return x.layout, x.requires_grad, *order, *(stride == 0 for stride in strides)


def memory_shared(tensors: Sequence[Tensor | Interval]) -> list[int]:
    """Return for each tensor the first one that shares its memory."""
    points = [_point(t) for t in tensors]
    if len(points) < 2:
        return []
    strided = [t.layout == torch.strided and not t.is_meta for t in points]
    places = [
        t.untyped_storage().data_ptr() if s else -1 - i for i, (t, s) in enumerate(zip(points, strided, strict=True))
    ]
    return [places.index(place) for place in places]
