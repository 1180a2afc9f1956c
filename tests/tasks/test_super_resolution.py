from __future__ import annotations

import pytest
import torch

from intervalnn.tasks import SuperResolution


def test_the_adjoint_is_one_and_flat_images_come_back() -> None:
    task, generator = SuperResolution(2, 0.0), torch.Generator().manual_seed(0)
    y = torch.rand(2, 1, 8, 6, generator=generator, dtype=torch.float64)
    x = torch.rand(2, 1, 4, 3, generator=generator, dtype=torch.float64)

    assert torch.allclose((task.A(y) * x).sum(), (y * task.A_adjoint(x)).sum(), rtol=1e-12)
    assert torch.allclose(task.inputs(torch.full_like(y, 0.3)), torch.full_like(y, 0.3), rtol=1e-12)


def test_sizes_that_blocks_do_not_fill_are_refused() -> None:
    with pytest.raises(ValueError, match=r"multiples of 2, got \(7, 8\)"):
        SuperResolution(2).A(torch.rand(1, 1, 7, 8))
