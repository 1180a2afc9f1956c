"""The networks of the paper, as plain modules."""

from intervalnn.models.deconv_net import DeconvNet
from intervalnn.models.unet import UNet

__all__ = ["DeconvNet", "UNet"]
