"""Tensors: slices of any size on one scale."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from intervalnn.data import Volume, slices
from intervalnn.data.readers.volume import Unit


def volume(images: np.ndarray, unit: Unit = "hu") -> Volume:
    return Volume(images.astype(np.float32), "someone", "a", "array", unit, np.arange(len(images)))


def test_sizes_that_divide_are_means_of_blocks_taken_before_clipping() -> None:
    hu = np.random.default_rng(0).uniform(-1024, 3000, (3, 8, 8)).astype(np.float32)

    found = slices([volume(hu), volume(hu[:1])], 4)

    means = hu.reshape(3, 4, 2, 4, 2).mean((2, 4))
    expected = torch.from_numpy(np.clip((means + 1000) / 2000, 0, 1))[:, None]
    assert found.shape == (4, 1, 4, 4) and found.dtype == torch.float32
    torch.testing.assert_close(found, torch.cat([expected, expected[:1]]))


def test_the_same_size_is_left_alone() -> None:
    hu = np.random.default_rng(0).uniform(-1000, 1000, (2, 5, 5)).astype(np.float32)

    assert torch.equal(slices([volume(hu)], 5)[:, 0], torch.from_numpy((hu + 1000) / 2000))


@pytest.mark.parametrize("size", [5, 20])
def test_other_sizes_keep_a_ramp(size: int) -> None:
    ramp = np.broadcast_to(np.linspace(-500, 500, 12), (1, 12, 12))

    found = slices([volume(ramp)], size)[0, 0]

    inside = found[:, size // 4 : -size // 4] * 2000 - 1000
    centres = (torch.arange(size) + 0.5) * 12 / size - 0.5
    torch.testing.assert_close(inside[0], (centres / 11 * 1000 - 500)[size // 4 : -size // 4], atol=0.5, rtol=0)
    torch.testing.assert_close(found, found[:1].expand_as(found))


def test_what_is_not_square_is_centred_on_air() -> None:
    found = slices([volume(np.zeros((1, 2, 6)))], 6)[0, 0]

    assert torch.equal(found, torch.tensor([0, 0, 0.5, 0.5, 0, 0])[:, None].expand(6, 6))


def test_values_without_a_window_stay() -> None:
    found = slices([volume(np.array([[[0.25, 1.5], [-0.5, 1]]]), "unit")], 2)

    assert found[0, 0].tolist() == [[0.25, 1], [0, 1]]


def test_nothing_to_read_is_refused() -> None:
    with pytest.raises(ValueError, match="its report says why"):
        slices([], 4)
    with pytest.raises(ValueError, match="at least 1"):
        slices([volume(np.zeros((1, 2, 2)))], 0)
