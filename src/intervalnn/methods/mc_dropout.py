"""MCDropout: the spread of a model whose dropout stays on (Gal and Ghahramani 2016)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from intervalnn.methods.baseline import Baseline
from intervalnn.methods.copies import output_of, seeded, sharing_copy
from intervalnn.prediction import Prediction
from intervalnn.torch_private import Dropout, pytree

__all__ = ["MCDropout"]

AT_ONCE = 2**22  # numbers in the inputs of one pass, by default: 16 images of 512 x 512


class MCDropout(Baseline):
    """The spread of several passes with dropout, around the model's own prediction.

    Dropout alone is on: batch norm and all else stays in eval mode. Dropout that the model's code
    calls as a function is on too, and that of attention and of recurrent layers. Nothing is trained,
    and what is switched on is a copy that shares the model's tensors.

    Args:
        model: Any trained module with dropout.
        samples: How many passes; at least two.
        coverage: Share of the targets that the bounds are to contain, were the errors normal with
            the deviation of the passes. They rarely are: calibrate.
        point: ``"model"`` predicts as the model does, without dropout; ``"mean"`` takes the mean of the passes.
        batched: Do several passes at once, by repeating the batch along its first dimension. Switch
            it off for a model that mixes the samples of a batch, or takes tensors without a batch dimension.
        chunk: How many samples the model may see at once, repeated ones included; by default so
            many that the inputs hold about four million numbers.
        seed: Seed of the masks. With other batches or chunks, other masks are drawn.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(), nn.Linear(8, 1)).eval()
        >>> method = MCDropout(model, samples=10)
        >>> method
        MCDropout(Sequential, coverage=0.9, samples=10)
        >>> p = method.predict(torch.ones(3, 2))
        >>> torch.equal(p.point, model(torch.ones(3, 2))), bool((p.deviation > 0).all())
        (True, True)
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        samples: int = 64,
        coverage: float = 0.9,
        point: Literal["model", "mean"] = "model",
        batched: bool = True,
        chunk: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(model, coverage=coverage)
        if samples < 2:
            raise ValueError(f"samples must be at least 2, for fewer passes have no deviation, got {samples}")
        if point not in ("model", "mean"):
            raise ValueError(f"point must be 'model' or 'mean', got {point!r}")
        if chunk is not None and chunk < 1:
            raise ValueError(f"chunk must be at least 1, got {chunk}")
        self.samples, self.batched, self.chunk, self.seed = samples, batched, chunk, seed
        self._point = point

    def predict(self, *args: Any, batch_size: int | None = None, **kwargs: Any) -> Prediction:
        """Return point, bounds, score and direction; the same each time, as the seed is the same."""
        with seeded(self.device, self.seed):
            return super().predict(*args, batch_size=batch_size, **kwargs)

    def _predict(self, *args: Any, **kwargs: Any) -> Prediction:
        moments = _Moments()
        for outputs in self._passes(args, kwargs):
            moments.add(outputs)
        mean = self._point == "mean"
        point = moments.mean.to(outputs.dtype) if mean else self.point(*args, **kwargs)
        return Prediction.symmetric(point, moments.deviation, coverage=self.coverage)

    def _passes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Tensor]:
        """Yield the outputs of some passes at a time, ``(passes, batch, *signal)``."""
        noisy = sharing_copy(self.model)
        layers = [module for module in noisy.modules() if _drops(module)]
        for layer in layers:
            layer.train()
        done = 0
        while done < self.samples:
            count = min(self._at_once(args, kwargs), self.samples - done)
            repeated_args, repeated_kwargs = _repeated(args, kwargs, count)
            with _ActiveFunctions() as functions:
                output = output_of(noisy, *repeated_args, **repeated_kwargs)
            if not layers and not functions.found:
                raise ValueError(
                    f"{type(self.model).__name__} has no dropout that could be on: no layer such as nn.Dropout with "
                    "p > 0, and no call of F.dropout; take another method, or train a model with dropout"
                )
            yield output.unflatten(0, (count, len(output) // count)) if self.batched else output[None]
            done += count

    def _at_once(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Return how many passes to do at once."""
        if not self.batched:
            return 1
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        lengths = [len(tensor) if tensor.dim() else 0 for tensor in tensors]
        if len(set(lengths)) != 1 or not lengths[0]:
            raise ValueError(
                f"to be repeated, all tensors must have one first dimension, got {lengths}; "
                "MCDropout(model, batched=False) does one pass after the other"
            )
        most = AT_ONCE // max(sum(map(Tensor.numel, tensors)), 1) if self.chunk is None else self.chunk // lengths[0]
        return max(most, 1)

    def extra_repr(self) -> str:
        """Return what stands between the brackets when it is printed."""
        return f"{super().extra_repr()}, samples={self.samples}"


def _drops(module: nn.Module) -> bool:
    """Say whether a module is dropout, or does nothing else in training mode than to drop."""
    if isinstance(module, Dropout):
        return module.p > 0
    return isinstance(module, nn.RNNBase) and module.dropout > 0


class _ActiveFunctions(TorchFunctionMode):
    """Have dropout on wherever it is called as a function, whatever the flag of the module that calls it."""

    dropouts = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout)

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self.dropouts:
            kwargs["training"] = True
            self.found |= kwargs["p"] > 0
        elif func is F.multi_head_attention_forward:
            kwargs["training"] = True  # which is for its dropout alone, the eleventh argument
            self.found |= args[10] > 0
        return func(*args, **kwargs)


def _repeated(args: tuple[Any, ...], kwargs: dict[str, Any], count: int) -> Any:
    """Return the arguments with each tensor so many times in a row."""
    if count == 1:
        return args, kwargs
    return pytree.tree_map(
        lambda leaf: leaf.repeat(count, *(1,) * (leaf.dim() - 1)) if isinstance(leaf, Tensor) else leaf, (args, kwargs)
    )


class _Moments:
    """Running mean and deviation, so that memory does not grow with the number of passes (Chan et al. 1979)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.squares = torch.zeros(())

    def add(self, values: Tensor) -> None:
        """Take in some passes, along the first dimension."""
        values = values.to(torch.promote_types(values.dtype, torch.float32))
        count, mean = len(values), values.mean(0)
        total = self.count + count
        apart = mean - self.mean.to(mean)
        self.squares = self.squares.to(mean) + (values - mean).square().sum(0)
        self.squares = self.squares + apart.square() * (self.count * count / total)
        self.mean = self.mean.to(mean) + apart * (count / total)
        self.count = total

    @property
    def deviation(self) -> Tensor:
        """The sample standard deviation."""
        return (self.squares / (self.count - 1)).sqrt()
