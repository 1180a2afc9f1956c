import math

import pytest
import torch

from intervalnn.tasks import Denoising


def test_the_operator_changes_nothing() -> None:
    y, task = torch.rand(2, 1, 5, 7), Denoising(0.1)

    assert torch.equal(task.A(y), y) and torch.equal(task.A_adjoint(y), y) and torch.equal(task.A_dagger(y), y)


def test_noise_is_white_and_has_the_deviation_asked_for() -> None:
    y = torch.rand(1, 1, 300, 300)

    noise = (Denoising(0.2).measure(y, torch.Generator().manual_seed(0)) - y)[0, 0]

    assert abs(float(noise.mean())) < 0.003
    assert float(noise.std()) == pytest.approx(0.2, rel=0.02)
    assert abs(float(torch.corrcoef(torch.stack((noise[:, 1:].flatten(), noise[:, :-1].flatten())))[0, 1])) < 0.02


def test_a_network_is_given_the_measurement() -> None:
    y, task = torch.rand(2, 1, 8, 8, dtype=torch.float64), Denoising(0.2)

    given, measured = (make(y, torch.Generator().manual_seed(3)) for make in (task.inputs, task.measure))

    assert torch.equal(given, measured) and given.dtype == torch.float64


@pytest.mark.parametrize("noise", [-0.1, math.nan, math.inf])
def test_impossible_noise_is_refused(noise: float) -> None:
    with pytest.raises(ValueError, match="noise must be finite and at least 0"):
        Denoising(noise)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(batch, 1, height, width\), got \(1, 3, 8, 8\)"):
        Denoising(0.1).measure(torch.rand(1, 3, 8, 8))
