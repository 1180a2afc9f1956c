"""Saving: an interval network as one file, without pickle, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from intervalnn import __version__
from intervalnn.calibration.calibration import Calibration
from intervalnn.calibration.guarantee import Offsets
from intervalnn.files.container import read, write
from intervalnn.network.gaps import Kind
from intervalnn.network.network import IntervalNetwork
from intervalnn.network.scouts.scout import Widening
from intervalnn.network.scouts.scouted import scouts_of, take_scouts
from intervalnn.prediction import Prediction, stand_in
from intervalnn.saving.fingerprint import difference, fingerprint, named_tensors

__all__ = ["load", "save", "settings_of"]

MODEL = "model."  # before the names of the underlying model's tensors


def save(net: IntervalNetwork, path: str | Path, *, include_model: bool = False) -> None:
    """Write an interval network to a safetensors file, for :func:`load`.

    The file holds the gaps, which layers have them, offsets and calibration, how it was trained,
    and a fingerprint of the underlying model. It is written under another name first, so that a
    file already there is kept if anything fails; the same network gives the same bytes.

    Args:
        net: The network. Its layers must be known: one given a number of them must have been called.
        path: Where to; missing folders are made.
        include_model: Write parameters and buffers of the underlying model too.

    Example:
        >>> import tempfile
        >>> model = nn.Linear(2, 1).eval()
        >>> net = IntervalNetwork(model, layers="all")
        >>> net.set_gaps("bias", below=0.1, above=0.2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(net, f"{folder}/net.safetensors")
        ...     again = load(f"{folder}/net.safetensors", model)
        >>> again.predict(torch.ones(1, 2)).score
        tensor([[0.3000]])
    """
    net = stand_in(net)  # whose calibration stays as it is, whatever another thread does to that of the network
    settings = settings_of(net)
    tensors = dict(net.state_dict())
    if include_model:
        tensors |= {MODEL + name: _stored(tensor) for name, tensor in _own_tensors(net.model, settings["model"])}
    write(path, settings, tensors)


def settings_of(net: IntervalNetwork) -> dict[str, Any]:
    """Return all that :func:`save` writes beside the tensors, as plain values."""
    dtype = net.form.gap_dtype
    return {
        "versions": {"intervalnn": __version__, "torch": str(torch.__version__)},
        "names": list(net.names),
        "kind": net.kind,
        "cap": net.cap,
        "exact": net.form.exact,
        "gap_dtype": None if dtype is None else str(dtype).removeprefix("torch."),
        "scouts": {str(number): scout.settings() for number, scout in scouts_of(net).items()},
        "offsets": _offsets(net),
        "calibration": _calibration(net),
        "training": _training(net),
        "model": fingerprint(net.model),
    }


def load(
    path: str | Path,
    model: nn.Module,
    *,
    verify: bool = False,
    groups: Callable[[Prediction], Tensor] | None = None,
    body: nn.Module | None = None,
) -> IntervalNetwork:
    """Return the interval network that :func:`save` wrote to a file, around a model given anew.

    It predicts bit for bit what the saved one did. A model with other weights or another
    structure is refused, and the first difference is named; so is a file that is damaged, is
    not ours, or comes from a later version. No code is stored, so none in a file is ever run.

    Args:
        path: The file.
        model: The underlying model, built and loaded as before. If the file holds its weights,
            only built: they are copied into it.
        verify: Leave the model as it is, and refuse other weights even if the file holds them.
        groups: The function by which components were grouped in calibration, if it was one:
            a function cannot be saved.
        body: The module in the place of the scout's layers, if it was one of your own: it is copied, and its weights
            come from the file.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be the underlying model, a torch.nn.Module, got {type(model).__name__}")
    settings, tensors = read(path)
    try:
        calibration = _calibrated(path, settings["calibration"], groups, sum(map(Tensor.numel, tensors.values())))
        ours = {name: tensors.pop(MODEL + name) for name in settings["model"]["tensors"] if MODEL + name in tensors}
        _match(path, settings["model"], model, None if verify else ours, held=bool(ours))
        net = _network(path, settings, model, calibration, body)
        places = {name: tensor.device for name, tensor in net.state_dict().items()}
        net.load_state_dict({name: tensor.to(places[name]) for name, tensor in tensors.items()}, assign=True)
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError) as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        # whole, but not as save writes it
        raise ValueError(f"{path} does not hold what an interval network needs: {error!r}") from error
    return net


