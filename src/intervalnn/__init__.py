"""Interval neural networks: bounds, uncertainty and direction for any trained PyTorch network."""

from intervalnn import bayes, guarantee, losses, methods, metrics, models, rules, tasks
from intervalnn.calibration import Calibration, calibrate
from intervalnn.evaluation import evaluate
from intervalnn.interval import Interval
from intervalnn.methods import (
    ConstantWidth,
    Ensemble,
    ErrorPredictor,
    IntervalLossHeads,
    MCDropout,
    ProbOut,
    QuantileHeads,
)
from intervalnn.network import IntervalNetwork
from intervalnn.prediction import Prediction
from intervalnn.results import Results
from intervalnn.saving import load
from intervalnn.table import MissingRuleError, apply, rule
from intervalnn.training import fit
from intervalnn.version import __version__

__all__ = [
    "Calibration",
    "ConstantWidth",
    "Ensemble",
    "ErrorPredictor",
    "Interval",
    "IntervalLossHeads",
    "IntervalNetwork",
    "MCDropout",
    "MissingRuleError",
    "Prediction",
    "ProbOut",
    "QuantileHeads",
    "Results",
    "__version__",
    "apply",
    "bayes",
    "calibrate",
    "evaluate",
    "fit",
    "guarantee",
    "load",
    "losses",
    "methods",
    "metrics",
    "models",
    "rule",
    "rules",
    "tasks",
]
