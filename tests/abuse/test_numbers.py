"""Numbers and devices that nobody wants: each gives a correct result, or an error that says what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn import losses

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32
X = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def small_model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1)).eval()


def opened(model: nn.Module, gap: float = 0.01, **options: Any) -> inn.IntervalNetwork:
    net = inn.IntervalNetwork(model, **({"layers": "all"} | options))
    for name in net.names:
        net.set_gaps(name, below=gap, above=2 * gap)
    return net


def small_net() -> inn.IntervalNetwork:
    return opened(small_model())


def fit(method: nn.Module, batches: Any, **options: Any) -> Any:
    return inn.fit(method, batches, epochs=1, progress=False, **options)


def with_nan(x: Tensor, sample: int = 2, value: float = math.nan) -> Tensor:
    x = x.clone()
    x[sample, 0, 3, 3] = value
    return x


# --- devices; meta stands for a second one where there is no GPU ---


@pytest.mark.rotating
@pytest.mark.parametrize("met_before", [False, True])
def test_an_input_on_another_device_is_refused_by_both_names(met_before: bool) -> None:
    net = small_net()
    if met_before:
        net.predict(X)

    with pytest.raises(
        ValueError, match=r"the model is on cpu, and an input on meta; move it there with x\.to\('cpu'\)"
    ):
        net.predict(X.to("meta"))
    with pytest.raises(ValueError, match="the model is on meta, and an input on cpu"):
        small_net().to("meta").predict(X)


def test_a_model_moved_without_its_gaps_is_refused() -> None:
    net = small_net()
    net.predict(X)
    net.model.to("meta")

    for x in (X, X.to("meta")):  # the first of them gave numbers out of nowhere
        with pytest.raises(ValueError, match=r"the model is on meta, and the gaps .* on cpu.* call net\.to\('meta'\)"):
            net.predict(x)


def test_a_network_that_is_moved_takes_its_model_along() -> None:
    prediction = small_net().to("meta").predict(X.to("meta"))

    assert prediction.upper.device.type == "meta" and prediction.upper.shape == X.shape


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return self.layer(x) * scale  # type: ignore[no-any-return]


def test_inputs_on_two_devices_are_refused_by_both_names() -> None:
    net = opened(Scaled().eval())

    with pytest.raises(ValueError, match="on cpu, and an input on meta"):
        net.predict(torch.ones(2, 3), torch.ones(2, 1, device="meta"))


@pytest.mark.rotating
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("use", [fit, inn.calibrate, lambda net, data: inn.evaluate({"net": net}, data)])
def test_a_loader_on_a_device_that_cannot_be_left_is_refused(use: Callable[..., Any], place: int) -> None:
    batch = [X, X]
    batch[place] = X.to("meta")

    with pytest.raises(ValueError, match="a batch on meta cannot be moved to cpu, where the model is"):
        use(small_net(), [tuple(batch)] * 30)


def test_a_model_without_numbers_is_not_trained() -> None:
    with pytest.raises(ValueError, match="the model is on the meta device, where there are no numbers"):
        fit(inn.IntervalNetwork(small_model(), layers="all").to("meta"), [(X, X)])


@pytest.mark.gpu
def test_a_loader_on_another_gpu_or_the_cpu_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # which has a wider margin for rounding
    on_gpu, on_cpu = small_net().to("cuda"), small_net()

    for net, data in ((on_gpu, [(X, X)] * 30), (on_cpu, [(X.cuda(), X.cuda())] * 30)):
        fit(net, data)
        inn.calibrate(net, data)
        inn.evaluate({"net": net}, data)

    for ours, theirs in zip(on_gpu.parameters(), on_cpu.parameters(), strict=True):
        assert torch.allclose(ours.cpu(), theirs, rtol=1e-2, atol=1e-4)


@pytest.mark.gpu
def test_an_input_on_the_cpu_is_refused_on_a_gpu() -> None:
    with pytest.raises(ValueError, match="the model is on cuda:0, and an input on cpu"):
        small_net().to("cuda").predict(X)


@pytest.mark.gpu
def test_a_checkpoint_and_a_file_from_a_gpu_go_on_on_the_cpu(tmp_path: Path) -> None:
    net = small_net().to("cuda")
    inn.fit(net, [(X, X)], epochs=2, progress=False, checkpoint=tmp_path / "fit.pt")
    net.save(tmp_path / "net.safetensors")

    again = small_net()
    history = inn.fit(again, [(X, X)], epochs=2, progress=False, checkpoint=tmp_path / "fit.pt")

    assert len(history.epochs) == 2
    assert all(torch.equal(a, b.cpu()) for a, b in zip(again.parameters(), net.parameters(), strict=True))
    loaded = inn.load(tmp_path / "net.safetensors", small_model())
    assert loaded.predict(X).point.device.type == "cpu"


# --- too large for the dtype ---


class Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return x + y * y / (1 + y.exp())  # type: ignore[no-any-return]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x[:, None] + x[:, :, None], x[:, None], x[:, None], need_weights=False)[0]  # type: ignore[no-any-return]


def mlp(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), *between, nn.Linear(8, 3))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: mlp(nn.ReLU()),
    "gelu": lambda: mlp(nn.GELU()),
    "sigmoid": lambda: mlp(nn.Sigmoid()),
    "softmax": lambda: mlp(nn.Softmax(-1)),
    "norm": lambda: mlp(nn.LayerNorm(8), nn.SiLU()),
    "product": Product,
    "attention": Attention,
}
# What is near the largest number of its dtype; of the weights of two layers in a row, it is their product.
LARGE = ("weights", "inputs", "gaps")


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("dtype", "gap_dtype"),
    [
        (HALF, None),  # whose gaps are in float32
        (SINGLE, None),
        (SINGLE, BRAIN),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((HALF, BRAIN), (BRAIN, None), (BRAIN, SINGLE))),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", MODELS)
def test_what_overflows_has_infinite_bounds_around_the_point(name: str, dtype: Any, gap_dtype: Any) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MODELS[name]().eval().to(dtype)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    net, infinite = inn.IntervalNetwork(model, layers="all", gap_dtype=gap_dtype), 0

    most = torch.finfo(dtype).max
    most_of_gaps = torch.finfo(gap_dtype or (SINGLE if dtype == HALF else dtype)).max
    for large in LARGE:
        scale = 0.9 * most**0.5 if large == "weights" else 1.0
        model.load_state_dict({key: (value.double() * scale).to(dtype) for key, value in weights.items()})
        gap = 0.9 * most_of_gaps if large == "gaps" else 0.01
        for parameter in net.names:
            net.set_gaps(parameter, below=gap / 2, above=gap)
        scale = 0.9 * most if large == "inputs" else 1.0
        prediction = net.predict((scale * x.double()).clamp(-most, most).to(dtype))

        known = prediction.point.isfinite()  # where the model itself overflows, nobody knows
        for part in (prediction.lower, prediction.upper, prediction.score, prediction.direction):
            assert not part[known].isnan().any()
        assert (prediction.lower <= prediction.point)[known].all()
        assert (prediction.point <= prediction.upper)[known].all()
        infinite += int(prediction.score[known].isinf().sum())

    assert infinite or name in ("sigmoid", "softmax")  # which have bounds of their own


def test_weights_that_overflow_are_refused_by_name() -> None:
    model = small_model()
    with torch.no_grad():
        model[2].bias.fill_(1e5)  # type: ignore[index, union-attr, operator]

    with pytest.raises(ValueError, match=r"parameter '2\.bias' has entries that are NaN or infinite"):
        inn.IntervalNetwork(model.half(), layers="all")


def test_infinite_bounds_are_neither_calibrated_nor_measured() -> None:
    net = opened(small_model(), 1e38)
    batches = [(X, X)] * 30

    with pytest.raises(ValueError, match="the gap below must be finite, got NaN or infinity in sample 0 of batch 1"):
        inn.calibrate(net, batches)
    with pytest.raises(ValueError, match="the gap below must be finite"):
        inn.evaluate({"net": net}, batches)


# --- NaN ---


class Broken(nn.Module):
    """Returns NaN for the samples whose mean is above a threshold."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return torch.where(x.mean((1, 2, 3), keepdim=True) > 5, math.nan, y)


