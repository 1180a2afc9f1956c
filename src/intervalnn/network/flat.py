"""Flat: a model as a function of its tensors alone, and from which of its lines a node of its program comes."""

from __future__ import annotations

from typing import Any

from torch import Tensor, fx, nn

from intervalnn.network.call import Call
from intervalnn.network.capture_errors import is_of_model

__all__ = ["START", "Flat", "where"]

START = (__file__, "forward")  # the function that calls the model: the frames inside of it are the model's


class Flat(nn.Module):
    """The model as a function of its tensors alone.

    Args:
        model: The model.
        call: How it is called.
    """

    def __init__(self, model: nn.Module, call: Call) -> None:
        super().__init__()
        self.model = model
        self.call = call
        self.training = False

    def forward(self, *tensors: Tensor) -> Any:
        """Call the model with these tensors in the place of the call's own."""
        args, kwargs = self.call.rebuild(tensors)
        return self.model(*args, **kwargs)


def where(node: fx.Node) -> str:
    """Say which module and which line of the user's code a node comes from."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    module = (paths[-1] if paths else "").removeprefix("model").removeprefix(".")
    text = f"in module '{module}'" if module else "in the model's forward"
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").strip().splitlines()]
    frames = [(lines[i], lines[i + 1]) for i in range(len(lines) - 1) if lines[i].startswith("File ")]
    inside = max((i for i, (place, _) in enumerate(frames) if START[0] in place), default=len(frames))
    for place, code in reversed(frames[inside + 1 :]):
        file, _, rest = place.removeprefix('File "').partition('", line ')
        if is_of_model(file):
            return f'{text}, {file}:{rest.split(",")[0]} ("{code}")'
    return text
