"""Saving: a fitted network as a file, for this library or for another runtime."""

from intervalnn.saving.saving import load, save

__all__ = ["load", "save"]