@pytest.mark.rotating
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_sample_with_nan_spoils_no_other(value: float) -> None:
    net = small_net()
    clean = net.predict(X)

    spoilt = net.predict(with_nan(X, 2, value))

    others = [0, 1, 3]
    assert torch.equal(spoilt.upper[others], clean.upper[others])
    assert torch.equal(spoilt.lower[others], clean.lower[others])
    assert spoilt.point[2].isnan().any()  # as the model itself says; nothing is made up


@pytest.mark.rotating
@pytest.mark.parametrize(("place", "what"), [(0, "inputs"), (1, "target")])
def test_fit_names_batch_and_sample_of_nan(place: int, what: str) -> None:
    bad = [X, X]
    bad[place] = with_nan(X)

    with pytest.raises(ValueError, match=rf"batch 2 of the loader has NaN or infinity in its {what} \(sample 2\)"):
        fit(small_net(), [(X, X), tuple(bad)])
    with pytest.raises(FloatingPointError, match=rf"batch 20 of the loader .* in its {what} \(sample 2\)"):
        fit(small_net(), [(X, X)] * 19 + [tuple(bad)])
    with pytest.raises(FloatingPointError, match=rf"batch 3 of the validation loader .* in its {what} \(sample 2\)"):
        fit(small_net(), [(X, X)], validation=[(X, X), (X, X), tuple(bad)])


def test_fit_counts_batches_as_the_data_has_them_even_if_they_are_shuffled() -> None:
    x = X.repeat(5, 1, 1, 1)
    data = TensorDataset(with_nan(x, 13), x)

    with pytest.raises(
        FloatingPointError, match=r"batch 4 of the loader has NaN or infinity in its inputs \(sample 1\)"
    ):
        fit(small_model(), DataLoader(data, batch_size=4, shuffle=True), loss=losses.mse)


