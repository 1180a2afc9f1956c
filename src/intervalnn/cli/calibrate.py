"""``inn calibrate``: bounds that hold on new data."""

from __future__ import annotations

from typing import Any

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.config import Config, settings
from intervalnn.cli.flags import model_flags
from intervalnn.cli.screen import Screen

__all__ = ["calibrate"]


@command(
    "model",
    "calibrate",
    "",
    example="inn calibrate --net net.safetensors \\\n"
    "    --model mymodels:unet --weights unet.safetensors \\\n"
    "    --data data/held-out --out calibrated.safetensors",
)
def calibrate(screen: Screen, config: Config, *, overwrite: bool) -> dict[str, Any]:
    """Make the bounds hold on new data, and say what is promised."""
    from intervalnn.calibration.calibration import calibrate as run
    from intervalnn.cli.loaders import loader_of
    from intervalnn.cli.models import device_of, holds_model, load_network

    chosen = config.calibrate
    assert chosen.net is not None and chosen.data is not None and chosen.out is not None
    out = refuse_existing(chosen.out, overwrite, ends=".safetensors", reads=(config.model.weights, chosen.data))
    device = device_of(config.device)
    net = load_network(chosen.net, config.model, device)
    data = loader_of(chosen.data, chosen.data_options, net.model, config, device)
    found = run(
        net,
        screen.track(data, "calibrating"),
        **settings(chosen, "coverage", "level", "delta", "groups"),
    )
    net.save(out, include_model=holds_model(chosen.net))
    factors = [float(factor) for factor in found.factors]
    kept = "of the images kept that" if found.level == "single image" else "of the components lay inside"
    before = ", ".join(f"{share:.3f}" for share in found.before)
    screen.say(f"The gaps are scaled by {', '.join(f'{factor:.4g}' for factor in factors)}; before, {before} {kept}.")
    screen.say(found.promise)
    screen.wrote(out)
    screen.hint("predict", "--net", out, *model_flags(config.model), "--input", "X", "--out", "PREDICTION")
    return {"out": out, "factors": factors, "promise": found.promise, **found.settings()}
