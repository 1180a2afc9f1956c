"""The networks of the paper, as plain modules."""

from intervalnn.paper.models.deconv_net import DeconvNet
from intervalnn.paper.models.unet import UNet

__all__ = ["DeconvNet", "UNet"]
