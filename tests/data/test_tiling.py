"""Tiling: tile by tile the same comes out as from the whole, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import intervalnn as inn
from intervalnn.data.tiling import Halo, predict_tiled
from intervalnn.prediction import Prediction


class Plain:
    """A method whose bounds come from a network too, without the time that a capture takes."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model.eval()
        self.shapes: list[tuple[int, ...]] = []

    def predict(self, *args: Any) -> Prediction:
        (x,) = args
        self.shapes.append(tuple(x.shape))
        with torch.no_grad():
            point = self.model(x)
        return Prediction(point, F.relu(point), F.relu(-point), point.abs())


class Pyramid(nn.Module):
    """Pools, looks around and doubles the size again, level below level, beside a skip."""

    def __init__(self, levels: int, mode: str = "nearest", *, ends: bool = False) -> None:
        super().__init__()
        self.around = nn.Conv2d(2, 2, 3, padding=1)
        self.below = Pyramid(levels - 1, mode, ends=ends) if levels > 1 else nn.Identity()
        self.options: dict[str, Any] = {"mode": mode} | ({"align_corners": True} if ends else {})

    def forward(self, x: Tensor) -> Tensor:
        coarse = self.below(F.max_pool2d(torch.tanh(self.around(x)), 2))
        result: Tensor = x + 2 * F.interpolate(coarse, scale_factor=2, **self.options)
        return result


class Wrapped(nn.Module):
    """One channel to two, something on these, and one channel again."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.inside, self.body, self.outside = nn.Conv2d(1, 2, 1), body, nn.Conv2d(2, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.outside(self.body(self.inside(x)))
        return result


class Cropped(nn.Module):
    """A strided layer and back for any size: what is too much at the end is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.up(F.relu(self.down(x)))[..., : x.shape[-2], : x.shape[-1]]
        return result


def dilated() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv1d(1, 4, 1)]
    for dilation in (1, 4, 16):
        layers += [nn.Conv1d(4, 4, 3, dilation=dilation, padding=dilation), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv1d(4, 1, 1))


def strided() -> nn.Module:
    down = [nn.Conv1d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv1d(4, 4, 5, stride=4, padding=2), nn.ReLU()]
    up = [nn.ConvTranspose1d(4, 4, 4, stride=4), nn.ReLU(), nn.ConvTranspose1d(4, 1, 4, stride=2, padding=1)]
    return nn.Sequential(*down, *up)


def thirds() -> nn.Module:
    return nn.Sequential(nn.Conv1d(1, 4, 5, stride=3, padding=2), nn.ReLU(), nn.ConvTranspose1d(4, 1, 3, stride=3))


def cubes() -> nn.Module:
    down = [nn.Conv3d(1, 2, 3, padding=1), nn.BatchNorm3d(2), nn.ReLU(), nn.MaxPool3d(2)]
    return nn.Sequential(*down, nn.Conv3d(2, 2, 3, padding=1), nn.ReLU(), nn.ConvTranspose3d(2, 1, 2, stride=2))


def assert_same(found: Prediction, expected: Prediction) -> None:
    for name in ("point", "below", "above", "score"):
        rounding = 1e-5 * float(expected[name].abs().max())
        torch.testing.assert_close(found[name], expected[name], rtol=0.0, atol=rounding)


CASES: dict[str, tuple[Any, tuple[int, ...], Any]] = {
    "pointwise": (lambda: nn.Conv2d(1, 3, 1), (2, 1, 50, 41), 7),
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(1, 4, 5, padding=2), nn.Conv2d(4, 2, 3, padding=1)),
                     (2, 1, 70, 61), 20),
    "to one side": (lambda: nn.Sequential(nn.ZeroPad1d((6, 0)), nn.Conv1d(1, 1, 7)), (1, 1, 200), 40),
    "dilated": (dilated, (3, 1, 500), 100),
    "strided": (strided, (2, 1, 400), 120),
    "strided, by threes": (thirds, (1, 1, 600), 170),
    "U-shaped": (lambda: Wrapped(Pyramid(3)), (1, 1, 160, 96), 80),
    "U-shaped, bilinear": (lambda: Wrapped(Pyramid(2, "bilinear")), (1, 1, 160, 100), (80, 100)),
    "U-shaped, deep": (lambda: Wrapped(Pyramid(5)), (1, 1, 512, 32), (288, 32)),
    "any size": (Cropped, (1, 1, 151, 73), (70, 64)),
    "in 3D": (cubes, (1, 1, 100, 48, 18), (56, 48, 18)),
}  # fmt: skip


