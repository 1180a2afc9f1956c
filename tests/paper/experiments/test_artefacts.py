from __future__ import annotations

import torch
from torch import nn

from intervalnn.paper.experiments import artefacts
from intervalnn.prediction import Prediction
from intervalnn.tasks import Denoising, Phantoms, Tomography


class Oracle:
    """Its score is the change of the input."""

    def __init__(self, clean: torch.Tensor) -> None:
        self.clean = clean

    def predict(self, x: torch.Tensor) -> Prediction:
        score = (x - self.clean).abs()
        return Prediction(x, score, score, score)


def _some() -> torch.Tensor:
    return Phantoms(32, patients=2, slices=2).data()[0]


def test_a_perturbation_paints_a_square_where_the_mask_is() -> None:
    y = _some()
    made = artefacts.adversarial(nn.Identity(), y, y, steps=200, batch=2)

    assert made.mask.flatten(1).sum(1).tolist() == [16] * 4
    assert made.about["painted"] > 0.8 and made.about["changed elsewhere"] < 0.01
    assert torch.equal(made.clean, y)


def test_an_inserted_shape_is_measured_with_the_image() -> None:
    y = _some()
    made = artefacts.inserted(Denoising(0.1), y, batch=3, seed=5)

    difference = made.x - made.clean
    assert made.mask.flatten(1).any(1).all()
    assert torch.allclose(difference[made.mask], torch.full((), artefacts.STRENGTH), atol=1e-5)
    assert difference[~made.mask].abs().max() < 1e-6  # the noise is the same
    assert artefacts.inserted(Tomography(32, angles=32), y, batch=2).x.shape == y.shape


def test_a_score_that_knows_finds_it_and_one_that_does_not_is_chance() -> None:
    y = _some()
    made = artefacts.inserted(Denoising(0.0), y, batch=4)

    found = artefacts.localised(Oracle(made.clean), made, batch=4)

    assert found["auroc"] == [1.0] * 4 and found["average_precision"] == [1.0] * 4
    assert found["auroc, clean"] == [0.5] * 4
