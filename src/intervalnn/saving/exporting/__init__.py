"""Exporting: an interval network as a file that other runtimes run."""

from intervalnn.saving.exporting.file import export

__all__ = ["export"]
