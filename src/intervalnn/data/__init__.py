"""Readers for the CT data that users have: DICOM, NIfTI, HDF5, arrays and images."""

from intervalnn.data.reading import Volumes, read
from intervalnn.data.report import Report, Skipped
from intervalnn.data.splits import split_by_subject
from intervalnn.data.tensors import slices
from intervalnn.data.units import to_unit
from intervalnn.data.volume import Geometry, Volume

__all__ = ["Geometry", "Report", "Skipped", "Volume", "Volumes", "read", "slices", "split_by_subject", "to_unit"]
