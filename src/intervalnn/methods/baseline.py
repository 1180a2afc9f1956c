"""Baseline: what all baselines share, which is everything but how they find their bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.calibration.calibration import Calibration
from intervalnn.methods.copies import evaluating, in_eval_mode, output_of
from intervalnn.metrics.checks import share
from intervalnn.prediction import Prediction
from intervalnn.torch_private import pytree

__all__ = ["Baseline"]


class Baseline(nn.Module):
    """A method that reads trained models, never edits them, and predicts with bounds.

    The models are no submodules, so ``parameters()`` are what the method itself trains. All that it
    has learnt, its calibration too, is in ``state_dict()``; ``load_state_dict`` restores it.

    Args:
        models: The models that are read; the first one is the underlying model.
        coverage: Share of the targets that the bounds are to contain.
    """

    def __init__(self, *models: nn.Module, coverage: float) -> None:
        super().__init__()
        for model in models:
            if not isinstance(model, nn.Module):
                raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        self._read = models  # in a tuple, so that they are no submodules and their parameters are not ours
        self.coverage = share("coverage", coverage)
        self.calibration: Callable[[Prediction], Prediction] | None = None

    @property
    def model(self) -> nn.Module:
        """The underlying model."""
        return self._read[0]

    @property
    def device(self) -> torch.device:
        """Device of the underlying model."""
        modules = (self, *self._read)
        tensors = chain.from_iterable(chain(module.parameters(), module.buffers()) for module in modules)
        return next((tensor.device for tensor in tensors), torch.device("cpu"))

    @property
    def fitted(self) -> bool:
        """Whether it was trained, where it trains anything."""
        return True

    @torch.no_grad()
    def point(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return what the underlying model predicts, in eval mode whatever mode it is in."""
        return output_of(in_eval_mode(self.model), *args, **kwargs)

    @torch.no_grad()
    def predict(self, *args: Any, batch_size: int | None = None, **kwargs: Any) -> Prediction:
        """Return point, bounds, score and direction, without gradients.

        Args:
            args: What the model takes.
            batch_size: How many samples to take at a time, if not all at once; every tensor
                among the arguments is then cut along its first dimension.
            kwargs: What the model takes by name.
        """
        with evaluating(self):
            parts = [self._predict(*a, **k) for a, k in _batches(args, kwargs, batch_size)]
        prediction = parts[0] if len(parts) == 1 else Prediction.cat(parts)
        return prediction if self.calibration is None else self.calibration(prediction)

    def _predict(self, *args: Any, **kwargs: Any) -> Prediction:
        raise NotImplementedError

    def _start_anew(self, coverage: float | None) -> None:
        """Take the coverage that is asked for, if any, and drop a calibration, which was made for other bounds."""
        self.coverage = self.coverage if coverage is None else share("coverage", coverage)
        self.calibration = None

    # --- torch's own bookkeeping ---

    def get_extra_state(self) -> Tensor:
        """Return what ``state_dict`` holds beside tensors, as JSON in a tensor, since all may hold just those."""
        calibration = self.calibration.settings() if isinstance(self.calibration, Calibration) else None
        text = json.dumps({"coverage": self.coverage, "calibration": calibration})
        return torch.tensor(list(text.encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Take what :meth:`get_extra_state` returned; the factors of the calibration are loaded after it."""
        found = json.loads(bytes(state.tolist()))
        self.coverage, calibration = found["coverage"], found["calibration"]
        self.calibration = None if calibration is None else Calibration.from_settings(calibration)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Baseline:
        """Move the models along, as a module that holds others does; never convert them."""
        for dtype in {parameter.dtype for model in self._read for parameter in model.parameters()}:
            new = fn(torch.zeros(1, dtype=dtype)).dtype
            if new != dtype:
                raise TypeError(f"a baseline follows the dtype of its model; call model.to({new}) and wrap it anew")
        for model in self._read:
            model._apply(fn, recurse)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def extra_repr(self) -> str:
        """Return what stands between the brackets when it is printed."""
        return f"{type(self.model).__name__}, coverage={self.coverage:g}"

    def __repr__(self) -> str:
        calibrated = "" if self.calibration is None else ", calibrated"
        return f"{type(self).__name__}({self.extra_repr()}{calibrated})"


def _batches(
    args: tuple[Any, ...], kwargs: dict[str, Any], size: int | None
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the arguments, cut along the first dimension of the tensors among them."""
    if size is None:
        yield args, kwargs
        return
    if size < 1:
        raise ValueError(f"batch_size must be at least 1, got {size}")
    lengths = [len(leaf) for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    if len(set(lengths)) != 1:
        raise ValueError(f"with batch_size, all tensors must have one first dimension, got {lengths}")
    for start in range(0, lengths[0], size):
        cut = slice(start, start + size)
        yield pytree.tree_map(lambda leaf, cut=cut: leaf[cut] if isinstance(leaf, Tensor) else leaf, (args, kwargs))
