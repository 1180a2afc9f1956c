"""Localisation: how well the score tells the components of a region from the others."""

from __future__ import annotations

import torch
from torch import Tensor

from intervalnn.metrics.ranks import ranks
from intervalnn.prediction import Prediction

__all__ = ["auroc", "average_precision"]


def auroc(prediction: Prediction, mask: Tensor) -> Tensor:
    """Return how likely a component inside the mask has the higher score than one outside, ``(batch,)``.

    One half is chance, and equal scores count one half. NaN where the mask is empty or everything.

    Args:
        prediction: Whose score is judged.
        mask: What to find, boolean, of the score's shape.

    Example:
        >>> score = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        >>> prediction = Prediction(torch.zeros(1, 4), score, score, score)
        >>> auroc(prediction, torch.tensor([[False, True, False, True]]))
        tensor([0.7500], dtype=torch.float64)
    """
    score, inside = _flat(prediction, mask)
    positive = inside.sum(1).double()
    negative = inside.shape[1] - positive
    above = (ranks(score) * inside).sum(1) - positive * (positive + 1) / 2
    return above / (positive * negative)


def average_precision(prediction: Prediction, mask: Tensor) -> Tensor:
    """Return the area under precision against recall, as a sum of steps, ``(batch,)``.

    Chance is the share of the mask. Components of equal score are found together. NaN where the mask is empty.

    Args:
        prediction: Whose score is judged.
        mask: What to find, boolean, of the score's shape.

    Example:
        >>> score = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        >>> prediction = Prediction(torch.zeros(1, 4), score, score, score)
        >>> average_precision(prediction, torch.tensor([[False, True, False, True]])).item()  # (1/1 + 2/3) / 2
        0.8333333333333333
    """
    score, inside = _flat(prediction, mask)
    ordered, order = score.sort(1, descending=True)
    found = inside.gather(1, order).double().cumsum(1)
    places = torch.arange(1, score.shape[1] + 1, dtype=torch.float64, device=score.device)
    last = torch.ones_like(inside)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]  # the end of each group of equal scores
    at_end = torch.where(last, found, found.new_zeros(()))
    before = torch.cat((found.new_zeros(len(found), 1), at_end.cummax(1).values[:, :-1]), 1)
    steps = torch.where(last, (found - before) * found / places, found.new_zeros(()))
    return steps.sum(1) / inside.sum(1)


def _flat(prediction: Prediction, mask: Tensor) -> tuple[Tensor, Tensor]:
    if mask.dtype != torch.bool or mask.shape != prediction.score.shape:
        raise ValueError(
            f"the mask must be boolean and of the score's shape {tuple(prediction.score.shape)}, "
            f"got {mask.dtype} of shape {tuple(mask.shape)}"
        )
    return prediction.score.flatten(1), mask.flatten(1)
