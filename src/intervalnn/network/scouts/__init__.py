"""Scouts: gaps with features of their own, from a small network beside the model."""