@pytest.mark.rotating
@pytest.mark.parametrize("name", CASES)
def test_tiles_give_what_the_whole_gives(name: str) -> None:
    torch.manual_seed(0)
    make, shape, tile = CASES[name]
    method, x = Plain(make()), torch.randn(shape)

    found = predict_tiled(method, x, tile=tile, progress=False)

    tiles = [shape[2:] for shape in method.shapes if shape[0] == 1]  # the others are probes
    assert len(tiles) > len(x)
    most = (tile,) * (len(shape) - 2) if isinstance(tile, int) else tile
    assert all(seen <= largest for size in tiles for seen, largest in zip(size, most, strict=True))
    assert_same(found, method.predict(x))


@pytest.mark.rotating
@pytest.mark.parametrize("layers", ["all", 2])
def test_an_interval_network_is_tiled_with_its_calibration(layers: Any) -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(Wrapped(Pyramid(2)).eval(), layers=layers)
    x = torch.randn(3, 1, 128, 32)
    net(x)
    for name in net.names:
        net.set_gaps(name, below=0.01, above=0.02)
    pairs = [(x[:, :, :32], net.predict(x[:, :, :32]).point + 0.1 * torch.randn(3, 1, 32, 32))]
    inn.calibrate(net, pairs, coverage=0.5)

    found = predict_tiled(net, x, tile=(64, 32), batch_size=2, progress=False)

    whole = net.predict(x)
    assert float(whole.width.min()) > 0
    assert_same(found, whole)


@pytest.mark.slow
def test_the_network_of_the_paper_is_tiled() -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(inn.models.UNet(4, dropout=0.0).eval(), layers="all")
    x = torch.rand(1, 1, 512, 64)
    net(x)
    for name in net.names:
        net.set_gaps(name, below=1e-3, above=2e-3)

    found = predict_tiled(net, x, tile=(304, 64), progress=False)

    assert Halo.measure(net, x, 0) == Halo(96, 112, 16)
    assert_same(found, net.predict(x))


# --- the size of tiles ---


def test_tiles_are_as_large_as_the_memory_allows() -> None:
    torch.manual_seed(0)
    method, x = Plain(nn.Conv2d(1, 1, 3, padding=1)), torch.randn(1, 1, 300, 200)

    for memory in (2**30, 400_000, 100_000):  # a position takes 16 bytes
        method.shapes.clear()
        found = predict_tiled(method, x, memory=memory, progress=False)

        assert_same(found, method.predict(x))
        tiles = [shape for shape in method.shapes if shape[0] == 1 and shape[2:] != (32, 32)][:-1]
        assert all(16 * rows * columns <= memory for _, _, rows, columns in tiles)
        assert {columns for *_, columns in tiles} == {200}  # slabs, of which the halo is least
        assert len(tiles) == {2**30: 1, 400_000: 3, 100_000: 11}[memory]


def test_an_axis_that_the_network_looks_along_is_not_cut() -> None:
    class Rows(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x - x.mean(-1, keepdim=True)

    method, x = Plain(Rows()), torch.randn(1, 1, 100, 300)

    found = predict_tiled(method, x, memory=100_000, progress=False)

    assert_same(found, method.predict(x))
    assert {shape[3] for shape in method.shapes if shape[0] == 1} == {32, 300}


def test_memory_that_no_tile_fits_into_is_refused() -> None:
    method = Plain(nn.Conv1d(1, 1, 101, padding=50))

    with pytest.raises(ValueError, match="no tile is small enough"):
        predict_tiled(method, torch.randn(1, 1, 2000), memory=100, progress=False)


def test_what_fits_is_predicted_at_once_by_any_network() -> None:
    method, x = Plain(nn.InstanceNorm1d(1)), torch.randn(1, 1, 500)

    assert_same(predict_tiled(method, x, progress=False), method.predict(x))
    with pytest.raises(ValueError, match="or at the whole image"):
        predict_tiled(method, x, memory=1000, progress=False)


# --- measuring ---


def test_a_path_that_is_closed_for_the_probe_is_found() -> None:
    first = nn.Conv1d(1, 1, 9, padding=4)
    nn.init.constant_(first.bias, -100.0)  # type: ignore[arg-type]
    method = Plain(nn.Sequential(first, nn.ReLU()))

    assert Halo.measure(method, torch.zeros(1, 1, 1000), 0) == Halo(4, 4, 1)


def test_a_path_that_swallows_nan_is_found() -> None:
    class Masked(nn.Module):
        """Shows its input near whatever exceeds a limit, beyond which no number of a probe would lie."""

        def forward(self, x: Tensor) -> Tensor:
            return x * F.max_pool1d((x > 2).float(), 21, 1, 10)

    x = torch.rand(1, 1, 1000)
    x[0, 0, ::97] = 3.0

    method = Plain(Masked())

    tiled = predict_tiled(method, x, tile=100, progress=False)

    assert torch.equal(tiled.point, method.predict(x).point) and tiled.point.count_nonzero() > 200


def test_a_stride_is_found_where_its_path_hardly_counts() -> None:
    class Faint(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1e-9 * F.interpolate(F.max_pool1d(x, 8), scale_factor=8)

    assert Halo.measure(Plain(Faint()), torch.zeros(1, 1, 1000), 0).stride == 16


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x.mT, x.mT, x.mT).mT


class Fourier(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.irfft(torch.fft.rfft(x)[..., :8], n=x.shape[-1])


class Squeezed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(F.adaptive_avg_pool2d(x, 16), size=x.shape[2:])


class Placed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.linspace(0, 1, x.shape[-1])


class Sized(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x.shape[-1]


class Padded(nn.Module):
    """Pools as if there were zeros on both sides, as many as make the size a multiple of 8."""

    def forward(self, x: Tensor) -> Tensor:
        more = -x.shape[-1] % 8
        left = more // 2
        pooled = F.max_pool2d(F.pad(x, (left, more - left)), (1, 8))
        return F.interpolate(pooled, scale_factor=(1, 8))[..., left : left + x.shape[-1]]


EVERYWHERE, ELSEWHERE = "or at the whole image", "wherever it is cut"


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.InstanceNorm2d(1), EVERYWHERE),
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.GroupNorm(2, 4)), EVERYWHERE),
        (Attention(), EVERYWHERE),
        (Fourier(), EVERYWHERE),
        (nn.Conv2d(1, 1, (1, 5), padding=(0, 2), padding_mode="circular"), EVERYWHERE),
        (nn.Conv2d(1, 1, (1, 401), padding=(0, 200)), EVERYWHERE),
        (Squeezed(), ELSEWHERE),
        (Placed(), ELSEWHERE),
        (Sized(), ELSEWHERE),
        (Padded(), ELSEWHERE),
        (Wrapped(Pyramid(2, "bilinear", ends=True)), ELSEWHERE),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_network_that_tiles_cannot_serve_is_refused(model: nn.Module, message: str) -> None:
    torch.manual_seed(0)

    with pytest.raises(ValueError, match=message):
        predict_tiled(Plain(model), torch.randn(1, 1, 32, 196), tile=(32, 160), progress=False)


