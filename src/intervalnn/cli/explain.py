"""``inn explain``: which layers open the bounds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.config import Config
from intervalnn.cli.extras import require
from intervalnn.cli.screen import Screen

__all__ = ["explain"]


@command(
    "model",
    "explain",
    "",
    example="inn explain --net net.safetensors \\\n"
    "    --model mymodels:unet --weights unet.safetensors \\\n"
    "    --data data/test --plot layers.png",
)
def explain(screen: Screen, config: Config, *, overwrite: bool) -> dict[str, Any]:
    """Show which layers open the bounds, and how far."""
    from intervalnn.cli.loaders import loader_of
    from intervalnn.cli.models import device_of, load_network
    from intervalnn.data.loading import arguments, split

    chosen = config.explain
    assert chosen.net is not None and chosen.data is not None
    if chosen.plot is not None:
        require("--plot", "report", "matplotlib")
        refuse_existing(chosen.plot, overwrite, reads=(chosen.net, config.model.weights, chosen.data))
    device = device_of(config.device)
    net = load_network(chosen.net, config.model, device)
    data = loader_of(chosen.data, chosen.data_options, net.model, config, device)
    x, _ = split(next(iter(data)))
    found = net.explain(*arguments(x, device))
    screen.say(found.table())
    screen.say("Width: what the gaps of a parameter would open alone, mean over one batch; share: its part in the sum.")
    if chosen.plot is not None:
        found.plot(chosen.plot)
        screen.wrote(chosen.plot)
    return {"plot": chosen.plot, "parameters": [asdict(row) for row in found.rows]}