def test_a_model_that_returns_nan_is_named_with_the_sample() -> None:
    net, x = opened(Broken().eval()), X.clone()
    x[1] += 10

    assert net.predict(x).point[1].isnan().all() and not net.predict(x).upper[0].isnan().any()
    with pytest.raises(
        ValueError, match=r"the model makes NaN or infinity of finite inputs, in batch 2 .* \(sample 1\)"
    ):
        fit(net, [(X, X), (x, X)])
    with pytest.raises(ValueError, match="the point must be finite, got NaN or infinity in sample 1 of batch 2"):
        inn.calibrate(net, [(X, X), (x, X)] * 20)
    with pytest.raises(ValueError, match="the point must be finite") as caught:
        inn.evaluate({"mine": net}, [(X, X), (x, X)])
    assert caught.value.__notes__ == ["This was method 'mine' on batch 2."]


# --- shapes and dtypes ---


@pytest.mark.rotating
@pytest.mark.parametrize("met_before", [False, True])
def test_an_empty_batch_gives_an_empty_prediction(met_before: bool) -> None:
    net = small_net()
    if met_before:
        net.predict(X)

    assert net.predict(X[:0]).upper.shape == (0, 1, 8, 8)
    assert net.predict(X[:0], batch_size=3).upper.shape == (0, 1, 8, 8)


def test_empty_batches_of_a_loader_count_for_nothing() -> None:
    empty, whole = (X[:0], X[:0]), [(X, X)] * 30
    nets = [small_net(), small_net()]

    histories = [fit(net, batches) for net, batches in zip(nets, (whole, [*whole, empty]), strict=True)]
    calibrations = [inn.calibrate(nets[0], batches) for batches in (whole, [empty, *whole])]
    results = [inn.evaluate({"net": nets[0]}, batches).runs[0] for batches in (whole, [*whole, empty])]

    assert histories[0].epochs[0].coverage == pytest.approx(histories[1].epochs[0].coverage, abs=0.05)
    assert calibrations[0].images == calibrations[1].images
    assert results[0].methods["net"].values == results[1].methods["net"].values


@pytest.mark.rotating
@pytest.mark.parametrize("use", [fit, inn.calibrate, lambda net, data: inn.evaluate({"net": net}, data)])
def test_a_loader_of_nothing_but_empty_batches_is_refused(use: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="the loader is empty"):
        use(small_net(), [(X[:0], X[:0])] * 2)


def test_a_single_sample_has_the_point_of_the_model() -> None:
    net = small_net()

    assert torch.equal(net.predict(X[:1]).point, net.model(X[:1]))
    assert torch.allclose(net.predict(X[:1]).upper, net.predict(X).upper[:1], atol=1e-6)


@pytest.mark.rotating
@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(2, 3, 8, 8),
        torch.zeros(2, 1, 0, 8),
        torch.zeros(8),
        torch.zeros(2, 1, 8, 8, dtype=torch.int64),
        torch.zeros(2, 1, 8, 8, dtype=torch.uint8),
        torch.zeros(2, 1, 8, 8, dtype=torch.float64),
    ],
    ids=["channels", "no rows", "rank", "int64", "uint8", "float64"],
)
def test_what_the_model_does_not_take_is_said_to_be_that(x: Tensor) -> None:
    net = small_net()
    net.predict(X)

    with pytest.raises(ValueError, match="the model itself does not take this input") as caught:
        net.predict(x)
    assert f"{x.dtype} of shape {tuple(x.shape)}".replace("torch.", "") in str(caught.value).replace("torch.", "")


def test_arrays_are_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"no tensor among its arguments.* torch\.from_numpy"):
        small_net().predict(X.numpy())


def test_integers_are_taken_where_the_model_takes_them() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)).eval()
    net = opened(model)
    x = torch.tensor([[0, 4], [1, 1]])

    assert torch.equal(net.predict(x).point, model(x))
    assert (net.predict(x).score > 0).all()


def test_gradients_are_asked_for_but_not_kept() -> None:
    net, x = small_net(), X.clone().requires_grad_()

    assert not net.predict(x).upper.requires_grad
    net(x).upper.sum().backward()
    assert x.grad is not None and x.grad.abs().sum() > 0
    assert fit(small_net(), [(x, x)]).epochs


@pytest.mark.rotating
@pytest.mark.parametrize(
    "x",
    [
        X.transpose(2, 3),
        X[:, :, ::2, 1:],
        X[:1].expand(4, 1, 8, 8),
        X.contiguous(memory_format=torch.channels_last),
        X.flip(0)[1:].as_strided((2, 1, 8, 8), (64, 64, 8, 1)),
    ],
    ids=["transposed", "sliced", "expanded", "channels last", "strided"],
)
def test_layout_makes_no_difference(x: Tensor) -> None:
    net = small_net()
    net.predict(X)

    ours, plain = net.predict(x), net.predict(x.clone(memory_format=torch.contiguous_format))

    assert torch.allclose(ours.upper, plain.upper, atol=1e-6) and torch.allclose(ours.lower, plain.lower, atol=1e-6)
    assert torch.equal(ours.point, net.model(x))