def test_a_method_that_draws_is_refused() -> None:
    method = inn.MCDropout(nn.Sequential(nn.Conv1d(1, 4, 1), nn.Dropout(), nn.Conv1d(4, 1, 1)).eval(), point="mean")

    with pytest.raises(ValueError, match="the method is random"):
        predict_tiled(method, torch.randn(1, 1, 400), tile=100, progress=False)


def test_a_halo_that_is_given_is_taken() -> None:
    torch.manual_seed(0)
    method, x = Plain(nn.Conv1d(1, 1, 9, padding=4)), torch.randn(1, 1, 100)

    enough = predict_tiled(method, x, tile=30, halo=Halo(4, 4), progress=False)
    too_small = predict_tiled(method, x, tile=30, halo=Halo(4, 3), progress=False)

    whole = method.predict(x)
    assert_same(enough, whole)
    spoiled = (too_small.point - whole.point).abs()[0, 0] > 1e-4
    assert spoiled.nonzero().flatten().tolist() == [
        22,
        45,
        68,
        91,
    ]  # the last that is kept of each tile, where it is cut


# --- errors ---


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((4, 100), {}, r"\(batch, channels, \*signal\)"),
        ((0, 1, 100), {}, r"got \(0, 1, 100\)"),
        ((1, 1, 100), {"batch_size": 0}, "batch_size must be at least 1"),
        ((1, 1, 100), {"tile": (10, 10)}, "one for all 1 axes"),
        ((1, 1, 100), {"halo": [Halo(1, 1)] * 2}, "one for all 1 axes"),
        ((1, 1, 100), {"tile": 8}, "at least 9 positions, for cuts spoil 8 and lie at multiples of 1, got 8"),
    ],
)
def test_what_cannot_be_asked_is_refused(shape: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict_tiled(Plain(nn.Conv1d(1, 1, 9, padding=4)), torch.zeros(shape), progress=False, **options)


def test_halos_lie_at_multiples_of_the_stride_and_are_not_negative() -> None:
    assert Halo(5, 9, 8) == Halo(8, 16, 8)
    for wrong in ((-1, 0, 1), (0, -1, 1), (0, 0, 0)):
        with pytest.raises(ValueError, match="must not be negative"):
            Halo(*wrong)


def test_a_prediction_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must have the size of x"):
        predict_tiled(Plain(nn.MaxPool1d(2)), torch.zeros(1, 1, 400), tile=200, progress=False)


def test_progress_is_shown_if_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (False, True):
        predict_tiled(Plain(nn.Identity()), torch.zeros(1, 1, 400), tile=200, progress=progress)
        assert ("predicting" in capsys.readouterr().out) == progress
