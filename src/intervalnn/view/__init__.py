"""View: predictions with their bounds, score and direction in the browser, on this machine or as one file."""

from intervalnn.view.npz import load_npz, save_npz
from intervalnn.view.page import export_html
from intervalnn.view.server import serving, view

__all__ = ["export_html", "load_npz", "save_npz", "serving", "view"]
