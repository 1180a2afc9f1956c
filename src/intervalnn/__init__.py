"""Interval neural networks: bounds, uncertainty and direction for any trained PyTorch network."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from intervalnn.version import __version__

if TYPE_CHECKING:
    from intervalnn import bayes, data, guarantee, losses, methods, metrics, models, rules, tasks, tiling, view, volumes
    from intervalnn.allocation import keep_freed_memory
    from intervalnn.calibration import Calibration, calibrate
    from intervalnn.evaluation import evaluate
    from intervalnn.exporting import export
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
    "data",
    "evaluate",
    "export",
    "fit",
    "guarantee",
    "keep_freed_memory",
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

# Which module has each name that is no module itself.
_HOMES = {
    "allocation": ("keep_freed_memory",),
    "calibration": ("Calibration", "calibrate"),
    "evaluation": ("evaluate",),
    "exporting": ("export",),
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
    "network": ("IntervalNetwork",),
    "prediction": ("Prediction",),
    "results": ("Results",),
    "saving": ("load",),
    "table": ("MissingRuleError", "apply", "rule"),
    "training": ("fit",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name, imported no sooner: torch alone takes seconds, and ``inn --help`` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("intervalnn.rules")  # which fills the table that all else looks things up in
    module = import_module(f"intervalnn.{_HOME.get(name, name)}")
    found = globals()[name] = getattr(module, name) if name in _HOME else module
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
