"""Interval neural networks: bounds, uncertainty and direction for any trained PyTorch network."""

from intervalnn import rules
from intervalnn.interval import Interval
from intervalnn.network import IntervalNetwork
from intervalnn.prediction import Prediction
from intervalnn.table import MissingRuleError, apply, rule

__all__ = ["Interval", "IntervalNetwork", "MissingRuleError", "Prediction", "apply", "rule", "rules"]
