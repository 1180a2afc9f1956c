import pytest
import torch

from intervalnn.tasks import MRI, Deconvolution, Denoising, ImageTask, Phantoms, SuperResolution, Tomography, datasets

TASKS: list[ImageTask] = [
    Tomography(32, angles=24, photons=1e5),
    Denoising(0.1),
    SuperResolution(2, 0.02),
    MRI(32, noise=0.01),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_every_task_makes_datasets_of_inputs_and_targets(task: ImageTask) -> None:
    train, test = torch.rand(5, 1, 32, 32), torch.rand(3, 1, 32, 32)

    made = datasets(task, train, test, batch_size=2)

    assert isinstance(task, ImageTask)
    for dataset, images in zip(made, (train, test), strict=True):
        given, target = dataset.tensors
        assert given.shape == images.shape and given.dtype == images.dtype and not given.requires_grad
        assert torch.equal(target, images)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_the_seed_determines_the_noise_and_each_set_has_its_own(task: ImageTask) -> None:
    y = torch.rand(4, 1, 32, 32)

    (first, second), (again, _), (other,) = (
        [dataset.tensors[0] for dataset in made]
        for made in (datasets(task, y, y), datasets(task, y, y[:2]), datasets(task, y, seed=1))
    )

    assert torch.equal(first, again)
    assert not torch.equal(first, second) and not torch.equal(first, other)


def test_signals_are_no_images() -> None:
    assert not isinstance(Deconvolution(), ImageTask)
    with pytest.raises(ValueError, match="images must have shape"):
        datasets(Denoising(0.1), torch.rand(3, 1, 32))


def test_the_batch_size_is_checked() -> None:
    with pytest.raises(ValueError, match="batch_size must be a whole number from 1"):
        datasets(Denoising(0.1), torch.rand(1, 1, 8, 8), batch_size=0)


def test_a_missing_wedge_leaves_a_network_something_to_do() -> None:
    y, _ = Phantoms(size=64, patients=2, slices=2).data()

    ((given, target),) = (dataset.tensors for dataset in datasets(Tomography(64, angles=128), y))

    full = Tomography(64, angles=128, wedge=0.0).inputs(y)
    assert float((given - target).square().mean()) > 3 * float((full - target).square().mean())
