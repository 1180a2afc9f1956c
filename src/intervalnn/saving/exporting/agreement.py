"""Agreement: whether a file computes what the network does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from intervalnn.calibration.calibration import Calibration
from intervalnn.network.network import IntervalNetwork
from intervalnn.prediction import Prediction, without
from intervalnn.saving.exporting.example import Example
from intervalnn.saving.exporting.names import named_leaves
from intervalnn.saving.exporting.runtime import Run

__all__ = ["Allowed", "SizeError", "agreement", "deviations"]

_ROUNDING = 1e-5  # of the largest entry, in float32: runtimes add up in another order
_EPSILONS = 4  # by which runtimes may differ that add up in another order, or round less often


class SizeError(RuntimeError):
    """A file does not run for inputs of some size, or returns another size than the network."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """How far a file and a network may differ.

    Attributes:
        of_width: As a share of the width, of bounds.
        of_largest_entry: Beside that, as a share of the largest entry of the prediction.
    """

    of_width: float
    of_largest_entry: float = _ROUNDING

    @staticmethod
    def for_dtypes(tolerance: float, point: torch.dtype, gap: torch.dtype) -> Allowed:
        """Return what a user allows, or a few roundings of these data types where that is more."""
        of_gap, of_point = (_EPSILONS * torch.finfo(dtype).eps for dtype in (gap, point))
        return Allowed(max(tolerance, of_gap), max(_ROUNDING, of_point))

    def of(self, want: Prediction) -> Tensor:
        """Return by how much each component may differ."""
        point, width = (torch.where(part.isfinite(), part, 0.0) for part in (want.point, want.width))
        return self.of_width * width + self.of_largest_entry * _most(point.abs())


def agreement(
    run: Run, net: IntervalNetwork, example: Example, outputs: Sequence[str], allowed: Allowed
) -> dict[str, Any]:
    """Compare a file with the network on one call, and return how far they differ.

    Args:
        run: Runs the file.
        net: The network.
        example: The call.
        outputs: What the file returns of each prediction.
        allowed: How far they may differ.

    Raises:
        SizeError: If the file does not take the call, or returns other shapes.
        RuntimeError: If they differ by more than that, or if the file returns bounds that do not
            contain its own prediction.
    """
    args, kwargs = example.arguments
    shapes = {name: list(shape) for name, shape in zip(example.names, example.shapes, strict=True)}
    try:
        found = {name: tensor.cpu() for name, tensor in run(example.tensors).items()}
    except Exception as error:
        raise SizeError(f"what was written does not run for inputs {shapes}: {error}") from error
    undecided = _undecided(net, example, allowed)
    largest: dict[str, float] = {}
    used = 0.0
    for place, want in named_leaves(net.predict(*args, **kwargs)).items():
        if isinstance(want, Prediction):
            got = {key: found[f"{place}{key}"] for key in outputs}
            _check_order(got, shapes)
            for key, deviation, share in deviations(got, want.cpu(), allowed, undecided.get(place)):
                largest[f"{place}{key}"], used = _rounded(deviation), max(used, share)
        elif not torch.equal(found[f"{place}value"], want.cpu()):
            raise RuntimeError(f"what was written returns other integers than the network, for inputs {shapes}")
    if used > 1:
        raise RuntimeError(
            f"what was written differs from the network by {used:.3g} times what may be ({allowed.of_width:g} of the "
            f"width and {allowed.of_largest_entry:g} of the largest entry), for inputs {shapes}; largest deviations: "
            f"{largest}. Norms and softmax may amplify rounding that far: if it is small enough for you, set a larger "
            "tolerance"
        )
    return {"inputs": shapes, "largest_deviation": largest, "share_of_tolerance": _rounded(used)}


def deviations(
    got: Mapping[str, Tensor], want: Prediction, allowed: Allowed, undecided: Tensor | None = None
) -> Iterator[tuple[str, float, float]]:
    """Yield for each output its name, the largest deviation, and the largest as a share of what is allowed.

    Args:
        got: What the file returned.
        want: What the network predicts.
        allowed: How far they may differ.
        undecided: Components that are not compared.
    """
    most = allowed.of(want)
    for key, value in got.items():
        expected = want[key]
        if value.shape != expected.shape:
            shapes = f"{tuple(value.shape)}, not {tuple(expected.shape)}"
            raise SizeError(f"what was written returns {key} of shape {shapes}")
        same = (value == expected) | (value.isnan() & expected.isnan())
        if key == "direction":  # the sign of a difference that may be all rounding
            same |= (want.above - want.below).abs() <= 2 * most
        if undecided is not None:
            same |= undecided
        deviation = torch.where(same, 0.0, (value - expected).abs())
        yield key, _most(deviation), _most(torch.where(same, 0.0, deviation / most))


def _undecided(net: IntervalNetwork, example: Example, allowed: Allowed) -> dict[str, Tensor]:
    """Return where rounding may decide by which group of widths a component was calibrated."""
    if not isinstance(net.calibration, Calibration) or net.calibration.groups.kind != "width":
        return {}
    edges = net.calibration.groups.values.tolist()
    args, kwargs = example.arguments
    leaves = named_leaves(without(net, "calibration").predict(*args, **kwargs))
    plain = {place: leaf.cpu() for place, leaf in leaves.items() if isinstance(leaf, Prediction)}
    return {
        place: torch.stack([(p.width - edge).abs() <= allowed.of(p) for edge in edges]).any(0)
        for place, p in plain.items()
    }


def _check_order(got: Mapping[str, Tensor], shapes: Mapping[str, list[int]]) -> None:
    ordered = [got[key] for key in ("lower", "point", "upper") if key in got]
    for below, above in pairwise(ordered):
        wrong = int((below > above).sum())
        if wrong:
            raise RuntimeError(f"what was written returns {wrong} entries outside their bounds, for inputs {shapes}")


def _most(values: Tensor) -> float:
    return float(torch.where(values.isnan(), torch.inf, values).max()) if values.numel() else 0.0


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
