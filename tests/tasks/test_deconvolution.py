import pytest
import torch

from intervalnn.tasks import Deconvolution
from intervalnn.tasks.deconvolution import SPACING, cosine_transform


def test_the_cosine_transform_is_its_own_inverse_and_transpose() -> None:
    transform = cosine_transform(64)

    assert torch.allclose(transform @ transform, torch.eye(64, dtype=torch.float64), atol=1e-13)
    assert torch.equal(transform, transform.T)


def test_the_blur_has_the_spectrum_of_the_authors_generator() -> None:
    eigenvalues = torch.linalg.eigvalsh(Deconvolution(size=64).operator).flip(0)

    assert torch.allclose(eigenvalues, (1 - torch.arange(64, dtype=torch.float64) / 64) ** 8, atol=1e-12)


def test_signals_are_piecewise_constant_with_jumps_apart_on_a_circle() -> None:
    y = Deconvolution(samples=50).signals(50, torch.Generator().manual_seed(0))[:, 0]

    for signal in y:
        jumps = (signal != signal.roll(1)).nonzero().flatten()
        distances = torch.diff(jumps, append=jumps[:1] + 512)
        assert distances.min() >= SPACING
    assert 35 < (y != y.roll(1, -1)).sum(-1).float().mean() < 45
    assert float(y.std()) == pytest.approx(1 / 3, abs=0.02)


def test_measurements_are_the_blurred_targets() -> None:
    task = Deconvolution(size=64, samples=10)
    x, y = task.data()

    assert torch.allclose(x, task.A(y.double()).float(), atol=1e-6)


def test_noise_is_added_to_measurements_and_targets_each_its_own() -> None:
    (x, y), (noisy_x, noisy_y) = Deconvolution(samples=100).data(), Deconvolution(samples=100, noise=0.1).data()
    first, second = (noisy_x - x).flatten(), (noisy_y - y).flatten()

    assert float(first.std()) == pytest.approx(0.1, rel=0.03)
    assert float(second.std()) == pytest.approx(0.1, rel=0.03)
    assert abs(float(torch.corrcoef(torch.stack((first, second)))[0, 1])) < 0.02


def test_splits_are_eight_to_one_to_one_and_the_same_each_time() -> None:
    first, again = Deconvolution(samples=100, size=32), Deconvolution(samples=100, size=32)

    assert [len(x) for x, _ in first.tensors()] == [80, 10, 10]
    assert all(torch.equal(a[0], b[0]) for a, b in zip(first.tensors(), again.tensors(), strict=True))
    assert [len(loader.dataset) for loader in first.splits(16)] == [80, 10, 10]


def test_the_papers_wording_is_a_variant() -> None:
    x, _ = Deconvolution(size=64, samples=10, decay="exponential").data()

    assert not torch.equal(x, Deconvolution(size=64, samples=10).data()[0])
