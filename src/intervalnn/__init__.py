"""Interval neural networks: bounds, uncertainty and direction for any trained PyTorch network."""

from intervalnn import bayes, guarantee, losses, models, rules, tasks
from intervalnn.calibration import Calibration, calibrate
from intervalnn.interval import Interval
from intervalnn.network import IntervalNetwork
from intervalnn.prediction import Prediction
from intervalnn.saving import load
from intervalnn.table import MissingRuleError, apply, rule
from intervalnn.training import fit
from intervalnn.version import __version__

__all__ = [
    "Calibration",
    "Interval",
    "IntervalNetwork",
    "MissingRuleError",
    "Prediction",
    "__version__",
    "apply",
    "bayes",
    "calibrate",
    "fit",
    "guarantee",
    "load",
    "losses",
    "models",
    "rule",
    "rules",
    "tasks",
]
