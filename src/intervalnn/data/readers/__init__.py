"""Readers for the files that users have: DICOM, NIfTI, HDF5, arrays and images."""
