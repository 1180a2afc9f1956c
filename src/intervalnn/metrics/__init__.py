"""Metrics: functions of a prediction and a target that return one number per sample, and what is made of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intervalnn.calibration.guarantee import MarkovCurve, markov_curve
from intervalnn.metrics.correlation import RankCorrelation, pearson, pwcc, spearman
from intervalnn.metrics.density import crps, nll
from intervalnn.metrics.direction import DirectionCurve, Directions, direction_accuracy, direction_curve
from intervalnn.metrics.errors import mae, mse, psnr, ssim
from intervalnn.metrics.intervals import coverage, mean_width, median_width, pinball, winkler
from intervalnn.metrics.localisation import auroc, average_precision
from intervalnn.metrics.markov import MarkovBound
from intervalnn.metrics.paper import paper_coverage, paper_pwcc
from intervalnn.metrics.reliability import (
    CalibrationCurve,
    CalibrationLevels,
    MissedPlaces,
    SizeStratifiedCoverage,
    WidthStrata,
    calibration_curve,
    miscoverage_map,
    size_stratified_coverage,
)
from intervalnn.metrics.sketches import WidthQuantile
from intervalnn.metrics.sparsification import Sparsification, SparsificationCurve, ause, sparsification_curve
from intervalnn.metrics.summary import Mean, mean_defined, wilson
from intervalnn.metrics.tally import Tally

if TYPE_CHECKING:
    from intervalnn.metrics.classes import Pooled as Pooled
    from intervalnn.metrics.classes import SampleMean as SampleMean

__all__ = [
    "CalibrationCurve",
    "CalibrationLevels",
    "DirectionCurve",
    "Directions",
    "MarkovBound",
    "MarkovCurve",
    "Mean",
    "MissedPlaces",
    "RankCorrelation",
    "SizeStratifiedCoverage",
    "Sparsification",
    "SparsificationCurve",
    "Tally",
    "WidthQuantile",
    "WidthStrata",
    "auroc",
    "ause",
    "average_precision",
    "calibration_curve",
    "coverage",
    "crps",
    "direction_accuracy",
    "direction_curve",
    "mae",
    "markov_curve",
    "mean_defined",
    "mean_width",
    "median_width",
    "miscoverage_map",
    "mse",
    "nll",
    "paper_coverage",
    "paper_pwcc",
    "pearson",
    "pinball",
    "psnr",
    "pwcc",
    "size_stratified_coverage",
    "sparsification_curve",
    "spearman",
    "ssim",
    "wilson",
    "winkler",
]

_STREAMING = ("Pooled", "SampleMean")


def __getattr__(name: str) -> Any:
    """Return a class that needs torchmetrics, which is imported no sooner: it takes seconds, and may be absent."""
    if name not in _STREAMING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from intervalnn.metrics import classes

    return getattr(classes, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_STREAMING])
