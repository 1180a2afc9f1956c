"""Flat: a model as a function of its tensors alone, and from which of its lines a node of its program comes."""

from __future__ import annotations

import contextlib
from typing import Any

from torch import Tensor, fx, nn

from intervalnn.network.capture.call import Call
from intervalnn.network.capture.capture_errors import is_of_model
from intervalnn.network.capture.parts import Structure
from intervalnn.network.capture.settled import Origin, Settling

__all__ = ["START", "Flat", "where"]

START = (__file__, "forward")  # the function that calls the model: the frames inside of it are the model's


class _Seen:
    """Holds what a capture shows: torch.export would undo an assignment to an attribute of the module itself."""

    returned: Structure | None = None
    settling: Settling | None = None  # once the model was seen to read a value


class Flat(nn.Module):
    """The model as a function from tensors to tensors.

    Args:
        model: The model.
        call: How it is called.
    """

    def __init__(self, model: nn.Module, call: Call) -> None:
        super().__init__()
        self.model = model
        self.call = call
        self.training = False
        self._seen = _Seen()

    def forward(self, *tensors: Tensor) -> list[Any]:
        """Call the model with these tensors in the place of the call's own, and take apart what it returns."""
        args, kwargs = self.call.rebuild(tensors)
        settling = self._seen.settling
        if settling is not None:
            settling.begin(tensors, dict(self.model.named_buffers(remove_duplicate=False)))
        with settling or contextlib.nullcontext():
            leaves, self._seen.returned = Structure.of(self.model(*args, **kwargs))
        return leaves

    def settle(self, settling: Settling) -> None:
        """Let the model read settled values from now on."""
        self._seen.settling = settling

    @property
    def read(self) -> tuple[Origin, ...]:
        """What the values follow from that the model has read."""
        settling = self._seen.settling
        return () if settling is None else tuple(settling.read.values())

    @property
    def returned(self) -> Structure:
        """How the tensors stood in what the model returned last."""
        assert self._seen.returned is not None
        return self._seen.returned


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
