"""Weights: a state dict from a file, of which nothing is ever run."""

from __future__ import annotations

import pickle
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.cli.config import did_you_mean
from intervalnn.files.container import read_tensors, verify_archive
from intervalnn.files.limits import check_file

__all__ = ["fill", "read_weights"]

State = dict[str, Tensor]


def read_weights(path: Path, key: str | None = None) -> State:
    """Return the state dict in a file: safetensors, or what torch reads with ``weights_only=True``.

    Args:
        path: The file.
        key: Where in the file the state dict is, with dots between; a file that holds just one needs none.
    """
    check_file(path)
    content: Any = read_tensors(path)[0] if path.suffix == ".safetensors" else _torch(path)
    for part in key.split(".") if key else ():
        if not isinstance(content, Mapping) or part not in content:
            known = map(str, content) if isinstance(content, Mapping) else ()
            raise ValueError(f"{path} has no key {part!r}{did_you_mean(part, known)}")
        content = content[part]
    return _state(path, content, key)


def _torch(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # on formats that are refused anyway
            if zipfile.is_zipfile(path):  # else it is of a kind that torch wrote before, or none of torch's
                verify_archive(path)
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL ([\w.]+)", str(error))
        needs = f"{found[1]} would have to be run to read it" if found else "it is damaged, or not torch's"
        raise ValueError(
            f"{path} is refused, since {needs}: a file may hold tensors and plain values, never code. "
            "Save the state dict alone: torch.save(model.state_dict(), path)"
        ) from error
    except Exception as error:  # whatever a damaged file does to a library
        first = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"{path} is neither a safetensors nor a torch file of weights ({first})") from error


def _state(path: Path, content: Any, key: str | None) -> State:
    if _is_state(content):
        return dict(content)
    inside = [name for name, value in content.items() if _is_state(value)] if isinstance(content, Mapping) else []
    if len(inside) == 1:
        return dict(content[inside[0]])
    where = f"{path} under {key!r}" if key else str(path)
    if inside:
        raise ValueError(f"{where} holds several state dicts: say which with --weights-key, {' or '.join(inside)}")
    raise ValueError(f"{where} holds no state dict, which has a tensor for each name, but a {type(content).__name__}")


def _is_state(content: Any) -> bool:
    return isinstance(content, Mapping) and bool(content) and all(isinstance(v, Tensor) for v in content.values())


def fill(model: nn.Module, state: State, path: Path) -> None:
    """Load a state dict into a model, or say what does not fit.

    What wrappers put before all names alike, such as ``module.``, is taken off.
    """
    wanted = model.state_dict()
    state = _unwrapped(state, wanted.keys())
    problems = [f"lacks '{name}'" for name in wanted if name not in state]
    problems += [f"has '{name}', which the model has not" for name in state if name not in wanted]
    problems += [
        f"has '{name}' of shape {tuple(state[name].shape)}, and the model {tuple(value.shape)}"
        for name, value in wanted.items()
        if name in state and isinstance(value, Tensor) and state[name].shape != value.shape
    ]
    if problems:
        more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise ValueError(f"{path} does not fit the model: it {', '.join(problems[:3])}{more}")
    model.load_state_dict(state)


def _unwrapped(state: State, wanted: Any) -> State:
    first = next(iter(state)).partition(".")[0] + "."
    if not all(name.startswith(first) for name in state):
        return state
    short = {name.removeprefix(first): value for name, value in state.items()}
    return short if short.keys() == wanted else state
