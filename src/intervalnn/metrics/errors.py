"""Errors: how far predictions lie from their targets."""

from __future__ import annotations

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared
from intervalnn.prediction import Prediction

__all__ = ["mae", "mse", "psnr", "ssim"]

_BORDER = 5  # pixels that torchmetrics reflects at each border, half of its window
_ROWS = 64  # a band of an image at a time: its convolution in float64 takes 605 times the memory of the band
_LARGE = 4.0  # times the range: float32 is good to 1e-6 up to there, and far from it useless


def mse(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the mean squared error of each sample, ``(batch,)``.

    Example:
        >>> zero = torch.zeros(2, 3)
        >>> mse(Prediction(zero, zero, zero, zero), torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 3.0]]))
        tensor([1., 3.], dtype=torch.float64)
    """
    return compared(prediction, target).distance.square().mean(1)


def mae(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the mean absolute error of each sample, ``(batch,)``."""
    return compared(prediction, target).error.mean(1)


def psnr(prediction: Prediction, target: Tensor, *, data_range: float | None = None) -> Tensor:
    """Return the peak signal-to-noise ratio of each sample in decibel, ``(batch,)``.

    Infinite for a perfect prediction; NaN for a constant target whose range is not given.

    Args:
        prediction: What was predicted.
        target: The truth.
        data_range: Largest value less the smallest one; that of each sample's target by default.
    """
    error = mse(prediction, target)
    span = _span(target, data_range).to(error.device)
    return torch.where(span > 0, 20 * span.log10() - 10 * error.log10(), torch.nan)


def ssim(prediction: Prediction, target: Tensor, *, data_range: float | None = None) -> Tensor:
    """Return the structural similarity of each image, ``(batch,)``, by torchmetrics' own function.

    NaN for a constant target whose range is not given.

    Args:
        prediction: Images, ``(batch, channels, height, width)``.
        target: The truth.
        data_range: Largest value less the smallest one; that of each sample's target by default,
            so that what a sample gets does not depend on its batch.
    """
    compared(prediction, target)
    if target.ndim != 4 or min(target.shape[2:]) <= _BORDER:
        raise ValueError(
            "ssim needs images (batch, channels, height, width) of at least 6 x 6 pixels, "
            f"got shape {tuple(target.shape)}; add a dimension for the channels, or give slices of a volume"
        )
    span = _span(target, data_range).to(prediction.point.device)
    unit = torch.where(span > 0, span, 1.0).view(-1, 1, 1, 1)  # similarity is the same in any unit
    images = torch.stack([image.detach().to(span.device).double() / unit for image in (prediction.point, target)], 1)
    found = torch.stack([_similarity(pair) for pair in images])
    return torch.where(span > 0, found, torch.nan)


def _similarity(pair: Tensor) -> Tensor:
    """Return the similarity of two images of range 1, ``(2, channels, height, width)``, band by band."""
    try:
        from torchmetrics.functional.image import structural_similarity_index_measure
    except ImportError as error:
        raise ImportError("ssim needs torchmetrics: pip install intervalnn[metrics]") from error
    total, height = pair.new_zeros(()), pair.shape[2]
    rows = pair.float() if float(pair.abs().max()) <= _LARGE else pair
    for top in range(0, height, _ROWS):
        start, end = max(top - _BORDER, 0), top + _ROWS + _BORDER
        point, truth = rows[:, None, :, start:end]
        _, similarity = structural_similarity_index_measure(point, truth, data_range=1.0, return_full_image=True)
        total += similarity[..., top - start : top - start + _ROWS, :].double().sum()
    return total / pair[0].numel()


def _span(target: Tensor, data_range: float | None) -> Tensor:
    if data_range is None:
        flat = target.detach().double().reshape(len(target), -1)
        return flat.amax(1) - flat.amin(1)
    if not data_range > 0:
        raise ValueError(f"data_range must be positive, got {data_range}; leave it out to take each target's own")
    return torch.full((len(target),), data_range, dtype=torch.float64)
