"""Readers for the CT data that users have: DICOM, NIfTI, HDF5, arrays and images."""

from intervalnn.data.readers.reading import Volumes, read
from intervalnn.data.readers.skipped import Report, Skipped
from intervalnn.data.readers.splits import split_by_subject
from intervalnn.data.readers.tensors import slices
from intervalnn.data.readers.units import to_unit
from intervalnn.data.readers.volume import Geometry, Volume

__all__ = ["Geometry", "Report", "Skipped", "Volume", "Volumes", "read", "slices", "split_by_subject", "to_unit"]
