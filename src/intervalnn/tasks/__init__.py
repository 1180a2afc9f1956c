"""Inverse problems: measurements ``x = A y + noise`` and the signals ``y`` to recover from them."""

from intervalnn.tasks import hounsfield
from intervalnn.tasks.deconvolution import Deconvolution
from intervalnn.tasks.denoising import Denoising
from intervalnn.tasks.images import ImageTask, datasets
from intervalnn.tasks.mri import MRI
from intervalnn.tasks.phantoms import Phantoms
from intervalnn.tasks.super_resolution import SuperResolution
from intervalnn.tasks.tomography import Tomography, low_dose

__all__ = [
    "MRI",
    "Deconvolution",
    "Denoising",
    "ImageTask",
    "Phantoms",
    "SuperResolution",
    "Tomography",
    "datasets",
    "hounsfield",
    "low_dose",
]
