from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from intervalnn import metrics
from intervalnn.prediction import Prediction


def _prediction(score: torch.Tensor) -> Prediction:
    return Prediction(torch.zeros_like(score), score / 2, score / 2, score)


@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_both_agree_with_scikit_learn_with_and_without_ties(levels: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    score = torch.randint(levels, (3, 1, 9, 7), generator=generator).float()
    mask = torch.rand(score.shape, generator=generator) < 0.2

    for metric, wanted in ((metrics.auroc, roc_auc_score), (metrics.average_precision, average_precision_score)):
        found = metric(_prediction(score), mask)
        each = [wanted(m.ravel(), s.ravel()) for m, s in zip(mask.numpy(), score.numpy(), strict=True)]
        np.testing.assert_allclose(found.numpy(), each, rtol=1e-12)


def test_an_empty_mask_is_undefined() -> None:
    prediction, mask = _prediction(torch.rand(1, 5)), torch.zeros(1, 5, dtype=torch.bool)

    assert metrics.auroc(prediction, mask).isnan().all()
    assert metrics.average_precision(prediction, mask).isnan().all()


def test_a_mask_of_another_shape_or_type_is_refused() -> None:
    prediction = _prediction(torch.rand(1, 5))

    for mask in (torch.zeros(1, 4, dtype=torch.bool), torch.zeros(1, 5)):
        with pytest.raises(ValueError, match="must be boolean and of the score's shape"):
            metrics.auroc(prediction, mask)
