"""A network of a public package, which is imported when the network is built.

So a package that is missing or broken costs no more than its own rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from torch import nn
from zoo import Case, Inputs, real

REL = 1e-5  # gaps relative to the weights: most of these networks are deep


def of(module: str) -> Any:
    """Return a module of a package."""
    return importlib.import_module(module)


def network(name: str, model: Callable[[], nn.Module], inputs: Callable[[], Inputs], *, rel: float = REL) -> Case:
    """Name a network, with its builder and the arguments of one call."""
    return Case(name, model, inputs, rel=rel, bitwise=False)


def image(channels: int = 3, size: int = 32, batch: int = 2) -> Callable[[], Inputs]:
    return real(batch, channels, size, size)


class Call(nn.Module):
    """A network whose forward pass is another method of the model, or wants arguments that are no tensors."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self.call = call

    def forward(self, *args: Any) -> Any:
        return self.call(self.model, *args)
