"""The Bayesian view (App. B), against weights drawn from their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import intervalnn as inn
from intervalnn.paper.bayes import log_density, log_likelihood, log_likelihood_from_loss, predictive_density
from intervalnn.training.losses import interval

PRECISIONS = [0.5, 1.0, 7.0]


def fitted() -> tuple[nn.Module, inn.IntervalNetwork, Tensor, Tensor]:
    """Return a tiny model, its interval network, and data that lie inside, near and far from the bounds."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)).double().eval()
        x, y = torch.randn(12, 2, dtype=torch.float64), torch.randn(12, 2, dtype=torch.float64)
        net = inn.IntervalNetwork(model, layers="all")
        for name, parameter in model.named_parameters():
            below, above = 0.1 * torch.rand(2, *parameter.shape, dtype=torch.float64)
            net.set_gaps(name, below=below, above=above)
    return model, net, x, y


def outputs(model: nn.Module, net: inn.IntervalNetwork, x: Tensor, n: int = 400) -> Iterator[Tensor]:
    """Yield what the model returns with weights drawn from their intervals, half of them at the corners."""
    noise = torch.Generator().manual_seed(1)
    intervals = net.weight_intervals()
    for i in range(n):
        at = {name: torch.rand(w.shape, generator=noise, dtype=torch.float64) for name, w in intervals.items()}
        drawn = {k: w.lower + w.width * (at[k].round() if i % 2 else at[k]) for k, w in intervals.items()}
        yield functional_call(model, drawn, x)


def gaussian(y: Tensor, mean: Tensor, precision: float) -> Tensor:
    return torch.distributions.Normal(mean, 1 / precision).log_prob(y)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_bounds_contain_the_likelihood_of_all_weights(precision: float) -> None:
    model, net, x, y = fitted()

    each, whole = (f(net(x).detach(), y, precision=precision) for f in (log_density, log_likelihood))

    for output in outputs(model, net, x):
        density = gaussian(y, output, precision)
        assert each.contains(density, atol=1e-9).all()
        assert whole.contains(density.sum(1), atol=1e-9).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_bounds_contain_the_elbo_term_and_the_predictive_density_of_any_distribution(precision: float) -> None:
    model, net, x, y = fitted()
    drawn = torch.stack([gaussian(y, output, precision) for output in outputs(model, net, x)])
    weights = torch.rand(20, len(drawn), 1, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64) ** 20

    likelihood = log_likelihood(net(x).detach(), y, precision=precision)
    density = predictive_density(net(x).detach(), y, precision=precision)

    for q in weights / weights.sum(1, keepdim=True):  # twenty distributions over the weights drawn
        elbo_term = (q * drawn).sum(0).sum()
        assert likelihood.lower.sum() - 1e-9 <= elbo_term <= likelihood.upper.sum() + 1e-9
        assert density.contains((q * drawn.exp()).sum(0), atol=1e-12).all()


def test_point_is_the_underlying_model_and_bounds_are_reached_where_the_output_is_one_parameter() -> None:
    model = nn.Linear(1, 1).double().eval()
    net = inn.IntervalNetwork(model, layers=["bias"])
    net.set_gaps("bias", below=0.3, above=0.1)
    x = torch.ones(5, 1, dtype=torch.float64)
    y = model(x).detach() + torch.tensor([-2.0, -0.2, 0.0, 0.05, 2.0], dtype=torch.float64)[:, None]

    density = log_density(net(x).detach(), y, precision=3.0)

    ends = torch.linspace(-0.3, 0.1, 4001, dtype=torch.float64)
    every = gaussian(y, model(x).detach() + ends, 3.0)
    torch.testing.assert_close(density.point, gaussian(y, model(x).detach(), 3.0))
    torch.testing.assert_close(density.lower[:, 0], every.amin(1), atol=1e-6, rtol=0)
    torch.testing.assert_close(density.upper[:, 0], every.amax(1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_exponent_is_tau_squared_whatever_the_dimension(precision: float) -> None:
    point, y = np.zeros((1, 3)), np.array([[1.0, -2.0, 0.5]])
    covariance = np.eye(3) / precision**2
    exact = -0.5 * (y @ np.linalg.inv(covariance) @ y.T).item() - 0.5 * math.log(
        np.linalg.det(2 * math.pi * covariance)
    )

    found = log_likelihood(inn.Interval.of(torch.tensor(point)), torch.tensor(y), precision=precision)

    assert found.point.item() == pytest.approx(exact)
    assert found.width.item() == 0


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_bound_by_missed_and_width_is_below_the_exact_one(precision: float) -> None:
    _, net, x, y = fitted()
    bounds = net(x).detach()

    loose, exact = (f(bounds, y, precision=precision) for f in (log_likelihood_from_loss, log_likelihood))

    assert (loose <= exact.lower + 1e-12).all()


def test_the_loss_bounds_the_likelihood_where_beta_is_at_least_the_width_and_not_else() -> None:
    y = torch.tensor([[0.0]], dtype=torch.float64)

    def from_loss(gap: float, beta: float) -> float:
        gaps = torch.full_like(y, gap)
        loss = interval(beta=beta)(inn.Interval(y, 0 * gaps, gaps), y)
        return -0.5 * math.log(2 * math.pi) - float(loss)

    def worst(gap: float) -> float:
        gaps = torch.full_like(y, gap)
        return float(log_likelihood(inn.Interval(y, 0 * gaps, gaps), y, precision=1.0).lower)

    assert from_loss(gap=0.9, beta=1.0) <= worst(gap=0.9)
    assert from_loss(gap=5.0, beta=1.0) > worst(gap=5.0)  # App. B claims a lower bound for beta = 1
    assert from_loss(gap=5.0, beta=5.0) <= worst(gap=5.0)


def test_the_density_decays_outside_and_its_upper_bound_is_flat_inside() -> None:
    gap = torch.ones(7)
    bounds = inn.Interval(torch.zeros(7), gap, gap)

    upper = predictive_density(bounds, torch.tensor([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]), precision=1.0).upper

    assert torch.equal(upper, upper.flip(0))
    torch.testing.assert_close(upper[2:5], torch.full((3,), 1 / math.sqrt(2 * math.pi)))
    assert upper[5] > upper[6]


def test_bad_arguments_are_refused() -> None:
    bounds = inn.Interval.of(torch.zeros(2, 3))

    with pytest.raises(ValueError, match=r"target must have shape \(2, 3\), like the bounds, got \(3,\)"):
        log_density(bounds, torch.zeros(3), precision=1.0)
    with pytest.raises(ValueError, match="precision must be positive, got 0"):
        log_density(bounds, torch.zeros(2, 3), precision=0.0)
