"""Evaluation: methods compared on the same samples, as records, tables and a page."""

from intervalnn.evaluation.evaluation import evaluate
from intervalnn.evaluation.results import Results

__all__ = ["Results", "evaluate"]
