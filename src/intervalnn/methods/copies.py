"""Copies: how a model is read, trained anew or drawn from without one byte of it being edited."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.torch_private import pytree

__all__ = ["evaluating", "in_eval_mode", "output_of", "own_copy", "seeded", "sharing_copy"]


def sharing_copy(model: nn.Module) -> nn.Module:
    """Return a copy, in eval mode, that shares every tensor with the model but none of its flags.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        >>> copied = sharing_copy(model)
        >>> copied[0].weight is model[0].weight, copied[1].training, model[1].training
        (True, False, True)
    """
    held = chain(model.parameters(), model.buffers(), _plain_tensors(model))
    shared: dict[int, Any] = {id(tensor): tensor for tensor in held}
    return copy.deepcopy(model, shared).eval()


def in_eval_mode(model: nn.Module) -> nn.Module:
    """Return the model itself where all of it is in eval mode, else a copy that is and shares its tensors."""
    return sharing_copy(model) if any(module.training for module in model.modules()) else model


def own_copy(model: nn.Module) -> nn.Module:
    """Return a copy with tensors of its own, all of which require gradients."""
    # Those with a graph, which torch's older weight norm has, could not be copied otherwise.
    detached: dict[int, Any] = {id(tensor): tensor.detach().clone() for tensor in _plain_tensors(model)}
    copied = copy.deepcopy(model, detached)
    copied.zero_grad(set_to_none=True)
    for parameter in copied.parameters():
        parameter.requires_grad_(parameter.is_floating_point() or parameter.is_complex())
    return copied


def _plain_tensors(model: nn.Module) -> Iterator[Tensor]:
    """Yield the tensors that modules hold as attributes, without having registered them."""
    values = (value for module in model.modules() for value in vars(module).values())
    return (value for value in values if isinstance(value, Tensor))


def output_of(model: nn.Module, /, *args: Any, **kwargs: Any) -> Tensor:
    """Call a model with copies of the tensors, because it may write to them; raise unless it returns a tensor.

    Example:
        >>> class InPlace(nn.Module):
        ...     def forward(self, x: Tensor) -> Tensor:
        ...         return x.mul_(2.0)
        >>> x = torch.ones(2)
        >>> output_of(InPlace(), x), x
        (tensor([2., 2.]), tensor([1., 1.]))
    """
    args, kwargs = pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, (args, kwargs))
    output = model(*args, **kwargs)
    if not isinstance(output, Tensor):
        raise TypeError(
            f"the model must return one tensor, got a {type(output).__name__}; wrap it in a module that returns "
            "the one that you want bounds for"
        )
    return output


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into eval mode for a while; each of its parts gets back the mode that it had."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Seed the random generators for a while, and restore their states at the end."""
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type="cuda" if not devices else device.type):
        torch.manual_seed(seed)
        yield