def _network(
    path: str | Path,
    settings: dict[str, Any],
    model: nn.Module,
    calibration: Calibration | None,
    body: nn.Module | None,
) -> IntervalNetwork:
    """Return the network whose tensors are still to be loaded."""
    dtype, kind = settings["gap_dtype"], settings["kind"]
    if kind not in get_args(Kind):
        raise ValueError(
            f"{path} has gaps of kind={kind!r}, and this intervalnn knows {', '.join(map(repr, get_args(Kind)))}; "
            "fit a network with one of these anew"
        )
    net = IntervalNetwork(
        model,
        settings["names"],
        kind=kind,
        cap=settings["cap"],
        exact=settings["exact"],
        gap_dtype=None if dtype is None else getattr(torch, dtype),
    )
    # Files from before there were scouts do not speak of them.
    scouts = settings.get("scouts", {}).items()
    if any(scout.get("body") for _, scout in scouts) != (body is not None):
        raise ValueError(
            f"{path} has a scout that was trained with a module of your own: give that as body"
            if body is None
            else f"{path} has no scout that was trained with a module of your own: leave out body"
        )
    take_scouts(net, {int(number): Widening.from_settings(scout, body) for number, scout in scouts})
    net.offsets = Offsets(**settings["offsets"]) if settings["offsets"] else None
    net.calibration = calibration
    net.training_settings = settings["training"]
    return net


# --- what is written of a network ---


def _offsets(net: IntervalNetwork) -> dict[str, float] | None:
    if net.offsets is None:
        return None
    if not isinstance(net.offsets, Offsets):
        raise TypeError(f"net.offsets must be Offsets or None to be saved, got {type(net.offsets).__name__}")
    return {"below": float(net.offsets.below), "above": float(net.offsets.above)}


def _calibration(net: IntervalNetwork) -> dict[str, Any] | None:
    if net.calibration is None:
        return None
    if not isinstance(net.calibration, Calibration):
        raise TypeError(f"net.calibration must be a Calibration or None to be saved, got {net.calibration!r}")
    return net.calibration.settings()


def _training(net: IntervalNetwork) -> Any:
    try:
        return json.loads(json.dumps(net.training_settings))
    except (TypeError, ValueError) as error:
        raise TypeError(f"net.training_settings must be plain values, as JSON can hold them: {error}") from error


def _own_tensors(model: nn.Module, about: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a model, each under its first name only."""
    return ((name, tensor) for name, _, tensor in named_tensors(model) if "same_as" not in about["tensors"][name])


def _stored(tensor: Tensor) -> Tensor:
    """Return a tensor as it is in the file, where there is no complex128."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


# --- what is made of it again ---


def _match(
    path: str | Path, want: dict[str, Any], model: nn.Module, values: dict[str, Tensor] | None, *, held: bool
) -> None:
    """Refuse a model that is not as it must be, once its values are filled in, if there are any."""
    got = fingerprint(model)
    found, hint = difference(want, got, values=False), "give the model that it was saved with"
    if found is None and values:
        _fill(model, values)
        got = fingerprint(model)
    if found is None:
        found, hint = difference(want, got), "leave out verify to take the file's" if held else hint
    if found is not None:
        raise ValueError(f"{path} belongs to another model: {found}; {hint}")


@torch.no_grad()
def _fill(model: nn.Module, values: dict[str, Tensor]) -> None:
    for name, _, tensor in named_tensors(model):
        if name in values:
            _stored(tensor.detach()).copy_(values[name])


def _calibrated(path: str | Path, settings: dict[str, Any] | None, groups: Any, stored: int) -> Calibration | None:
    """Return a calibration whose tensors are still to be loaded, of which there are ``stored`` numbers at most."""
    by_function = settings is not None and settings["groups"]["kind"] == "function"
    if by_function and groups is None:
        raise ValueError(f"{path} was calibrated in groups by a function, which is not saved; give it as groups")
    if groups is not None and not by_function:
        raise ValueError(f"{path} was not calibrated in groups by a function, so it takes no groups, got {groups!r}")
    if settings is None:
        return None
    if math.prod(settings["groups"]["shape"]) > stored or len(settings["images"]) > stored:
        raise ValueError(f"{path} promises more groups than it holds")
    return Calibration.from_settings(settings, groups=groups)
