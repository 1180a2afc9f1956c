"""Calibration: coverage promised on new data, for any method that predicts bounds."""

from intervalnn.calibration.calibration import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
