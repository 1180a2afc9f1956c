import torch
from torch import nn

from intervalnn.paper.models import DeconvNet, UNet


def test_the_unet_is_the_papers() -> None:
    model = UNet()

    assert sum(p.numel() for p in model.parameters()) == 31_030_593
    assert sum(isinstance(m, nn.Conv2d) for m in model.modules()) == 23
    assert sum(isinstance(m, nn.Dropout) and m.p == 0.7 for m in model.modules()) == 8


def test_its_last_seven_convolutions_are_the_papers_last_twelve_layers() -> None:
    convolutions = [m for m in UNet().modules() if isinstance(m, nn.Conv2d)]

    assert sum(p.numel() for m in convolutions[-7:] for p in m.parameters()) == 717_441


def test_the_unet_keeps_the_size_of_an_image() -> None:
    x = torch.randn(2, 1, 32, 48)

    assert UNet(4).eval()(x).shape == x.shape


def test_the_deconv_net_is_the_papers() -> None:
    model = DeconvNet()
    convolutions = [m for m in model.modules() if isinstance(m, nn.Conv1d)]

    assert [m.out_channels for m in convolutions] == [16, 32, 64, 128, 256, 256, 256, 64, 32, 1]
    assert [m.kernel_size[0] for m in convolutions] == [5] * 9 + [1]
    assert [m.p for m in model.modules() if isinstance(m, nn.Dropout)] == [0.2, 0.5, 0.5]
    assert model.eval()(torch.randn(3, 1, 512)).shape == (3, 1, 512)
