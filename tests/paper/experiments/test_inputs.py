from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from intervalnn.paper.experiments import inputs as module
from intervalnn.paper.experiments.inputs import inputs
from intervalnn.tasks import Denoising, Tomography


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> Tensor:
    monkeypatch.setattr(module, "PART", 2)
    return torch.rand(5, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def test_what_is_on_disk_is_not_computed_again(images: Tensor, tmp_path: Path) -> None:
    said: list[str] = []
    first = inputs(Denoising(0.1), images, tmp_path, say=said.append)
    count = len(said)

    assert torch.equal(inputs(Denoising(0.1), images, tmp_path, say=said.append), first)
    assert count == 3 and len(said) == 3


def test_other_settings_noise_or_images_are_other_inputs(images: Tensor, tmp_path: Path) -> None:
    first = inputs(Denoising(0.1), images, tmp_path)

    assert not torch.equal(inputs(Denoising(0.2), images, tmp_path), first)
    assert not torch.equal(inputs(Denoising(0.1), images, tmp_path, seed=1), first)
    assert not torch.equal(inputs(Denoising(0.1), 1 - images, tmp_path), first)
    assert not torch.equal(inputs(Tomography(16, angles=16), images, tmp_path), first)


def test_a_stopped_run_goes_on_and_a_damaged_file_is_made_again(images: Tensor, tmp_path: Path) -> None:
    whole = inputs(Denoising(0.1), images, tmp_path / "whole")

    class Stopped(Denoising):
        def inputs(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
            if len(list((tmp_path / "stopped").glob("*.npy"))) == 2:
                raise KeyboardInterrupt
            return super().inputs(y, generator)

        def __repr__(self) -> str:
            return repr(Denoising(0.1))

    with pytest.raises(KeyboardInterrupt):
        inputs(Stopped(0.1), images, tmp_path / "stopped")
    kept = sorted((tmp_path / "stopped").glob("*.npy"))
    kept[0].write_bytes(kept[0].read_bytes()[:100])
    said: list[str] = []

    assert torch.equal(inputs(Denoising(0.1), images, tmp_path / "stopped", say=said.append), whole)
    assert len(said) == 2  # the damaged part and the missing one
    assert all(path.suffix == ".npy" for path in (tmp_path / "stopped").iterdir())
