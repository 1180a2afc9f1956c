"""Groups: which components are calibrated together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from intervalnn.calibration.processes import count, summed
from intervalnn.prediction import Prediction

__all__ = ["Groups"]

Kind = Literal["one", "width", "regions", "function"]

_QUANTILES = (0.25, 0.5, 0.75)  # of the widths, where the groups are made by width


class Groups(nn.Module):
    """Which group each component of a prediction belongs to.

    Args:
        kind: All in ``"one"``; by ``"width"`` of the bounds; by ``"regions"`` of the image;
            or by a ``"function"`` of the prediction.
        values: The widths at which a new group begins; or the group of each component of an image.
        function: Called with the prediction, returns the group of each component.
    """

    values: Tensor

    def __init__(
        self, kind: Kind, values: Tensor | None = None, function: Callable[[Prediction], Tensor] | None = None
    ) -> None:
        super().__init__()
        self.kind = kind
        self.function = function
        self.register_buffer("values", torch.empty(0) if values is None else values)

    @staticmethod
    def of(groups: str | Tensor | Callable[[Prediction], Tensor] | None, first: Prediction | None = None) -> Groups:
        """Return the groups that the argument ``groups`` of :func:`intervalnn.calibrate` stands for.

        Args:
            groups: What to group by.
            first: A prediction, whose widths say where the groups by width begin.
        """
        if groups is None:
            return Groups("one")
        if isinstance(groups, Tensor):
            return Groups("regions", _integers(groups, "the map of regions"))
        if callable(groups):
            return Groups("function", function=groups)
        if groups != "width":
            raise ValueError(f"groups must be None, 'width', a tensor of integers or a function, got {groups!r}")
        assert first is not None
        return Groups("width", _quantiles(_width(first)))

    def forward(self, prediction: Prediction) -> Tensor:
        """Return the group of each component, as integers from 0."""
        shape = prediction.point.shape
        if self.kind == "width":
            return torch.bucketize(_width(prediction), self.values.to(prediction.point.device))
        if self.kind == "regions":
            if self.values.ndim >= len(shape) or shape[-self.values.ndim :] != self.values.shape:
                raise ValueError(
                    f"the map of regions has shape {tuple(self.values.shape)}, "
                    f"which does not fit predictions of shape {tuple(shape)}; it must be that of one image"
                )
            return self.values.to(prediction.point.device).expand(shape)
        if self.kind == "function":
            if self.function is None:
                raise ValueError("these groups came from a function, which is not saved; give it to from_settings")
            ids = _integers(self.function(prediction), "the groups")
            if ids.shape != shape:
                raise ValueError(f"the groups must have shape {tuple(shape)}, like the point, got {tuple(ids.shape)}")
            return ids
        return torch.zeros(shape, dtype=torch.long, device=prediction.point.device)

    @property
    def count(self) -> int:
        """How many groups there are at least; a function may name more."""
        if self.kind == "regions":
            return int(self.values.max()) + 1
        return len(self.values) + 1 if self.kind == "width" else 1

    def name(self, group: int) -> str:
        """Return how an error names a group, after what it has found there."""
        if self.kind == "one":
            return ""
        ends = [0.0, *self.values.tolist(), float("inf")] if self.kind == "width" else []
        return f" in group {group}" + (f" (widths from {ends[group]:.3g} to {ends[group + 1]:.3g})" if ends else "")

    def settings(self) -> dict[str, Any]:
        """Return what :meth:`from_settings` needs, beside the buffers."""
        return {"kind": self.kind, "shape": list(self.values.shape)}

    @staticmethod
    def from_settings(settings: dict[str, Any], function: Callable[[Prediction], Tensor] | None = None) -> Groups:
        """Return groups whose buffers are still to be loaded."""
        dtype = torch.long if settings["kind"] == "regions" else torch.float32
        return Groups(settings["kind"], torch.zeros(settings["shape"], dtype=dtype), function)


def _width(prediction: Prediction) -> Tensor:
    return prediction.bounds.width.to(torch.float32)


def _quantiles(widths: Tensor) -> Tensor:
    """Return where the groups by width begin; the mean over the processes, where there are several."""
    ordered = widths.flatten().sort().values
    at = [round(q * (len(ordered) - 1)) for q in _QUANTILES]
    edges: Tensor = (summed(ordered[at]) / count()).unique()
    return edges


def _integers(ids: Tensor, what: str) -> Tensor:
    if ids.is_floating_point() or ids.is_complex() or (ids.numel() and int(ids.min()) < 0):
        raise ValueError(f"{what} must be integers from 0, got {ids.dtype} with entries that are not")
    return ids.long()
