"""Models that solve, invert and factor matrices, and make orthogonal ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from soundness import misses, set_random_gaps
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import intervalnn as inn

A = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 4 * torch.eye(4).double()
X = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
Function = Callable[[Tensor, Tensor, Tensor], Any]

BOUNDED: dict[str, Function] = {
    "a system with a point matrix": lambda h, w, a: torch.linalg.solve(a, h.mT),
    "a system": lambda h, w, a: torch.linalg.solve(w, h.mT),
    "an inverse": lambda h, w, a: h @ torch.linalg.inv(w),
    "an inverse of a point": lambda h, w, a: h @ a.inverse(),
    "a negative power": lambda h, w, a: h @ torch.linalg.matrix_power(w, -2),
    "Cholesky factors of a point": lambda h, w, a: torch.cholesky_solve(h.mT, torch.linalg.cholesky(a @ a.mT)),
    "LU factors of a point": lambda h, w, a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), h.mT),
    "a triangular system": lambda h, w, a: torch.linalg.solve_triangular(w.tril(), h.mT, upper=False),
    "a flow": lambda h, w, a: (h @ w, torch.slogdet(w)[1] * h.size(0), torch.det(w)),
    "a nuclear norm": lambda h, w, a: h * torch.linalg.matrix_norm(w, "nuc"),
    "eigenvalues": lambda h, w, a: h * torch.linalg.eigvalsh(w + w.mT),
    "an exponential": lambda h, w, a: h @ torch.matrix_exp(w / 4),
}
REFUSED: dict[str, Function] = {
    "eigenvectors": lambda h, w, a: h @ torch.linalg.eigh(w)[1],
    "singular vectors": lambda h, w, a: h @ torch.linalg.svd(w)[0],
    "Cholesky factors": lambda h, w, a: h @ torch.linalg.cholesky(w @ w.mT + a @ a.mT),
    "QR factors": lambda h, w, a: h @ torch.linalg.qr(w)[0],
}


class Solves(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.matrix = nn.Parameter(torch.randn(4, 4) / 10 + 2 * torch.eye(4))
        self.register_buffer("fixed", A)
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self.layer(x), self.matrix, self.fixed)


def solver(function: Function) -> nn.Module:
    torch.manual_seed(0)
    return Solves(function).double().eval()


def orthogonal(how: str, *, trivial: bool) -> nn.Module:
    torch.manual_seed(0)
    layer = parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map=how, use_trivialization=trivial)
    model = nn.Sequential(layer, nn.ReLU(), nn.Linear(4, 2)).double().eval()
    with torch.no_grad():
        layer.parametrizations.weight.original.add_(0.1 * torch.randn(4, 4))
    return model


@pytest.mark.rotating
@pytest.mark.parametrize("name", BOUNDED)
def test_no_draw_leaves_the_bounds_of_a_model_that_solves(name: str) -> None:
    model = solver(BOUNDED[name])
    net = inn.IntervalNetwork(model, layers="all")
    points, expected = net(X), model(X)
    for bound, value in zip(_each(points), _each(expected), strict=True):
        assert torch.equal(bound.point, value) and not bound.width.any()
    set_random_gaps(net, rel=0.01)

    outside, reached = misses(net, solver(BOUNDED[name]), (X,), {}, draws=100, rtol=1e-9)

    assert outside == 0 and reached > 0.05


def _each(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.rotating
@pytest.mark.parametrize("name", REFUSED)
def test_factors_of_intervals_are_refused_with_the_line(name: str) -> None:
    with pytest.raises(inn.MissingRuleError, match=r"test_matrices\.py:\d+"):
        inn.IntervalNetwork(solver(REFUSED[name]), layers="all")(X)


@pytest.mark.rotating
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley"])
def test_an_orthogonal_parametrisation_has_bounds(how: str, trivial: bool) -> None:
    net = inn.IntervalNetwork(orthogonal(how, trivial=trivial), layers="all")
    set_random_gaps(net, rel=0.01)

    outside, _ = misses(net, orthogonal(how, trivial=trivial), (X,), {}, draws=100, rtol=1e-9)

    assert outside == 0
    assert net(X).width.max() < 0.5


def test_an_orthogonal_parametrisation_by_reflections_says_what_to_do() -> None:
    with pytest.raises(inn.MissingRuleError, match=r"matrix_exp.*remove_parametrizations"):
        inn.IntervalNetwork(orthogonal("householder", trivial=False), layers="all")(X)
