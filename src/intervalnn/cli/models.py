"""Models: the user's model, with its weights, and the networks that were fitted around it."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from intervalnn.cli import config
from intervalnn.cli.config.every_option import Model, Network
from intervalnn.cli.references import call, resolve
from intervalnn.cli.weights import fill, read_weights
from intervalnn.network.network import IntervalNetwork
from intervalnn.saving.saving import MODEL, load

__all__ = ["device_of", "holds_model", "load_network", "make_model", "new_network", "warn_if_random"]


def device_of(name: str) -> torch.device:
    """Return the device of a name, once it is known to be there; of several processes each gets its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"--device must be auto, cpu, cuda or the like, got {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"there is no GPU for --device {name}: inn doctor says what torch sees; leave --device out")
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:  # of whatever kind, for a device that torch knows and this machine has not
        raise ValueError(
            f"torch cannot compute on --device {name} here: inn doctor says what torch sees; leave --device out"
        ) from error
    return device


def make_model(model: Model, device: torch.device) -> nn.Module:
    """Return the user's model in eval mode, with its weights if they are given."""
    assert model.factory is not None
    made = resolve(model.factory)
    if isinstance(made, nn.Module):  # a model itself, rather than what makes one
        if model.options:
            raise ValueError(f"{model.factory} is a model already, and takes no options, got {model.options}")
    else:
        made = call(model.factory, made, options=model.options)
    if not isinstance(made, nn.Module):
        raise TypeError(f"{model.factory} must return a torch.nn.Module, got a {type(made).__name__}")
    if model.weights is not None:
        fill(made, read_weights(model.weights, model.weights_key), model.weights)
    elif model.weights_key is not None:
        raise ValueError("--weights-key says where in --weights to look, and there is none")
    return made.to(device).eval()


def warn_if_random(model: Model) -> None:
    """Warn where a factory makes other weights each time, and none were given: nothing was trained."""
    assert model.factory is not None
    made = resolve(model.factory)
    if model.weights is not None or isinstance(made, nn.Module):
        return
    first, second = (call(model.factory, made, options=model.options).state_dict() for _ in range(2))
    if any(not torch.equal(value, second[name]) for name, value in first.items()):
        warnings.warn(
            f"{model.factory} makes other weights at each call: this model is not trained; did you forget --weights?",
            stacklevel=2,
        )


def new_network(model: nn.Module, network: Network, *, paper: bool = False) -> IntervalNetwork:
    """Return an interval network around a model, all gaps closed; as published, where nobody said otherwise."""
    if paper and network.layers is None and network.scout is None:
        network = replace(network, layers="all")
    options = config.settings(network, "kind", "cap", "exact", "scout")
    dtype: torch.dtype | None = getattr(torch, network.gap_dtype) if network.gap_dtype else None
    return IntervalNetwork(model, _layers(network.layers), gap_dtype=dtype, **options)


def _layers(layers: int | str | tuple[str, ...] | None) -> Any:
    if not isinstance(layers, str) or layers == "all":
        return layers
    return int(layers) if layers.isdecimal() else [name.strip() for name in layers.split(",")]


def load_network(path: Path, model: Model, device: torch.device) -> IntervalNetwork:
    """Return a network from its file, around the user's model."""
    refuse_missing(path)
    built = make_model(model, device)
    held = holds_model(path)
    try:
        return load(path, built, verify=model.weights is not None)
    except ValueError as error:
        if model.weights is None and not held and "another model" in str(error):
            raise ValueError(f"{error}; it was fitted to weights that are not in it: give them as --weights") from error
        raise


def refuse_missing(path: Path) -> None:
    """Refuse a network that is not there."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; inn fit makes one")


def holds_model(path: Path) -> bool:
    """Say whether a file of a network holds the weights of its model too; False where it cannot be read."""
    try:
        with safe_open(path, framework="pt") as file:
            return any(name.startswith(MODEL) for name in file.keys())  # noqa: SIM118 (it is no mapping)
    except Exception:  # the one who reads it next says what is wrong
        return False
