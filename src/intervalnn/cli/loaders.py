"""Loaders: batches from a folder or from the user's own code, once they are known to fit the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from intervalnn.cli.config import Config
from intervalnn.cli.references import call, is_reference, resolve
from intervalnn.cli.samples import samples_in
from intervalnn.data.loading import arguments, split
from intervalnn.torch_private import pytree

__all__ = ["dtype_of", "loader_of", "tried"]


def dtype_of(model: nn.Module) -> torch.dtype:
    """Return the dtype that a model computes in."""
    dtypes = (parameter.dtype for parameter in model.parameters())
    return next((dtype for dtype in dtypes if dtype.is_floating_point), torch.float32)


def loader_of(
    source: str,
    options: Mapping[str, Any],
    model: nn.Module,
    config: Config,
    device: torch.device,
    *,
    shuffle: bool = False,
) -> Iterable[Any]:
    """Return batches ``(x, y)``, of which the first is known to fit the model.

    Args:
        source: A folder or a file (see :mod:`intervalnn.cli.samples`); or ``package.module:loader``, which is called
            with the options and returns a loader, a data set, or batches; a generator is started anew for each epoch.
        options: Keyword arguments of the latter.
        model: What they are for.
        config: Says how large batches are of what has none yet, and how much a file of arrays may unpack to.
        device: Where the model is.
        shuffle: Whether to shuffle what has no batches yet.
    """
    if config.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {config.batch_size}")
    coded, dtype = is_reference(source), dtype_of(model)
    found = _from_code(source, options) if coded else samples_in(Path(source), dtype, config.max_gib)
    if isinstance(found, Dataset) and not isinstance(found, IterableDataset):
        found = DataLoader(found, batch_size=config.batch_size, shuffle=shuffle)
    _check(source, found, model, device)
    return found


def _from_code(source: str, options: Mapping[str, Any]) -> Any:
    made = resolve(source)
    if not callable(made):
        if options:
            raise ValueError(f"{source} is there already and takes no options, got {dict(options)}")
        found = made
    else:
        found = call(source, made, options=options)
        if isinstance(found, Iterator):
            found = _Anew(lambda: call(source, made, options=options))
    if not isinstance(found, Iterable | Dataset):
        raise TypeError(
            f"{source} must give a DataLoader or an iterable of batches (x, y), got a {type(found).__name__}"
        )
    return found


class _Anew:
    """What a generator yields, from the start each time."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return self.make()


def _check(source: str, loader: Iterable[Any], model: nn.Module, device: torch.device) -> None:
    """Try the first batch, so that what does not fit is said before anything else is done."""
    batch = next(iter(loader), None)
    if batch is None:
        raise ValueError(f"{source} is empty: it must yield at least one batch")
    x, y = split(batch)
    args = arguments(x, device)
    output = tried(model, args, source)
    if isinstance(output, Tensor) and output.shape != y.shape:
        raise ValueError(
            f"y from {source} must have the shape {tuple(output.shape)} of what the model makes of x {_shapes(args)}, "
            f"got {tuple(y.shape)}"
        )


@torch.no_grad()
def tried(model: nn.Module, args: tuple[Any, ...], source: str) -> Any:
    """Return what a model makes of a batch, or say that it cannot take it."""
    own = pytree.tree_map(lambda part: part.clone() if isinstance(part, Tensor) else part, args)
    try:
        return model(*own)
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise ValueError(
            f"the model cannot take a batch of shape {_shapes(args)} from {source}: {type(error).__name__}: {first}; "
            "the first axis counts samples, and what follows must be as the model wants it"
        ) from error


def _shapes(args: tuple[Any, ...]) -> str:
    return " and ".join(str(tuple(leaf.shape)) for leaf in pytree.tree_leaves(args) if isinstance(leaf, Tensor))
