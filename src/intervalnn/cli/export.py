"""``inn export``: an interval network for another runtime."""

from __future__ import annotations

from typing import Any

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.screen import Screen
from intervalnn.config import Config

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
    """Write a network for ONNX Runtime or torch, compiled or not, and a card."""
    from intervalnn.cli.loaders import loader_of
    from intervalnn.cli.models import device_of, load_network
    from intervalnn.exporting import export as write
    from intervalnn.pairs import arguments, split

    chosen = config.export
    assert chosen.net is not None and chosen.data is not None and chosen.out is not None
    refuse_existing(chosen.out, overwrite, reads=(chosen.net, config.model.weights, chosen.data))
    device = device_of(config.device)
    net = load_network(chosen.net, config.model, device)
    data = loader_of(chosen.data, chosen.data_options, net.model, batch_size=config.batch_size, device=device)
    x, _ = split(next(iter(data)))
    card = write(
        net, arguments(x, device), chosen.out, dynamic=chosen.dynamic, verify=chosen.verify, overwrite=overwrite
    )
    screen.say(f"Wrote {chosen.out}, and its card {chosen.out.name}.json beside it.")
    return {"out": chosen.out, "card": card}
