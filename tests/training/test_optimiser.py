from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from intervalnn.training.optimiser import Proportional


def train(gap: nn.Parameter, target: Tensor, steps: int, *, scale: float = 1.0, **options: float) -> Proportional:
    optimizer = Proportional([gap], **options)  # type: ignore[arg-type]
    for _ in range(steps):
        optimizer.zero_grad()
        (scale * (gap - target).abs().sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return optimizer


def test_values_that_lie_orders_of_magnitude_apart_are_reached_alike() -> None:
    target = torch.tensor([1e-3, 1.0, 1e3])
    gap = nn.Parameter(torch.zeros(3))

    train(gap, target, 1000, lr=0.05, start=1e-3)

    assert ((gap / target).log().abs() < 0.3).all()


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_size_of_the_loss_does_not_matter(scale: float) -> None:
    a, b = nn.Parameter(torch.zeros(2, dtype=torch.float64)), nn.Parameter(torch.zeros(2, dtype=torch.float64))
    target = torch.tensor([3.0, 0.1], dtype=torch.float64)

    train(a, target, 50)
    train(b, target, 50, scale=scale)

    torch.testing.assert_close(a, b, rtol=1e-6, atol=0)


def test_gradients_too_small_to_be_squared_take_bounded_steps() -> None:
    gap = nn.Parameter(torch.ones(1))

    train(gap, torch.zeros(1), 3, scale=1e-30, lr=0.1)

    assert 1.0 > float(gap.detach()) >= float(torch.exp(torch.tensor(-3 * 3 * 0.1))) - 1e-6


def test_what_never_has_a_gradient_stays_zero_and_what_has_starts() -> None:
    gap = nn.Parameter(torch.zeros(2))
    optimizer = Proportional([gap], start=0.5, lr=0.1)

    (-gap[0]).backward()
    optimizer.step()

    assert gap.tolist() == pytest.approx([0.5 * 1.1051709, 0.0], rel=1e-5)


def test_nothing_becomes_so_small_that_it_could_not_come_back() -> None:
    gap = nn.Parameter(torch.ones(1))

    train(gap, torch.tensor([-1.0]), 500, lr=0.3, least=1e-3, start=1.0)
    assert gap.item() == pytest.approx(1e-3)
    train(gap, torch.tensor([1.0]), 300, lr=0.1, least=1e-3, start=1.0)

    assert gap.item() == pytest.approx(1.0, rel=0.2)


def test_a_run_goes_on_from_its_state_bit_for_bit() -> None:
    target = torch.tensor([2.0, 0.3])
    whole, half = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    train(whole, target, 40)
    first = train(half, target, 20)

    second = Proportional([half])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(20):
        second.zero_grad()
        (half - target).abs().sum().backward()  # type: ignore[no-untyped-call]
        second.step()

    assert torch.equal(whole, half)


def test_a_closure_is_called_with_gradients() -> None:
    gap = nn.Parameter(torch.ones(1))
    optimizer = Proportional([gap])

    def closure() -> Tensor:
        loss = gap.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    assert optimizer.step(closure).item() == 1.0
    assert gap.item() < 1.0


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"least": 0.0}, {"start": 1e-9}])
def test_settings_that_cannot_work_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be positive, and start no less than least"):
        Proportional([nn.Parameter(torch.ones(1))], **options)  # type: ignore[arg-type]
