"""The operator keeps what a discrete Radon transform can; tolerances are those of the best implementations known."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from intervalnn.tasks import Tomography, hounsfield, low_dose
from intervalnn.tasks.projection import ParallelBeam
from tasks.ellipses import Ellipse, image, phantom, sinogram

FULL = Tomography(256, angles=256, wedge=0.0)
LIMITED = Tomography(256, angles=256)
SMALL = Tomography(64, angles=64)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def error(got: Tensor, want: Tensor) -> float:
    return float((got - want).norm() / want.norm())


def inner(a: Tensor, b: Tensor) -> float:
    return float((a.double() * b.double()).sum())


@pytest.mark.parametrize(("smoothness", "finer", "tolerance"), [(2, 1, 1e-3), (0, 8, 3e-3)])
def test_line_integrals_are_those_of_the_closed_form(smoothness: int, finer: int, tolerance: float) -> None:
    ellipses = phantom(256, smoothness)

    x = FULL.A(image(ellipses, 256, finer).float())

    assert x.shape == (1, 1, 256, 363)
    assert error(x, sinogram(ellipses, FULL.theta, 363, finer)) < tolerance


@pytest.mark.parametrize(("smoothness", "finer", "tolerance"), [(2, 1, 8e-3), (0, 8, 4.5e-2)])
def test_back_projection_of_all_angles_gives_the_image(smoothness: int, finer: int, tolerance: float) -> None:
    y = image(phantom(256, smoothness), 256, finer).float()

    guess = FULL.fbp(FULL.A(y))

    assert error(guess, y) < tolerance
    assert inner(guess, y) / inner(y, y) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("size", [255, 256])
@pytest.mark.parametrize("wide", [False, True])
def test_the_adjoint_is_exact(size: int, wide: bool) -> None:
    generator = seeded()
    theta = 2 * math.pi * torch.rand(20, generator=generator, dtype=torch.float64)
    beam = ParallelBeam(size, theta, math.ceil(math.sqrt(2) * size) if wide else size)
    y = torch.randn(1, size, size, generator=generator)
    x = torch.randn(1, 20, beam.detectors, generator=generator)

    ahead, back = beam.project(y), beam.project_adjoint(x)

    assert abs(inner(ahead, x) - inner(y, back)) < 1e-6 * float(ahead.norm() * x.norm())


def test_limited_angle_back_projection_is_that_of_all_angles_with_zeros() -> None:
    x = LIMITED.A(image(phantom(256, 0), 256, 8).float())
    filled = torch.zeros(1, 1, 256, 363)
    filled[:, :, LIMITED.measured] = x

    assert error(LIMITED.fbp(x), FULL.fbp(filled)) < 1e-5


def test_every_view_sums_to_the_image() -> None:
    y = image(phantom(256, 0), 256, 8).float()

    sums = FULL.A(y).double().sum(-1)

    assert float((sums / y.double().sum() - 1).abs().max()) < 1e-3


def test_every_view_of_white_noise_sums_to_the_image() -> None:
    y = torch.rand(1, 1, 512, 512, generator=seeded())

    sums = Tomography(512, angles=64, wedge=0.0).A(y).double().sum(-1)

    assert float((sums / y.double().sum() - 1).abs().max()) < 1e-3


@pytest.mark.parametrize("size", [255, 256])
def test_a_centred_disc_has_mirror_symmetric_views(size: int) -> None:
    disc = image((Ellipse(1.0, 90.0, 90.0),), size, 8).float()

    x = Tomography(size, angles=64, wedge=0.0).A(disc)

    assert float((x - x.flip(-1)).abs().max() / x.max()) < 1e-5


def test_the_gradient_of_the_misfit_is_the_adjoint_of_the_residual() -> None:
    task = Tomography(64, angles=32)
    y = torch.rand(2, 1, 64, 64, generator=seeded()).requires_grad_()
    x = torch.rand(task.A(y).shape, generator=seeded(1))

    (gradient,) = torch.autograd.grad(((task.A(y) - x) ** 2).sum(), y)

    assert torch.equal(gradient, 2 * task.A_adjoint(task.A(y) - x))


def test_a_batch_is_a_loop() -> None:
    y = torch.rand(3, 1, 64, 64, generator=seeded())
    task = Tomography(64)
    x = task.A(y)

    assert torch.equal(x, torch.cat([task.A(part) for part in y.split(1)]))
    assert error(task.fbp(x), torch.cat([task.fbp(part) for part in x.split(1)])) < 1e-6


def test_all_maps_can_be_differentiated_twice() -> None:
    task = Tomography(6, angles=5)
    y = torch.rand(1, 1, 6, 6, generator=seeded(), dtype=torch.float64, requires_grad=True)
    x = torch.rand(task.A(y).shape, generator=seeded(), dtype=torch.float64, requires_grad=True)

    for function, at in ((task.A, y), (task.A_adjoint, x), (task.A_dagger, x)):
        assert torch.autograd.gradcheck(function, at)
        assert torch.autograd.gradgradcheck(lambda at, function=function: function(at) ** 2, at)


def test_the_adjoint_works_where_gradients_are_off() -> None:
    task = Tomography(16, angles=8)
    x = torch.rand(1, 1, 7, 23)

    with torch.inference_mode():
        inferred = task.A_adjoint(x)

    assert torch.equal(inferred, task.A_adjoint(x))


@pytest.mark.gpu
def test_cpu_and_accelerator_agree() -> None:
    y = image(phantom(256, 0), 256, 8).float()
    x = LIMITED.A(y)

    assert error(LIMITED.A(y.cuda()).cpu(), x) < 1e-4
    assert error(LIMITED.fbp(x.cuda()).cpu(), LIMITED.fbp(x)) < 1e-4
    assert error(LIMITED.A_adjoint(x.cuda()).cpu(), LIMITED.A_adjoint(x)) < 1e-4


@pytest.mark.gpu
def test_low_dose_works_on_an_accelerator() -> None:
    y = image((Ellipse(0.5, 50.0, 50.0),), 128).float().cuda()
    task = Tomography(128, photons=1e5, electronic=5.0)

    x = task.measure(y, torch.Generator("cuda").manual_seed(0))

    assert torch.equal(x, task.measure(y, torch.Generator("cuda").manual_seed(0)))
    assert 0 < error(x, task.A(y)) < 0.05


def test_the_default_wedge_is_that_of_the_authors_script() -> None:
    measured = Tomography(32).measured

    assert (~measured).nonzero().flatten().tolist() == [*range(42), *range(469, 512)]


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ({"angles": 720}, [*range(60), *range(660, 720)]),
        ({"angles": 720, "wedge_center": 90.0}, [*range(300, 420)]),
        ({"angles": 180, "wedge": 40.0, "wedge_center": 135.0}, [*range(115, 155)]),
        ({"angles": 180, "wedge": 40.0, "wedge_center": -45.0}, [*range(115, 155)]),
        ({"angles": 180, "wedge": 0.0}, []),
    ],
)
def test_a_wedge_has_any_width_and_place(settings: dict[str, Any], left_out: list[int]) -> None:
    task = Tomography(16, **settings)

    assert (~task.measured).nonzero().flatten().tolist() == left_out
    assert len(task.theta) == task.A(torch.rand(1, 1, 16, 16)).shape[2] == task.angles - len(left_out)


def test_edges_along_missing_rays_are_lost_and_others_kept() -> None:
    """Views near 0 degrees look along y: without them, what changes along x only is lost."""
    stripes = torch.cos(0.6 * torch.arange(64.0)) * torch.ones(64, 1)
    disc = image((Ellipse(1.0, 28.0, 28.0),), 64, 4)[0, 0].float()
    task = Tomography(64, angles=180)

    lost, kept = ((y * disc)[None, None] for y in (stripes, stripes.T))

    assert inner(task.inputs(lost), lost) < 0.1 * inner(lost, lost)
    assert inner(task.inputs(kept), kept) > 0.9 * inner(kept, kept)


def test_devices_and_dtypes_follow_the_input() -> None:
    y = image(phantom(64, 2), 64)

    x = SMALL.A(y)

    assert x.dtype == SMALL.fbp(x).dtype == torch.float64
    assert error(SMALL.A(y.float()), x) < 1e-5


def test_there_is_no_noise_unless_asked_for() -> None:
    y = image(phantom(64, 2), 64).float()

    assert torch.equal(SMALL.measure(y), SMALL.A(y))
    assert torch.equal(SMALL.inputs(y), SMALL.A_dagger(SMALL.A(y)))


@pytest.mark.parametrize("electronic", [0.0, 40.0])
def test_low_dose_noise_has_the_variance_of_counted_photons(electronic: float) -> None:
    integrals = torch.full((400, 400), 2.0, dtype=torch.float64)
    counts = 1e5 * math.exp(-2.0)

    x = low_dose(integrals, 1e5, seeded(), electronic=electronic)

    assert float(x.mean()) == pytest.approx(2.0, abs=1e-3)
    assert float(x.var()) == pytest.approx(1 / counts + (electronic / counts) ** 2, rel=0.02)


def test_rays_without_photons_are_cut_and_air_may_be_negative() -> None:
    assert float(low_dose(torch.tensor(100.0), 4096.0)) == pytest.approx(math.log(4096 / 0.1))
    assert float(low_dose(torch.zeros(100), 4096.0, seeded()).min()) < 0


def test_low_dose_is_determined_by_its_generator() -> None:
    task, y = Tomography(64, angles=64, photons=1e4, electronic=5.0), image(phantom(64, 2), 64).float()

    assert torch.equal(task.measure(y, seeded(1)), task.measure(y, seeded(1)))
    assert not torch.equal(task.measure(y, seeded(1)), task.measure(y, seeded(2)))


def test_noise_in_the_image_is_what_physics_says() -> None:
    """In the centre of a disc, var = pi^2 / (12 views bin^2) exp(p) / photons, less what interpolation smooths."""
    radius = 10.0  # centimetres of water
    task = Tomography(128, angles=256, wedge=0.0, photons=1e5)
    pixel = task.field / task.size
    water = hounsfield.to_unit(torch.tensor(0.0))
    y = water * image((Ellipse(1.0, radius / pixel, radius / pixel),), 128, 4).float().expand(8, 1, 128, 128)

    noise = hounsfield.from_unit(task.inputs(y, seeded())) - hounsfield.from_unit(task.fbp(task.A(y)))

    integral = hounsfield.WATER * 2 * radius
    deviation = math.sqrt(math.pi**2 / (12 * 256 * pixel**2) * math.exp(integral) / 1e5) / hounsfield.WATER * 1000
    assert 0.6 * deviation < float(noise[:, :, 60:68, 60:68].std()) < deviation


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 0},
        {"size": 32.0},
        {"angles": 0},
        {"detectors": 0},
        {"wedge": -1.0},
        {"wedge": 180.0},
        {"wedge": math.nan},
        {"wedge_center": math.inf},
        {"angles": 4, "wedge": 170.0},
        {"photons": 0.0},
        {"electronic": -1.0},
        {"electronic": 1.0},
        {"field": 0.0},
        {"attenuation": math.inf},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Tomography(**{"size": 32, **settings})


def test_wrong_shapes_and_dtypes_are_refused() -> None:
    task = Tomography(32, angles=12)

    with pytest.raises(ValueError, match=r"images must have shape \(batch, 1, 32, 32\), got \(32, 32\)"):
        task.A(torch.rand(32, 32))
    with pytest.raises(ValueError, match=r"got \(1, 1, 32, 33\)"):
        task.A(torch.rand(1, 1, 32, 33))
    with pytest.raises(ValueError, match=r"line integrals must have shape \(batch, 1, 10, 46\)"):
        task.fbp(torch.rand(1, 1, 12, 46))
    with pytest.raises(ValueError, match="at least one"):
        task.A(torch.rand(0, 1, 32, 32))
    with pytest.raises(TypeError, match=r"float32 or float64, got torch\.float16"):
        task.A(torch.rand(1, 1, 32, 32).half())
