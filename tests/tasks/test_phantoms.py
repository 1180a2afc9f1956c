from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from intervalnn.tasks import Phantoms, hounsfield


def distance(a: Tensor, b: Tensor) -> float:
    return float((a - b).square().mean().sqrt())


def test_images_are_on_the_network_scale_with_their_patients() -> None:
    images, subjects = Phantoms(size=64, patients=3, slices=4).data()

    assert images.shape == (12, 1, 64, 64) and images.dtype == torch.float32
    assert subjects.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert float(images.min()) == 0 and 0.6 < float(images.max()) <= 1


def test_the_seed_determines_every_pixel() -> None:
    (first, _), (again, _) = (Phantoms(size=32, patients=2, slices=2, seed=3).data() for _ in range(2))

    assert torch.equal(first, again)


def test_the_global_generator_is_neither_read_nor_moved() -> None:
    torch.manual_seed(0)
    state = torch.get_rng_state()

    first = Phantoms(size=16, patients=1, slices=1).data()[0]

    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert torch.equal(Phantoms(size=16, patients=1, slices=1).data()[0], first)


def test_two_seeds_have_no_patient_in_common() -> None:
    parts = [Phantoms(size=32, patients=8, slices=1, seed=seed).data() for seed in range(3)]
    images, subjects = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    assert len(subjects.unique()) == 24
    apart = torch.cdist(images.flatten(1), images.flatten(1)) + 1e9 * torch.eye(24)
    assert float(apart.min()) / 32 > 0.02


def test_more_patients_leave_the_first_as_they_are() -> None:
    few, many = (Phantoms(size=32, patients=patients, slices=2).data()[0] for patients in (1, 3))

    assert torch.equal(few, many[:2])


def test_neighbouring_slices_are_alike_and_not_the_same() -> None:
    images, _ = Phantoms(size=64, patients=4, slices=8).data()
    patients = images.view(4, 8, 64, 64)

    for slices in patients:
        assert 0.003 < distance(slices[0], slices[1]) < distance(slices[0], slices[7])
    near = distance(patients[:, :-1], patients[:, 1:])
    assert near < 0.3 * distance(patients[:-1], patients[1:])


def test_a_patient_is_the_same_at_every_size() -> None:
    small, large = (Phantoms(size=size, patients=3, slices=2).data()[0] for size in (64, 256))

    assert distance(F.avg_pool2d(large, 4), small) < 0.02


def test_bodies_are_made_of_what_bodies_are_made_of() -> None:
    """Air around, and inside lungs, fat, soft tissue and bone in the shares that scans of trunks have."""
    images, _ = Phantoms(patients=30, slices=1).data()
    hu = hounsfield.from_unit(images)

    def share(low: float, high: float) -> float:
        return float(((hu > low) & (hu < high)).float().mean())

    assert 0.4 < share(-1001, -950) < 0.75
    assert 0.02 < share(-930, -700) < 0.2
    assert 0.08 < share(-150, -50) < 0.3
    assert 0.1 < share(0, 200) < 0.35
    assert 0.005 < share(200, 1000) < 0.06
    assert float(hu[:, :, 0].max()) == -1000  # nothing is cut off above


@pytest.mark.parametrize(
    "settings", [{"size": 0}, {"patients": 0}, {"slices": 0}, {"seed": -1}, {"patients": 2**20 + 1}, {"spacing": 0.0}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Phantoms(**settings)
