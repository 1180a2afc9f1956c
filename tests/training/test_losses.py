"""Losses: against plain NumPy, and what their minimisers cover."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from intervalnn import Interval, losses
from intervalnn.calibration.guarantee import beta_for_coverage


def bounds_and_target(seed: int = 0) -> tuple[Interval, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    point, below, above, target = torch.randn(4, 3, 5, dtype=torch.float64, generator=generator)
    return Interval(point, below.abs(), above.abs()), 2 * target


def constant(residuals: Tensor, below: Tensor, above: Tensor) -> Interval:
    return Interval(torch.zeros_like(residuals), below.expand_as(residuals), above.expand_as(residuals))


def minimised(loss: losses.Loss, residuals: Tensor) -> Interval:
    """Return the bounds of constant width that make the loss least."""
    gaps = torch.full((2,), 1.0, dtype=residuals.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([gaps], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(constant(residuals, gaps[0], gaps[1]), residuals)
        value.backward()
        return value

    for _ in range(5):
        optimizer.step(closure)
    return constant(residuals, gaps[0], gaps[1]).detach()


def test_errors_of_plain_outputs_are_those_of_numpy() -> None:
    bounds, target = bounds_and_target()
    error = bounds.point.numpy() - target.numpy()

    assert float(losses.mse(bounds.point, target)) == pytest.approx(np.mean(error**2), rel=1e-14)
    assert float(losses.mae(bounds.point, target)) == pytest.approx(np.mean(np.abs(error)), rel=1e-14)


@pytest.mark.parametrize("beta", [1e-3, 0.5])
def test_the_interval_loss_is_equation_two_averaged(beta: float) -> None:
    bounds, target = bounds_and_target()
    y, lower, upper = target.numpy(), bounds.lower.numpy(), bounds.upper.numpy()
    total = 0.0
    for i, j in np.ndindex(y.shape):
        total += max(y[i, j] - upper[i, j], 0) ** 2 + max(lower[i, j] - y[i, j], 0) ** 2
        total += beta * (upper[i, j] - lower[i, j])

    found = losses.interval(beta=beta)(bounds, target)

    assert float(found) == pytest.approx(total / y.size, rel=1e-13)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_the_pinball_loss_is_that_of_both_quantiles(coverage: float) -> None:
    bounds, target = bounds_and_target()
    y, lower, upper = target.numpy(), bounds.lower.numpy(), bounds.upper.numpy()
    total = 0.0
    for level, quantile in (((1 - coverage) / 2, lower), ((1 + coverage) / 2, upper)):
        total += np.mean(np.where(y > quantile, level * (y - quantile), (1 - level) * (quantile - y)))

    found = losses.pinball(coverage=coverage)(bounds, target)

    assert float(found) == pytest.approx(total, rel=1e-13)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("shape", ["normal", "exponential"])
def test_the_pinball_minimum_covers_what_was_asked_half_of_the_rest_on_either_side(coverage: float, shape: str) -> None:
    generator = torch.Generator().manual_seed(0)
    residuals = torch.empty(20_000, dtype=torch.float64)
    residuals = residuals.normal_(generator=generator) if shape == "normal" else residuals.exponential_(
        generator=generator
    ).sub_(1.0)  # fmt: skip

    tail = (1 - coverage) / 2
    lower, upper = residuals.quantile(tail), residuals.quantile(1 - tail)
    loss = losses.pinball(coverage=coverage)
    best = constant(residuals, -lower, upper)

    assert float(best.contains(residuals).double().mean()) == pytest.approx(coverage, abs=1e-3)
    for factor in (0.9, 1.1):  # any other bounds cost more
        assert loss(constant(residuals, -lower * factor, upper), residuals) > loss(best, residuals)
        assert loss(constant(residuals, -lower, upper * factor), residuals) > loss(best, residuals)


def test_the_interval_minimum_covers_what_beta_stands_for_with_laplace_errors() -> None:
    uniform = torch.rand(50_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5
    residuals = -uniform.sign() * (1 - 2 * uniform.abs()).log()
    mae = float(residuals.abs().mean())

    best = minimised(losses.interval(beta=beta_for_coverage(0.9, mae)), residuals)

    assert float(best.contains(residuals).double().mean()) == pytest.approx(0.9, abs=0.01)


def test_the_interval_minimum_has_no_width_at_the_betas_that_the_paper_recommends() -> None:
    residuals = torch.randn(10_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss = losses.interval(beta=1.01 * float(residuals.abs().mean()))
    nothing = torch.zeros((), dtype=torch.float64)

    assert all(
        loss(constant(residuals, nothing, nothing), residuals) < loss(constant(residuals, gap, gap), residuals)
        for gap in torch.tensor([1e-3, 0.1, 1.0, 2.0], dtype=torch.float64)
    )


def test_losses_refuse_what_has_no_meaning() -> None:
    with pytest.raises(ValueError, match="beta must be positive, got 0"):
        losses.interval(beta=0)
    for coverage in (0.0, 1.0, 90.0, float("nan")):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
            losses.pinball(coverage=coverage)
