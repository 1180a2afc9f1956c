"""Interval neural networks: bounds, uncertainty and direction for any trained PyTorch network."""

from intervalnn import losses, models, rules, tasks
from intervalnn.interval import Interval
from intervalnn.network import IntervalNetwork
from intervalnn.prediction import Prediction
from intervalnn.table import MissingRuleError, apply, rule
from intervalnn.training import fit
from intervalnn.version import __version__

__all__ = [
    "Interval",
    "IntervalNetwork",
    "MissingRuleError",
    "Prediction",
    "__version__",
    "apply",
    "fit",
    "losses",
    "models",
    "rule",
    "rules",
    "tasks",
]
