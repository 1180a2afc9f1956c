"""``inn export``: an interval network for another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.config import Config
from intervalnn.cli.screen import Screen
from intervalnn.files.printable import printable

if TYPE_CHECKING:
    from torch import device as Device
    from torch import nn

__all__ = ["export"]


@command(
    "model",
    "export",
    "",
    example="inn export --net net.safetensors \\\n"
    "    --model mymodels:unet --weights unet.safetensors \\\n"
    "    --data data/test --out net.onnx",
)
def export(screen: Screen, config: Config, *, overwrite: bool) -> dict[str, Any]:
    """Write a network for ONNX Runtime or torch, compiled or not, and a card.

    DATA is as for inn fit, but the targets may be missing: a folder with x.npy, or that file, will do.
    """
    from intervalnn.cli.models import device_of, load_network
    from intervalnn.saving.exporting import export as write

    chosen = config.export
    assert chosen.net is not None and chosen.data is not None and chosen.out is not None
    refuse_existing(chosen.out, overwrite, reads=(chosen.net, config.model.weights, chosen.data))
    device = device_of(config.device)
    net = load_network(chosen.net, config.model, device)
    example = _example(config, net.model, device)
    outputs = [name.strip() for text in chosen.outputs for name in text.split(",")]
    how: dict[str, Any] = {name: getattr(chosen, name) for name in ("dynamic", "verify", "tolerance")}
    card = write(net, example, chosen.out, outputs=outputs, overwrite=overwrite, **how)
    screen.say(f"Wrote {printable(chosen.out)}, and its card {printable(chosen.out.name)}.json beside it.")
    return {"out": chosen.out, "card": card}


def _example(config: Config, model: nn.Module, device: Device) -> tuple[Any, ...]:
    """Return what the model takes, from data with targets or without."""
    from intervalnn.cli.inputs import inputs_in, is_arrays
    from intervalnn.cli.loaders import dtype_of, loader_of, tried
    from intervalnn.cli.references import is_reference
    from intervalnn.data.loading import arguments, split

    source = config.export.data
    assert source is not None
    if is_reference(source) or not is_arrays(Path(source)):
        data = loader_of(source, config.export.data_options, model, config, device)
        return arguments(split(next(iter(data)))[0], device)
    x, _ = inputs_in(Path(source), dtype_of(model), config.max_gib)[0].read(config.batch_size)
    if not len(x):
        raise ValueError(f"{source} holds no samples")
    example = arguments(x, device)
    tried(model, example, source)
    return example
