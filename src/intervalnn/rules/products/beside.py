"""Values that one pass over memory computes, written side by side for a product that takes them all."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from intervalnn.torch_private import write_parts

__all__ = ["beside", "teach_compiler"]


@torch.library.custom_op("intervalnn::beside", mutates_args=())
def _join(parts: list[Tensor], dim: int) -> Tensor:
    return torch.cat(parts, dim)


@_join.register_fake
def _(parts: list[Tensor], dim: int) -> Tensor:
    return torch.cat(parts, dim)


def beside(parts: list[Tensor], dim: int) -> Tensor:
    """Return the parts joined along ``dim``, counted from the end.

    Of a plain ``torch.cat``, torch's compiler computes every part at every place on a GPU, and picks one. That pays
    where the parts are made of different values, not where all are made of the same.
    """
    if torch.compiler.is_dynamo_compiling() and not torch.is_grad_enabled():
        joined: Tensor = _join(parts, parts[0].dim() + dim)
        return joined
    return torch.cat(parts, dim)


@cache
def teach_compiler() -> None:
    """Have torch's compiler write each part to where it belongs, rather than join them by a call."""
    write_parts(torch.ops.intervalnn.beside.default)
