"""Products of values of which more than one may be an interval: linear layers, convolutions, matrix products."""

from intervalnn.rules.products import bilinear, trilinear

__all__ = ["bilinear", "trilinear"]
