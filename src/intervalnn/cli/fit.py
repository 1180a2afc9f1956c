"""``inn fit``: a trained model gets bounds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.config import Config, settings
from intervalnn.cli.flags import model_flags
from intervalnn.cli.screen import Screen, Stopped
from intervalnn.files.printable import printable

if TYPE_CHECKING:
    from torch import device as Device
    from torch import nn

    from intervalnn.network.network import IntervalNetwork
    from intervalnn.training.history import History

__all__ = ["fit"]


@command(
    "model",
    "network",
    "fit",
    "",
    example="inn fit --model mymodels:unet --weights unet.safetensors --layers 4 \\\n"
    "    --data data/train --out net.safetensors",
)
def fit(screen: Screen, config: Config, *, overwrite: bool) -> dict[str, Any]:
    """Give a trained model bounds, fitted to data.

    The gaps around its weights are trained; the model itself stays as it is. Stopped by Ctrl-C, the same command
    goes on where it was.

    DATA is a folder with x.npy and y.npy, samples along the first axis, where y is what the model is to make of x; or
    with npz files that have x and y; or with folders x and y of npy files, one sample in each. Or it is a function,
    package.module:loader, that returns a DataLoader or yields batches (x, y).
    """
    import torch.distributed as dist

    from intervalnn.cli.models import device_of, make_model, new_network, warn_if_random

    out, checkpoint = _places(config, overwrite)
    if config.fit.compile and config.fit.recompute:
        raise click.UsageError("--compile chooses itself what to compute again: leave out --recompute or --compile.")
    device = device_of(config.device)
    model = make_model(config.model, device)
    warn_if_random(config.model)
    net = new_network(model, config.network, paper=config.fit.recipe == "paper")
    if config.fit.compile:
        net.compile()
    train, val = _data(config, model, device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    screen.say(f"{config.model.factory}: {_counted(parameters, 'parameter')}, on {device}")
    start = time.perf_counter()
    history = _fitted(screen, net, train, val, config, checkpoint)
    net.training_settings = history.settings
    if screen.leads:
        net.save(out, include_model=config.fit.include_model)
        checkpoint.unlink(missing_ok=True)
    if dist.is_initialized():
        dist.destroy_process_group()
    found = _summary(net, history)
    screen.say(
        f"Fitted the gaps of {_counted(len(net.names), 'parameter')} in {_counted(found['epochs'], 'epoch')}, "
        f"{time.perf_counter() - start:.0f} s: coverage {found['coverage']:.3f}, mean width {found['width']:.3g} "
        f"on the data that it was fitted to, as a mean over the last epoch."
    )
    screen.wrote(out)
    screen.hint("calibrate", "--net", out, *model_flags(config.model), "--data", "HELD_OUT", "--out", "CALIBRATED")
    return {"out": out, **found}


def _places(config: Config, overwrite: bool) -> tuple[Path, Path]:
    """Return where the network and the checkpoint go, once it is known that both can be written."""
    chosen = config.fit
    assert chosen.out is not None
    reads = (config.model.weights, chosen.data, chosen.val)
    out = refuse_existing(chosen.out, overwrite, ends=".safetensors", reads=reads)
    checkpoint = chosen.checkpoint or out.with_name(f"{out.name}.checkpoint")
    if os.path.realpath(checkpoint) == os.path.realpath(out):
        raise click.UsageError(f"--checkpoint and --out are both {out}, and the checkpoint goes when all is done.")
    return out, refuse_existing(checkpoint, overwrite=True, reads=reads)


def _data(config: Config, model: nn.Module, device: Device) -> tuple[Iterable[Any], Iterable[Any] | None]:
    """Return what to fit to, and what to choose the epoch by, if there is that."""
    from intervalnn.cli.loaders import loader_of

    chosen = config.fit
    assert chosen.data is not None
    train = loader_of(chosen.data, chosen.data_options, model, config, device, shuffle=True)
    if chosen.val is None:
        return train, None
    return train, loader_of(chosen.val, chosen.val_options, model, config, device)


def _counted(number: int, what: str) -> str:
    """Return so many of something in words.

    Example:
        >>> _counted(1, "epoch"), _counted(2000, "epoch")
        ('1 epoch', '2,000 epochs')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _summary(net: IntervalNetwork, history: History) -> dict[str, Any]:
    best = history.epochs[history.best]
    return {
        "parameters": net.names,
        "settings": history.settings,
        "epochs": len(history.epochs),
        "best": history.best + 1,
        "loss": best.loss,
        "coverage": best.coverage,
        "width": best.width,
        "validation": best.validation,
    }


def _fitted(screen: Screen, net: IntervalNetwork, train: Any, val: Any, config: Config, checkpoint: Path) -> History:
    """Fit, or go on with it; say how to go on where it ends too early."""
    from intervalnn.training.loop import fit as run

    chosen = config.fit
    if checkpoint.exists():
        screen.say(f"Going on from {printable(checkpoint)}")
    options = settings(chosen, "coverage", "beta", "recipe", "epochs", "lr", "balance", "patience", "recompute", "seed")
    try:
        return run(net, train, validation=val, checkpoint=checkpoint, progress=screen.progress, **options)
    except KeyboardInterrupt:
        if checkpoint.exists():
            raise Stopped(f"{checkpoint} holds all epochs so far: the same command goes on from there") from None
        raise Stopped("before the end of the first epoch: the same command starts anew") from None
