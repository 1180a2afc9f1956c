"""Models that compare, count, cast and choose: the bounds hold where an answer may change inside them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from soundness import misses, set_random_gaps
from torch import Tensor, nn

import intervalnn as inn

TABLE = torch.arange(20.0, dtype=torch.float64).view(10, 2) / 10
GRID = torch.linspace(-2, 2, 9, dtype=torch.float64)


def written(h: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
    h = h.clone()
    h[mask] = value
    return h


def sparsemax(h: Tensor) -> Tensor:
    ordered = h.sort(-1, descending=True)[0]
    total = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, h.size(-1) + 1, dtype=h.dtype)
    support = (ranks * ordered > total).sum(-1, keepdim=True)
    return F.relu(h - total.gather(-1, support - 1) / support.to(h.dtype))


def spline(h: Tensor) -> Tensor:
    x = h.unsqueeze(-1)
    bases = ((x >= GRID[:-1]) * (x < GRID[1:])).to(h.dtype)
    for k in (1, 2):
        left = (x - GRID[: -k - 1]) / (GRID[k:-1] - GRID[: -k - 1]) * bases[..., :-1]
        bases = left + (GRID[k + 1 :] - x) / (GRID[k + 1 :] - GRID[1:-k]) * bases[..., 1:]
    return (bases * torch.arange(bases.size(-1))).sum(-1)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "a leaky unit": lambda h: torch.where(h > 0, h, 0.1 * h),
    "a product with an answer": lambda h: h * (h > 0),
    "an answer as a float": lambda h: h * (h > 0).float(),
    "a masked fill": lambda h: h.masked_fill(h < 0, -1.0),
    "a masked write": lambda h: written(h, h < 0, 0.0),
    "a masked write of an interval": lambda h: written(h, h < 0, h.sum()),
    "a write of an answer": lambda h: written(h, (slice(None), 0), (h[:, 1] > 0).double()),
    "several answers": lambda h: torch.where((h > 0) & (h < 1) | ~(h > -1), h, -h),
    "a count": lambda h: h / (h > 0).sum(-1, keepdim=True).clamp(min=1),
    "any": lambda h: h * (h > 1).any(-1, keepdim=True),
    "an index": lambda h: TABLE[(2 * h).long().clamp(-4, 9)].sum(-1) + h,
    "an embedding": lambda h: F.embedding(h.long().clamp(0, 9), TABLE).sum(-1) + h,
    "one hot": lambda h: F.one_hot(h.long().clamp(0, 3), 4).double() @ TABLE[:4].sum(-1) + h,
    "buckets": lambda h: torch.bucketize(h, GRID).to(h.dtype),
    "nearly equal": lambda h: torch.isclose(h, torch.zeros_like(h), atol=0.1) * h,
    "guards": lambda h: torch.where(torch.isfinite(h) & ~torch.isnan(h), h, 0.0),
    "a choice between numbers": lambda h: torch.where(h > 0, h, torch.where(h == 0, 0.0, -1.0)),
    "a step": lambda h: torch.heaviside(h, torch.tensor(0.5, dtype=h.dtype)),
    "the nearest of a codebook": lambda h: (
        F.embedding(torch.cdist(h[:, :2], TABLE).argmin(-1), TABLE).sum(-1, True) + h
    ),
    "where the largest stands": lambda h: F.one_hot(h.max(-1)[1] % 4, 4).to(h.dtype) @ TABLE[:4].sum(-1, True) + h,
    "the largest two": lambda h: h * (h >= h.topk(2, -1)[0][..., -1:]),
    "sparsemax": sparsemax,
    "a spline": spline,
}


class Chooses(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.function(self.first(x)))


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    return Chooses(FUNCTIONS[name]).double().eval()


X = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.rotating
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_draw_leaves_the_bounds_of_a_model_that_chooses(name: str) -> None:
    net = inn.IntervalNetwork(model_of(name), layers="all")
    for rel in (0.001, 0.1):
        set_random_gaps(net, rel=rel)

        outside, reached = misses(net, model_of(name), (X,), {}, draws=100, rtol=1e-12)

        assert outside == 0 and reached > 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_gaps_a_model_that_chooses_has_its_own_output_and_no_width(name: str) -> None:
    model = model_of(name)

    bounds = inn.IntervalNetwork(model, layers="all")(X)

    assert torch.equal(bounds.point, model(X))
    assert not bounds.width.any()


@pytest.mark.rotating
@pytest.mark.parametrize("name", ["a leaky unit", "a count", "an index", "sparsemax"])
def test_answers_pass_through_the_compiler_and_recomputation(name: str) -> None:
    net = inn.IntervalNetwork(model_of(name), layers="all")
    set_random_gaps(net, rel=0.1)
    expected = net(X)
    expected.width.sum().backward()
    gradients = {n: p.grad.clone() for n, p in net.named_parameters()}

    for change in ("recompute", "compile"):
        other = copy.deepcopy(net)
        other.zero_grad()
        if change == "compile":
            other.compile(backend="eager", fullgraph=True)
        with other.recomputing() if change == "recompute" else contextlib.nullcontext():
            found = other(X)
            found.width.sum().backward()

        assert torch.allclose(found.width, expected.width)
        assert all(torch.allclose(p.grad, gradients[n]) for n, p in other.named_parameters())
