"""Count what a call computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class _Convolutions(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += "convolution" in str(func)
        return func(*args, **(kwargs or {}))


def convolutions(run: Callable[[], Any]) -> int:
    """Return how many convolutions ``run`` computes."""
    with torch.no_grad(), _Convolutions() as count:
        run()
    return count.seen
