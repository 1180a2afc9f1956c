"""Heads: further outputs for any model, on a copy of it, that start at zero."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from intervalnn.methods.copies import output_of, own_copy
from intervalnn.torch_private import Convolution, TransposedConvolution

__all__ = ["Heads", "HeadsKind"]

HeadsKind = Literal["layer", "copy"]


class Heads(nn.Module):
    """A copy of a model to be trained, and further outputs of the same shape, as offsets that start at zero.

    By default the heads are one more layer beside the copy's last weight layer, with the same input. So a residual, a
    sigmoid or a clamp behind that layer does not apply to them. With ``"copy"``, each head is a whole copy of the model
    and starts at the model's weights.

    Args:
        model: The underlying model, which is only read.
        outputs: How many heads.
        own: Whether what the copy itself predicts is wanted too.
        kind: ``"layer"`` or ``"copy"``.
        last: Name of the last weight layer; by default the one that was registered last.

    Attributes:
        scale: The unit of the offsets: the size of the model's errors, so that training does not depend on units.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        >>> heads = Heads(model, 2)
        >>> own, offsets = heads(None, torch.ones(5, 3))
        >>> torch.equal(own, model(torch.ones(5, 3))), offsets.shape, bool(offsets.any())
        (True, torch.Size([2, 5, 1]), False)
    """

    scale: Tensor

    def __init__(
        self, model: nn.Module, outputs: int, *, own: bool = True, kind: HeadsKind = "layer", last: str | None = None
    ) -> None:
        super().__init__()
        if kind not in get_args(HeadsKind):
            raise ValueError(f"heads must be one of {', '.join(map(repr, get_args(HeadsKind)))}, got {kind!r}")
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.zeros(()))
        self.register_buffer("scale", torch.ones((), dtype=like.dtype, device=like.device))
        self.outputs, self.own, self.kind, self.last = outputs, own, kind, last
        self.networks = nn.ModuleList(own_copy(model) for _ in range(outputs + own if kind == "copy" else 1))
        self.layer = _zeros_like(self._beside(), outputs) if kind == "layer" else None

    def trained(self, model: nn.Module) -> bool:
        """Say whether anything differs from the start: the scale, layers of zeros, copies of the model."""
        if bool(self.scale != 1):
            return True
        if self.layer is not None:
            return any(bool(parameter.any()) for parameter in self.layer.parameters())
        pairs = (pair for own in self.networks for pair in zip(own.parameters(), model.parameters(), strict=False))
        return any(not torch.equal(own, start.to(own.device)) for own, start in pairs)

    def _beside(self) -> nn.Module:
        """Return the weight layer beside which the heads are."""
        known: dict[str, nn.Module] = {
            name: layer for name, layer in self.networks[0].named_modules() if _is_weight_layer(layer)
        }
        if not known:
            raise ValueError("the model has no linear layer or convolution to put heads beside; pass heads='copy'")
        name = list(known)[-1] if self.last is None else self.last
        if name not in known:
            raise ValueError(f"last must be one of the model's weight layers ({', '.join(known)}), got {name!r}")
        return known[name]

    def forward(self, point: Tensor | None, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return what the copy predicts and the offsets, ``(batch, *signal)`` and ``(outputs, batch, *signal)``.

        Args:
            point: What the offsets are from, if that is not the copy's own prediction.
            args: What the model takes.
            kwargs: What the model takes by name.
        """
        if self.layer is None:
            outputs = torch.stack([output_of(network, *args, **kwargs) for network in self.networks])
            return outputs[0], outputs[-self.outputs :] - (outputs[0].detach() if point is None else point)
        with self._tapped(self.layer) as offsets:
            output = output_of(self.networks[0], *args, **kwargs)
        return output, self.scale * self._in_shape(offsets[-1], output)

    @contextmanager
    def _tapped(self, heads: nn.Module) -> Iterator[list[Tensor]]:
        """Run the heads beside their layer, which must be the last one to run unless another was asked for."""
        offsets: list[Tensor] = []
        ran: list[nn.Module] = []
        beside = self._beside()

        def hook(layer: nn.Module, args: Any, kwargs: Any, _: Any) -> None:
            ran.append(layer)
            if layer is beside:
                offsets.append(heads(*args, **kwargs))

        layers = {layer: name for name, layer in self.networks[0].named_modules() if _is_weight_layer(layer)}
        handles = [layer.register_forward_hook(hook, with_kwargs=True) for layer in layers]
        try:
            yield offsets
        finally:
            for handle in handles:
                handle.remove()
        if not offsets or (self.last is None and ran[-1] is not beside):
            hint = f"last={layers[ran[-1]]!r}, which was, or heads='copy'" if ran else "heads='copy'"
            raise ValueError(f"layer '{layers[beside]}' is not the last to run; pass {hint}")

    def _in_shape(self, offsets: Tensor, output: Tensor) -> Tensor:
        """Return the heads apart, in the shape of the output, from which they may differ by dimensions of one."""
        channels = _channels(self._beside())
        apart: Tensor = offsets.unflatten(channels, (self.outputs, -1)).movedim(channels - 1, 0)
        if [size for size in apart.shape[1:] if size > 1] != [size for size in output.shape if size > 1]:
            raise ValueError(
                f"the last weight layer gives shape {tuple(apart.shape[1:])}, the model {tuple(output.shape)}: it does "
                "more after it than heads can follow; pass heads='copy'"
            )
        return apart.reshape(self.outputs, *output.shape)

    def extra_repr(self) -> str:
        """Return the one line that printing the heads adds."""
        return f"outputs={self.outputs}, kind={self.kind!r}, last={self.last!r}"


def _is_weight_layer(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear | Convolution)


def _channels(layer: nn.Module) -> int:
    """Return the dimension of a layer's output that holds the channels, counted from the end."""
    return -1 - len(layer.kernel_size) if isinstance(layer, Convolution) else -1


def _zeros_like(layer: nn.Module, times: int) -> nn.Module:
    """Return a layer of zeros with so many times the channels, in the dtype and on the device of the given one."""
    new: nn.Module
    where: dict[str, Any] = {"device": "meta", "dtype": layer.weight.dtype}  # where nothing is drawn at random
    if isinstance(layer, Convolution):
        transposed = isinstance(layer, TransposedConvolution)
        options = {name: getattr(layer, name) for name in ("stride", "padding", "dilation", "padding_mode")}
        options |= {"output_padding": layer.output_padding} if transposed else {}
        kind = getattr(nn, f"Conv{'Transpose' if transposed else ''}{len(layer.kernel_size)}d")
        new = kind(layer.in_channels, times * layer.out_channels, layer.kernel_size, **options, **where)
    else:
        assert isinstance(layer, nn.Linear)
        new = nn.Linear(layer.in_features, times * layer.out_features, **where)
    new.to_empty(device=layer.weight.device)
    for parameter in new.parameters():
        nn.init.zeros_(parameter)
    return new
