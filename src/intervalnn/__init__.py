"""Interval neural networks: bounds, uncertainty and direction for any trained PyTorch network."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from intervalnn import data, methods, metrics, rules, tasks, view
    from intervalnn.calibration import Calibration, calibrate, guarantee
    from intervalnn.data import tiling, volumes
    from intervalnn.evaluation import Results, evaluate
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
    from intervalnn.network import IntervalNetwork, Scout
    from intervalnn.paper import bayes, models
    from intervalnn.prediction import Method, Prediction
    from intervalnn.saving import load
    from intervalnn.saving.exporting import export
    from intervalnn.table import MissingRuleError, apply, rule
    from intervalnn.training import fit, losses

__all__ = [
    "Calibration",
    "ConstantWidth",
    "Ensemble",
    "ErrorPredictor",
    "Interval",
    "IntervalLossHeads",
    "IntervalNetwork",
    "MCDropout",
    "Method",
    "MissingRuleError",
    "Prediction",
    "ProbOut",
    "QuantileHeads",
    "Results",
    "Scout",
    "__version__",
    "apply",
    "bayes",
    "calibrate",
    "data",
    "evaluate",
    "export",
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
    "tiling",
    "view",
    "volumes",
]

# Where each name lies that is no package of this one.
_HOMES = {
    "calibration": ("Calibration", "calibrate", "guarantee"),
    "data": ("tiling", "volumes"),
    "evaluation": ("Results", "evaluate"),
    "interval": ("Interval",),
    "methods": (
        "ConstantWidth",
        "Ensemble",
        "ErrorPredictor",
        "IntervalLossHeads",
        "MCDropout",
        "ProbOut",
        "QuantileHeads",
    ),
    "network": ("IntervalNetwork", "Scout"),
    "paper": ("bayes", "models"),
    "prediction": ("Method", "Prediction"),
    "saving": ("load",),
    "saving.exporting": ("export",),
    "table": ("MissingRuleError", "apply", "rule"),
    "training": ("fit", "losses"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name, imported no sooner: torch alone takes seconds, and ``inn --help`` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("intervalnn.rules")  # which fills the table that all else looks things up in
    home = import_module(f"intervalnn.{_HOME.get(name, name)}")
    if name in _HOME and not hasattr(home, name):  # a module of that room
        import_module(f"{home.__name__}.{name}")
    found = globals()[name] = getattr(home, name) if name in _HOME else home
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
