"""Artefacts that a network paints or does not know, and whether a method's score tells where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn import metrics
from intervalnn.prediction import Prediction
from intervalnn.tasks import ImageTask

__all__ = ["Artefacts", "adversarial", "inserted", "localised"]

STRENGTH = 0.25  # how much brighter the artefact is, on the scale [0, 1]
SIDE = 8  # the image is this many times as wide as the artefact
PRICE = 0.1  # of the perturbation, against the error of what it paints
BODY = 0.35  # what is brighter than this is tissue


@dataclass(frozen=True, slots=True)
class Artefacts:
    """Inputs that lead to artefacts.

    Attributes:
        x: What the network is given, ``(count, 1, height, width)``.
        clean: The same without the artefact.
        mask: Where the artefact is.
        about: What is known of how they were made.
    """

    x: Tensor
    clean: Tensor
    mask: Tensor
    about: dict[str, float]


def _places(images: Tensor, side: int, generator: torch.Generator) -> list[tuple[int, int]]:
    """Return the upper left corner of a square inside the body of each image."""
    size = images.shape[-1]
    found = []
    for image in images[:, 0]:
        middle = image[side : size - 2 * side, side : size - 2 * side].cpu()
        inside = (middle > BODY).nonzero()
        choices = inside if len(inside) else torch.ones_like(middle).nonzero()
        row, column = choices[torch.randint(len(choices), (), generator=generator)].tolist()
        found.append((row + side, column + side))
    return found


def adversarial(
    model: nn.Module, x: Tensor, y: Tensor, *, steps: int, batch: int, seed: int = 0, lr: float = 3e-3
) -> Artefacts:
    """Search for small perturbations of the inputs with which the network paints a square that is not there."""
    side = max(2, x.shape[-1] // SIDE)
    mask = torch.zeros_like(x, dtype=torch.bool)
    for one, (row, column) in zip(mask, _places(y, side, torch.Generator().manual_seed(seed)), strict=True):
        one[:, row : row + side, column : column + side] = True
    made = [_perturbed(model, *parts, steps, lr) for parts in zip(x.split(batch), mask.split(batch), strict=True)]
    perturbed = torch.cat(made)
    with torch.no_grad():
        pairs = zip(perturbed.split(batch), x.split(batch), strict=True)
        change = torch.cat([model(new) - model(old) for new, old in pairs])
    about = {
        "painted": float(change[mask].mean()) / STRENGTH,
        "changed elsewhere": float(change[~mask].abs().mean()) / STRENGTH,
        "perturbation": float((perturbed - x).norm() / x.norm()),
    }
    return Artefacts(perturbed, x, mask, about)


def _perturbed(model: nn.Module, x: Tensor, mask: Tensor, steps: int, lr: float) -> Tensor:
    with torch.no_grad():
        wanted = model(x) + STRENGTH * mask
    change = torch.zeros_like(x, requires_grad=True)
    optimizer = torch.optim.Adam([change], lr=lr)
    for _ in range(steps):
        (gradient,) = torch.autograd.grad(
            (model(x + change) - wanted).square().sum() + PRICE * change.square().sum(), change
        )
        change.grad = gradient
        optimizer.step()
    return (x + change).detach()


@torch.no_grad()
def inserted(task: ImageTask, y: Tensor, *, batch: int, seed: int = 0) -> Artefacts:
    """Insert a shape into the images that no patient has, a bright ring, before they are measured."""
    side = max(4, y.shape[-1] // SIDE)
    steps = (2 * torch.arange(side, device=y.device) + 1) / side - 1  # the middles of pixels, from -1 to 1
    radius = (steps[:, None].square() + steps[None, :].square()).sqrt()
    ring = (radius < 1) & (radius > 0.5)
    mask = torch.zeros_like(y, dtype=torch.bool)
    for one, (row, column) in zip(mask, _places(y, side, torch.Generator().manual_seed(seed)), strict=True):
        one[0, row : row + side, column : column + side] = ring
    changed = torch.where(mask, (y + STRENGTH).clamp(max=1.0), y)

    def through(images: Tensor) -> Tensor:
        generator = torch.Generator(y.device).manual_seed(seed)  # the same noise for both
        return torch.cat([task.inputs(part, generator) for part in images.split(batch)])

    x, clean = through(changed), through(y)
    return Artefacts(x, clean, mask, {"perturbation": float((x - clean).norm() / clean.norm())})


@torch.no_grad()
def localised(method: Any, artefacts: Artefacts, batch: int) -> dict[str, list[float]]:
    """Return how well the score finds each artefact; and how well that of the clean input would, for comparison."""
    dirty, clean = (
        Prediction.cat([method.predict(part) for part in x.split(batch)]) for x in (artefacts.x, artefacts.clean)
    )
    return {
        "auroc": metrics.auroc(dirty, artefacts.mask).tolist(),
        "average_precision": metrics.average_precision(dirty, artefacts.mask).tolist(),
        "auroc, clean": metrics.auroc(clean, artefacts.mask).tolist(),
        "score inside": (dirty.score / clean.score.clamp(min=1e-12))[artefacts.mask]
        .double()
        .mean()
        .reshape(1)
        .tolist(),
    }
