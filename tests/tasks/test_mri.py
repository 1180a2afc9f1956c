import math
from typing import Any, Literal

import pytest
import torch

from intervalnn.tasks import MRI


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("spacing", ["random", "equispaced"])
@pytest.mark.parametrize("width", [127, 128, 320])
@pytest.mark.parametrize("acceleration", [1.0, 4.0, 8.0])
def test_as_many_columns_are_measured_as_make_the_acceleration(
    spacing: Literal["random", "equispaced"], width: int, acceleration: float
) -> None:
    mask = MRI(width, acceleration, spacing=spacing).mask

    assert int(mask.sum()) == round(width / acceleration)
    inner = round(0.08 * width)
    assert mask[width // 2 - inner // 2 :][:inner].all()


def test_equispaced_columns_are_as_far_apart_as_can_be() -> None:
    mask = MRI(320, 8.0, 0.04, "equispaced").mask
    outer = torch.cat((mask[: 160 - 6], mask[160 + 7 :])).nonzero().flatten()

    distances = torch.diff(outer)

    assert int(distances.max() - distances.min()) <= 1


def test_the_seed_determines_the_columns() -> None:
    assert torch.equal(MRI(128, seed=1).mask, MRI(128, seed=1).mask)
    assert not torch.equal(MRI(128, seed=1).mask, MRI(128, seed=2).mask)
    assert not torch.equal(MRI(128, spacing="equispaced", seed=1).mask, MRI(128, spacing="equispaced", seed=2).mask)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (33, 47)])
def test_the_adjoint_is_exact(height: int, width: int) -> None:
    task = MRI(width)
    y = torch.randn(2, 1, height, width, generator=seeded(), dtype=torch.complex64)
    x = torch.randn(2, 1, height, width, generator=seeded(1), dtype=torch.complex64)

    ahead, back = task.A(y.real) + 1j * task.A(y.imag), task.A_adjoint(x)

    assert torch.allclose(ahead, task.A(y), atol=1e-5)
    difference = torch.vdot(x.flatten(), ahead.flatten()) - torch.vdot(back.flatten(), y.flatten())
    assert float(difference.abs()) < 1e-6 * float(ahead.norm() * x.norm())


def test_the_zero_filled_reconstruction_is_the_pseudo_inverse() -> None:
    task = MRI(32)
    y = torch.rand(1, 1, 16, 32, dtype=torch.float64)
    x = task.A(y)

    assert torch.allclose(task.A(task.A_dagger(x)), x, atol=1e-12)


def test_all_columns_give_the_image_back() -> None:
    y, task = torch.rand(2, 1, 16, 32), MRI(32, acceleration=1)

    assert torch.allclose(task.inputs(y), y, atol=1e-6)
    assert float(task.A(y).norm()) == pytest.approx(float(y.norm()), rel=1e-6)


def test_frequency_zero_is_in_the_middle() -> None:
    x = MRI(32, acceleration=1).A(torch.ones(1, 1, 16, 32))[0, 0]

    assert x[8, 16].real == pytest.approx(math.sqrt(16 * 32), rel=1e-6)
    assert x.abs().sum() == pytest.approx(math.sqrt(16 * 32), rel=1e-5)


def test_the_gradient_of_the_misfit_is_the_adjoint_of_the_residual() -> None:
    task = MRI(32)
    y = torch.rand(1, 1, 16, 32, generator=seeded(), dtype=torch.float64).requires_grad_()
    x = torch.randn(1, 1, 16, 32, generator=seeded(), dtype=torch.complex128)

    (gradient,) = torch.autograd.grad((task.A(y) - x).abs().square().sum(), y)

    assert torch.allclose(gradient, 2 * task.A_adjoint(task.A(y) - x).real, atol=1e-12)


def test_noise_is_complex_and_on_measured_columns_only() -> None:
    task = MRI(256, noise=0.1)
    y = torch.rand(4, 1, 256, 256, generator=seeded())

    noise = task.measure(y, seeded(1)) - task.A(y)

    assert not noise[..., ~task.mask].any()
    drawn = noise[..., task.mask]
    assert float(drawn.abs().square().mean()) == pytest.approx(0.01, rel=0.02)
    assert float(drawn.real.std()) == pytest.approx(0.1 / math.sqrt(2), rel=0.02)
    assert float(drawn.imag.std()) == pytest.approx(0.1 / math.sqrt(2), rel=0.02)


def test_a_network_is_given_a_magnitude() -> None:
    task = MRI(64, noise=0.05)
    y = torch.rand(2, 1, 32, 64, generator=seeded())

    given = task.inputs(y, seeded(1))

    assert given.shape == y.shape and given.dtype == torch.float32
    assert torch.equal(given, task.A_dagger(task.measure(y, seeded(1))).abs())


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"width": 0}, "width"),
        ({"acceleration": 0.0}, "acceleration"),
        ({"acceleration": 0.5}, "acceleration"),
        ({"acceleration": 16.0}, "center=0.08 asks for 10"),
        ({"center": 0.001}, "center=0.001 asks for 0"),
        ({"spacing": "poisson"}, "spacing must be 'random' or 'equispaced', got 'poisson'"),
        ({"noise": -1.0}, "noise"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        MRI(**{"width": 128, **settings})


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(batch, 1, height, 64\), got \(1, 1, 64, 32\)"):
        MRI(64).A(torch.rand(1, 1, 64, 32))
