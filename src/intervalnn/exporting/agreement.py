"""Agreement: whether a file computes what the network does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from intervalnn.calibration import Calibration
from intervalnn.exporting.example import Example
from intervalnn.exporting.names import named_leaves
from intervalnn.exporting.runtime import Run
from intervalnn.network import IntervalNetwork
from intervalnn.pairs import without
from intervalnn.prediction import Prediction

__all__ = ["ROUNDING", "agreement", "deviations"]

ROUNDING = 1e-5  # of the largest entry of the prediction: runtimes add up in another order


def agreement(
    run: Run, net: IntervalNetwork, example: Example, outputs: Sequence[str], tolerance: float
) -> dict[str, Any]:
    """Compare a file with the network on one call, and return how far they differ.

    Args:
        run: Runs the file.
        net: The network.
        example: The call.
        outputs: What the file returns of each prediction.
        tolerance: How far bounds may differ, as a share of their width, beside :data:`ROUNDING`.

    Raises:
        RuntimeError: If they differ by more than that, or if the file returns bounds that do not
            contain its own prediction.
    """
    args, kwargs = example.arguments
    shapes = {name: list(shape) for name, shape in zip(example.names, example.shapes, strict=True)}
    try:
        found = {name: tensor.cpu() for name, tensor in run(example.tensors).items()}
    except Exception as error:
        raise RuntimeError(f"what was written does not run for inputs {shapes}: {error}") from error
    undecided = _undecided(net, example, tolerance)
    largest: dict[str, float] = {}
    used = 0.0
    for place, want in named_leaves(net.predict(*args, **kwargs)).items():
        if isinstance(want, Prediction):
            got = {key: found[f"{place}{key}"] for key in outputs}
            _check_order(got, shapes)
            for key, deviation, share in deviations(got, want.cpu(), tolerance, undecided.get(place)):
                largest[f"{place}{key}"], used = _rounded(deviation), max(used, share)
        elif not torch.equal(found[f"{place}value"], want.cpu()):
            raise RuntimeError(f"what was written returns other integers than the network, for inputs {shapes}")
    if used > 1:
        raise RuntimeError(
            f"what was written differs from the network by {used:.3g} times what may be ({tolerance:g} of the width "
            f"and {ROUNDING:g} of the largest entry), for inputs {shapes}; largest deviations: {largest}. "
            "Norms and softmax may amplify rounding that far: if it is small enough for you, set a larger tolerance"
        )
    return {"inputs": shapes, "largest_deviation": largest, "share_of_tolerance": _rounded(used)}


def deviations(
    got: Mapping[str, Tensor], want: Prediction, tolerance: float, undecided: Tensor | None = None
) -> Iterator[tuple[str, float, float]]:
    """Yield for each output its name, the largest deviation, and the largest as a share of what is allowed.

    Args:
        got: What the file returned.
        want: What the network predicts.
        tolerance: As in :func:`agreement`.
        undecided: Components that are not compared.
    """
    allowed = _allowed(want, tolerance)
    for key, value in got.items():
        expected = want[key]
        if value.shape != expected.shape:
            shapes = f"{tuple(value.shape)}, not {tuple(expected.shape)}"
            raise RuntimeError(f"what was written returns {key} of shape {shapes}")
        same = (value == expected) | (value.isnan() & expected.isnan())
        if key == "direction":  # the sign of a difference that may be all rounding
            same |= (want.above - want.below).abs() <= 2 * allowed
        if undecided is not None:
            same |= undecided
        deviation = torch.where(same, 0.0, (value - expected).abs())
        yield key, _most(deviation), _most(torch.where(same, 0.0, deviation / allowed))


def _allowed(want: Prediction, tolerance: float) -> Tensor:
    point, width = (torch.where(part.isfinite(), part, 0.0) for part in (want.point, want.width))
    return tolerance * width + ROUNDING * _most(point.abs())


def _undecided(net: IntervalNetwork, example: Example, tolerance: float) -> dict[str, Tensor]:
    """Return where rounding may decide by which group of widths a component was calibrated."""
    if not isinstance(net.calibration, Calibration) or net.calibration.groups.kind != "width":
        return {}
    edges = net.calibration.groups.values.tolist()
    args, kwargs = example.arguments
    with without(net, "calibration"):
        leaves = named_leaves(net.predict(*args, **kwargs))
    plain = {place: leaf.cpu() for place, leaf in leaves.items() if isinstance(leaf, Prediction)}
    return {
        place: torch.stack([(p.width - edge).abs() <= _allowed(p, tolerance) for edge in edges]).any(0)
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
