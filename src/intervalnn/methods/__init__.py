"""The baselines: other methods that predict with bounds, behind the same ``predict`` as the interval network."""

from intervalnn.methods.bound_heads import IntervalLossHeads, QuantileHeads
from intervalnn.methods.constant_width import ConstantWidth
from intervalnn.methods.ensemble import Ensemble
from intervalnn.methods.error_predictor import ErrorPredictor
from intervalnn.methods.mc_dropout import MCDropout
from intervalnn.methods.prob_out import ProbOut

__all__ = [
    "ConstantWidth",
    "Ensemble",
    "ErrorPredictor",
    "IntervalLossHeads",
    "MCDropout",
    "ProbOut",
    "QuantileHeads",
]
