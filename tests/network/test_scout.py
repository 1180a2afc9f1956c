"""Scouts: gaps with features of their own, which leave the prediction and every promise as they are."""

from __future__ import annotations

import copy
import io
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn.data.tiling import predict_tiled
from intervalnn.network.scouts.ranges import range_of
from intervalnn.network.scouts.scout import Scout
from intervalnn.network.scouts.scouted import features_of, scouts_of
from intervalnn.table import aten
from intervalnn.training.batches import Batches

SMALL = Scout(width=4, depth=1)


class Squeezed(nn.Module):
    """An image without a dimension for its channel, behind a sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.last(torch.relu(self.first(x))).squeeze(1).sigmoid()
        return made


class Pooled(nn.Module):
    """Images to vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 3, 3, padding=1), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.last(torch.relu(self.first(x)).mean((2, 3)))
        return made


class Nested(nn.Module):
    """A U-Net of one level, to images of its input's size."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU())
        self.deep, self.up = nn.Conv2d(2, 4, 3, padding=1), nn.ConvTranspose2d(4, 2, 2, stride=2)
        self.last = nn.Conv2d(4, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        deep = torch.relu(self.deep(nn.functional.max_pool2d(first, 2)))
        made: Tensor = self.last(torch.cat((first, self.up(deep)), 1))
        return made


class Several(nn.Module):
    """Several inputs, of which one is a vector, and several outputs of other sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.time = nn.Conv2d(1, 3, 3, padding=1), nn.Linear(2, 3)
        self.small, self.large = nn.Conv2d(3, 1, 3, stride=2, padding=1), nn.Conv2d(3, 2, 1)

    def forward(self, x: Tensor, time: Tensor) -> dict[str, Tensor]:
        h = torch.relu(self.image(x) + self.time(time)[:, :, None, None])
        return {"small": self.small(h), "large": self.large(h), "count": torch.ones(len(x), dtype=torch.long)}


def transformer() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), 1)


def volumes() -> nn.Module:
    return nn.Sequential(nn.Conv3d(1, 2, 3, padding=1), nn.ReLU(), nn.Conv3d(2, 1, 1))


def decoder() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 6), nn.Unflatten(1, (2, 3)))


def finer() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 3, padding=1), nn.PixelShuffle(2))


def vectors() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), nn.Flatten(0))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "images": (lambda: Nested(), (torch.rand(3, 1, 16, 16),)),
    "signals": (lambda: inn.models.DeconvNet((3,) * 9), (torch.rand(3, 1, 20),)),
    "volumes": (volumes, (torch.rand(2, 1, 4, 5, 6),)),
    "tokens": (transformer, (torch.rand(2, 5, 4),)),
    "vectors": (vectors, (torch.rand(5, 3),)),
    "pooled": (Pooled, (torch.rand(3, 2, 6, 6),)),
    "squeezed": (Squeezed, (torch.rand(3, 2, 6, 6),)),
    "decoder": (decoder, (torch.rand(3, 2),)),
    "finer": (finer, (torch.rand(2, 1, 6, 5),)),
    "several": (Several, (torch.rand(3, 1, 8, 8), torch.rand(3, 2))),
}


@pytest.fixture(params=MODELS)
def made(request: pytest.FixtureRequest) -> tuple[nn.Module, tuple[Tensor, ...]]:
    build, inputs = MODELS[request.param]
    torch.manual_seed(0)
    return build().eval(), inputs


def leaves(bounds: Any) -> list[inn.Interval]:
    found = bounds.values() if isinstance(bounds, dict) else [bounds]
    return [each for each in found if isinstance(each, inn.Interval)]


def opened(net: inn.IntervalNetwork, *inputs: Tensor, below: float = 0.1, above: float = 0.3) -> inn.IntervalNetwork:
    net(*inputs)
    for name in net._opening:
        for gap, value in zip(net._gaps_of(name).sides, (below, above), strict=False):
            gap.data.fill_(value)
    return net


def bits(bounds: Any) -> list[Tensor]:
    return [part.detach() for each in leaves(bounds) for part in (each.point, each.below, each.above)]


def assert_same(a: Any, b: Any) -> None:
    for one, other in zip(bits(a), bits(b), strict=True):
        assert torch.equal(one, other)


def test_the_prediction_is_the_models_own_bit_for_bit(made: tuple[nn.Module, tuple[Tensor, ...]]) -> None:
    model, inputs = made
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), *inputs)

    bounds = net(*inputs)

    own = model(*inputs)
    points = [own[name] for name in ("small", "large")] if isinstance(own, dict) else [own]
    plain = inn.IntervalNetwork(model, layers=1)(*inputs)
    for mine, point, without in zip(leaves(bounds), points, leaves(plain), strict=True):
        assert torch.equal(mine.point, without.point)
        assert torch.allclose(mine.point, point, rtol=1e-5, atol=1e-6)
        assert bool((mine.width > 0).any())


@pytest.mark.rotating
def test_bounds_contain_every_choice_of_weights_of_the_widened_model(
    made: tuple[nn.Module, tuple[Tensor, ...]],
) -> None:
    model, inputs = made
    net = opened(inn.IntervalNetwork(model, layers=0, scout=SMALL), *inputs)
    bounds = leaves(net(*inputs))

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        found = {}
        for number, scout in scouts_of(net).items():  # gaps that are a part of w, on one side of zero
            w = scout.gaps.around_zero()
            drawn = torch.rand(w.shape, generator=generator) * w.width - w.below
            drawn = torch.where(torch.rand(w.shape, generator=generator) < 0.5, drawn.sign() * w.above, drawn)
            found[number] = drawn.clamp(-w.below, w.above)
        for (number, scout), own in zip(scouts_of(net).items(), bounds, strict=True):
            kept = [gap.detach().clone() for gap in scout.gaps.sides]
            for gap, side in zip(scout.gaps.sides, (-found[number], found[number]), strict=True):
                gap.data.copy_(side.clamp(min=0.0))
            moved = leaves(net(*inputs))[list(scouts_of(net)).index(number)]
            for gap, before in zip(scout.gaps.sides, kept, strict=True):
                gap.data.copy_(before)
            value = moved.point + moved.above - moved.below
            assert bool(((value >= own.lower - 1e-5) & (value <= own.upper + 1e-5)).all())


@pytest.mark.rotating
def test_closed_gaps_of_a_scout_give_the_bounds_without_it(made: tuple[nn.Module, tuple[Tensor, ...]]) -> None:
    model, inputs = made
    plain = opened(inn.IntervalNetwork(model, layers=1), *inputs)
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), *inputs)
    for name in set(net._opening) - set(net.names):
        for gap in net._gaps_of(name).sides:
            gap.data.zero_()

    assert_same(net(*inputs), plain(*inputs))


@pytest.mark.rotating
def test_every_weight_of_a_scout_gets_a_gradient(made: tuple[nn.Module, tuple[Tensor, ...]]) -> None:
    model, inputs = made
    net = opened(inn.IntervalNetwork(model, layers=1, scout=Scout(width=16, depth=1)), *inputs)

    sum(each.width.square().sum() for each in leaves(net(*inputs))).backward()

    assert features_of(net)
    for parameter in net.parameters():
        assert parameter.grad is not None and bool(parameter.grad.isfinite().all())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("last", "low", "high"),
    [
        (nn.Sigmoid(), 0.0, 1.0),
        (nn.Softmax(-1), 0.0, 1.0),
        (nn.Hardtanh(-0.2, 0.3), -0.2, 0.3),
        (nn.ReLU(), 0.0, torch.inf),
        (nn.Tanh(), -1.0, 1.0),
        (nn.ReLU6(), 0.0, 6.0),
        (nn.LogSoftmax(-1), -torch.inf, 0.0),
        (nn.Sequential(nn.Sigmoid(), nn.Unflatten(-1, (2, 1))), 0.0, 1.0),
    ],
    ids=str,
)
def test_bounds_stay_in_the_range_of_the_models_output(last: nn.Module, low: float, high: float) -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), last).eval(), torch.randn(6, 3)
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), x, below=50.0, above=50.0)

    bounds = net(x).detach()

    rounding = torch.finfo(x.dtype).eps
    assert float(bounds.lower.min()) >= low - rounding and float(bounds.upper.max()) <= high + rounding
    assert low == -torch.inf or float(bounds.lower.min()) <= low + rounding
    assert high == torch.inf or float(bounds.upper.max()) >= high - rounding


@pytest.mark.rotating
def test_a_file_gives_the_same_bounds_again(made: tuple[nn.Module, tuple[Tensor, ...]], tmp_path: Path) -> None:
    model, inputs = made
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), *inputs)
    net.balance(*inputs)
    net.save(tmp_path / "net.safetensors")

    again = inn.load(tmp_path / "net.safetensors", model)

    assert again._opening == net._opening
    assert_same(again(*inputs), net(*inputs))


def test_copies_and_pickles_give_the_same_bounds() -> None:
    model, x = Pooled().eval(), torch.rand(3, 2, 6, 6)
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), x)

    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert_same(other(x), net(x))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    fresh = inn.IntervalNetwork(model, layers=1, scout=SMALL)
    fresh(x)
    fresh.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    assert_same(fresh(x), net(x))


def test_sizes_may_change_from_call_to_call() -> None:
    model = Nested().eval()
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), torch.rand(2, 1, 16, 16))

    for shape in ((1, 1, 16, 16), (3, 1, 32, 16), (2, 1, 48, 48)):
        x = torch.rand(shape)
        assert torch.equal(net(x).point, model(x))


def test_taps_can_be_chosen_and_one_that_is_not_there_is_refused() -> None:
    model, x = Nested().eval(), torch.rand(1, 1, 16, 16)
    net = inn.IntervalNetwork(model, layers=1, scout=Scout(width=4, depth=0, taps=("first.0", "last")))
    net(x)

    assert scouts_of(net)[0].taps == ("first.0", "last")
    with pytest.raises(ValueError, match=r"'frist.0'; did you mean 'first.0'"):
        inn.IntervalNetwork(model, layers=1, scout=Scout(taps=("frist.0",)))(x)


@pytest.mark.rotating
@pytest.mark.parametrize("options", [{"width": 0}, {"depth": -1}, {"taps": 0}])
def test_sizes_that_make_no_scout_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} of a scout must"):
        Scout(**options)


def test_a_model_that_nothing_can_be_read_of_goes_without() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale

    net = inn.IntervalNetwork(Scaled().eval(), scout=True)
    with pytest.warns(UserWarning, match="gets no scout"):
        net(torch.rand(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not list(net.scouts)
        net(torch.rand(5, 3))


def test_what_is_trained_is_not_known_before_the_first_call() -> None:
    net = inn.IntervalNetwork(Pooled().eval(), scout=True)

    with pytest.raises(RuntimeError, match=r"call net\(x\) once"):
        list(net.parameters())


def test_the_scout_has_its_share_in_an_explanation() -> None:
    model, x = Pooled().eval(), torch.rand(3, 2, 6, 6)
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), x)

    rows = {row.name: row for row in net.explain(x).rows}

    assert rows["scout 0"].share > 0
    assert sum(row.share for row in rows.values()) == pytest.approx(1.0)


def errors_that_the_input_tells(samples: int) -> tuple[Tensor, Tensor]:
    """Targets that are off by as much as the first input says, on either side."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 4, generator=generator)
    return x, x[:, :1].abs() * torch.randn(samples, 1, generator=generator)


def test_fit_finds_errors_that_the_last_layers_do_not_see(tmp_path: Path) -> None:
    class Blind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 2), nn.Linear(2, 1)

        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = self.last(self.first(x))
            return made

    model = Blind().eval()
    for parameter in model.parameters():
        parameter.data.zero_()  # the last layer sees zeros alone
    x, y = errors_that_the_input_tells(512)
    loader = DataLoader(TensorDataset(x, y), 64, shuffle=True)
    scores = {}
    for name, scout in {"without": None, "with": Scout(width=16, depth=1)}.items():
        net = inn.IntervalNetwork(model, layers=1, scout=scout)
        inn.fit(net, loader, coverage=0.9, epochs=40, progress=False)
        new_x, new_y = errors_that_the_input_tells(2048)
        scores[name] = float(inn.metrics.winkler(net.predict(new_x[512:]), new_y[512:], coverage=0.9).mean())

    assert scores["with"] < 0.8 * scores["without"]


class Stops(list[Any]):
    """Batches for validation, on which a run is stopped in an epoch."""

    left = 10**9

    def __iter__(self) -> Iterator[Any]:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().__iter__()


@pytest.mark.filterwarnings("ignore:the bounds hold")  # what four epochs learn is not asked here
def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    model = Pooled().eval()
    x, y = torch.rand(12, 2, 6, 6), torch.rand(12, 2)
    loader = DataLoader(TensorDataset(x, y), 4, shuffle=True)

    def run(name: str, epochs: int = 10**9) -> list[Tensor]:
        net, validation = inn.IntervalNetwork(model, layers=1, scout=SMALL), Stops([(x, y)])
        validation.left = epochs
        inn.fit(net, loader, epochs=4, validation=validation, checkpoint=tmp_path / name, progress=False)
        return bits(net(x))

    with pytest.raises(KeyboardInterrupt):
        run("stopped", 2)

    assert all(torch.equal(a, b) for a, b in zip(run("whole"), run("stopped"), strict=True))


def test_little_is_kept_where_asked_and_gradients_stay_the_same() -> None:
    model, x = Nested().eval(), torch.rand(2, 1, 16, 16)
    net = opened(inn.IntervalNetwork(model, layers=2, scout=SMALL), x)

    def gradients() -> list[Tensor]:
        return list(torch.autograd.grad(net(x).width.square().sum(), list(net.parameters())))

    plain = gradients()
    with net.recomputing():
        again = gradients()

    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


def test_tiles_are_predicted_as_the_whole() -> None:
    model = nn.Sequential(nn.Conv1d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv1d(3, 1, 3, padding=1)).eval()
    x = torch.rand(1, 1, 400)
    net = opened(inn.IntervalNetwork(model, layers=1, scout=SMALL), x)

    tiled = predict_tiled(net, x, tile=120, progress=False)

    assert torch.allclose(tiled.upper, net.predict(x).upper, atol=1e-6)


# --- the default ---


def test_by_default_the_last_layer_has_intervals_beside_a_scout() -> None:
    net = inn.IntervalNetwork(Nested().eval())
    net(torch.rand(1, 1, 8, 8))

    assert net.names == ["last.weight", "last.bias"]
    assert len(scouts_of(net)) == 1


@pytest.mark.parametrize("layers", [2, "all", ["last"]])
def test_with_layers_given_there_is_a_scout_only_where_asked_for(layers: Any) -> None:
    plain, asked = (
        inn.IntervalNetwork(Nested().eval(), layers),
        inn.IntervalNetwork(Nested().eval(), layers, scout=True),
    )
    for net in (plain, asked):
        net(torch.rand(1, 1, 8, 8))

    assert not scouts_of(plain)
    assert len(scouts_of(asked)) == 1


def test_where_no_scout_fits_the_last_four_layers_have_intervals_and_nobody_is_warned() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*(nn.Linear(2, 2) for _ in range(6)))

        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = self.layers(x).sum()  # one number, which no value fits
            return made

    net = inn.IntervalNetwork(Deep().eval())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(torch.rand(3, 2))

    assert {name.rpartition(".")[0] for name in net.names} == {f"layers.{i}" for i in (2, 3, 4, 5)}


def test_without_weight_layers_all_parameters_have_intervals() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.scale * x

    net = inn.IntervalNetwork(Scaled().eval())
    net(torch.rand(2, 3))

    assert net.names == ["scale"]


def test_the_published_recipe_has_no_scout() -> None:
    model, batches = vectors().eval(), [(torch.rand(4, 3), torch.rand(4))]
    with pytest.raises(ValueError, match=r"published recipe has no scout.*layers='all'"):
        inn.fit(inn.IntervalNetwork(model), batches, recipe="paper", progress=False)

    inn.fit(inn.IntervalNetwork(model, scout=False), batches, recipe="paper", epochs=1, progress=False)


# --- samples that are held out ---


def few(count: int = 60) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(count, 3, generator=generator)
    return DataLoader(TensorDataset(x, x.sum(1) + torch.randn(count, generator=generator)), 16, shuffle=True)


def test_where_a_scout_could_learn_the_targets_by_heart_some_are_held_out() -> None:
    history = inn.fit(inn.IntervalNetwork(vectors().eval()), few(), epochs=30, progress=False)

    assert history.settings["held_out"] == 6
    losses = [epoch.validation for epoch in history.epochs]
    assert history.best == losses.index(min(losses))
    assert all(0 <= epoch.held_out <= 1 for epoch in history.epochs)


def test_what_is_held_out_is_never_trained_on() -> None:
    read: list[int] = []

    class Watched(TensorDataset):
        def __getitem__(self, index: int) -> Any:
            read.append(index)
            return super().__getitem__(index)

    x = torch.rand(40, 3)
    loader = DataLoader(Watched(x, x.sum(1)), 8, shuffle=True)
    batches = Batches(loader, seed=1).parted(10)
    assert batches is not None
    rest, held_out = (set(part.samples.tolist()) for part in batches if part.samples is not None)
    for number in range(3):
        list(batches[0].epoch(number))

    assert set(read) == rest
    assert len(batches[0]) == 5
    assert rest | held_out == set(range(40))
    assert not rest & held_out
    assert len(held_out) == 4


@pytest.mark.parametrize(
    ("net", "options"),
    [
        (lambda: inn.IntervalNetwork(vectors().eval(), layers="all"), {}),  # no scout
        (lambda: inn.IntervalNetwork(vectors().eval()), {"validation": False}),
        (lambda: inn.IntervalNetwork(vectors().eval(), scout=Scout(width=1, depth=0, taps=1)), {}),  # a tiny one
    ],
)
def test_else_nothing_is_held_out(net: Callable[[], inn.IntervalNetwork], options: dict[str, Any]) -> None:
    history = inn.fit(net(), few(), epochs=2, progress=False, **options)

    assert "held_out" not in history.settings
    assert all(math.isnan(epoch.validation) for epoch in history.epochs)


class Breaks(TensorDataset):
    """Samples of which only so many can be read, after which a run is stopped."""

    left = 10**9

    def __getitem__(self, index: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().__getitem__(index)


def test_a_loader_that_drops_a_rest_holds_samples_out_too() -> None:
    x = torch.rand(100, 3)
    loader = DataLoader(TensorDataset(x, x.sum(1)), 64, shuffle=True, drop_last=True)
    history = inn.fit(inn.IntervalNetwork(vectors().eval()), loader, epochs=2, progress=False)

    assert history.settings["held_out"] == 10


def test_a_fit_that_holds_samples_out_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    model, x = vectors().eval(), torch.rand(40, 3)

    def run(name: str, left: int = 10**9) -> list[Tensor]:
        net, samples = inn.IntervalNetwork(model), Breaks(x, x.sum(1))
        samples.left = left
        history = inn.fit(
            net, DataLoader(samples, 8, shuffle=True), epochs=6, checkpoint=tmp_path / name, progress=False
        )
        assert history.settings["held_out"] == 4
        return bits(net(x))

    with pytest.raises(KeyboardInterrupt):
        run("stopped", 180)

    assert all(torch.equal(a, b) for a, b in zip(run("whole"), run("stopped"), strict=True))


# --- a module of one's own ---


def body() -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 5, 3, padding=1), nn.GELU(), nn.Conv2d(5, 7, 1))


def test_a_module_of_ones_own_may_stand_in_for_the_layers_of_a_scout(tmp_path: Path) -> None:
    torch.manual_seed(0)
    own, x = body(), torch.rand(2, 1, 8, 8)
    model = Nested().eval()
    net = inn.IntervalNetwork(model, scout=Scout(width=4, body=own))
    before = copy.deepcopy(own.state_dict())
    inn.fit(net, [(x, model(x) + torch.randn(2, 1, 8, 8))], epochs=3, progress=False)

    bounds, file = net(x), tmp_path / "net.safetensors"
    assert torch.equal(bounds.point, model(x))
    assert scouts_of(net)[0].gaps.shape == (1, 8)  # its seven channels, and the one that is always there
    assert all(torch.equal(value, own.state_dict()[name]) for name, value in before.items())  # a copy was trained
    net.save(file)
    assert_same(inn.load(file, model, body=own)(x), bounds)
    with pytest.raises(ValueError, match=r"net\.safetensors has a scout that was trained with a module of your own"):
        inn.load(file, model)


def test_a_module_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must make \(1, channels, 8, 8\) of \(1, 4, 8, 8\), got \(1, 3, 6, 6\)"):
        inn.IntervalNetwork(Nested().eval(), scout=Scout(width=4, body=nn.Conv2d(4, 3, 3)))(torch.rand(1, 1, 8, 8))
    with pytest.raises(TypeError, match=r"torch\.nn\.Module, got a int"):
        Scout(body=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", [nn.Dropout(), nn.BatchNorm2d(4)])
def test_a_module_that_does_otherwise_in_training_is_refused(part: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"same in training as in use.*'1'.*GroupNorm"):
        Scout(width=4, body=nn.Sequential(nn.Conv2d(4, 4, 1), part))


# --- other sizes than those of the first call ---


def test_sizes_that_matched_in_the_first_call_may_not_in_another() -> None:
    layers = nn.Conv2d(2, 4, 3, 2, 1), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(4, 3, 1)
    net = opened(inn.IntervalNetwork(nn.Sequential(*layers).eval(), layers=1, scout=SMALL), torch.rand(2, 2, 8, 8))

    for size in ((2, 2, 7, 7), (1, 2, 9, 6), (2, 2, 8, 8)):
        x = torch.rand(size)
        bounds = net(x)
        assert torch.equal(bounds.point, net.model(x))
        assert bool((bounds.width > 0).all())


def test_an_output_of_another_size_than_a_scout_was_made_for_is_refused() -> None:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 3)

        def forward(self, x: Tensor, wide: Tensor) -> Tensor:
            return torch.cat([self.layer(x), wide], 1)

    net = inn.IntervalNetwork(Flat().eval(), layers=1, scout=SMALL)
    net(torch.rand(4, 2), torch.rand(4, 2))

    with pytest.raises(ValueError, match=r"made for outputs with 5 channels, and this one has shape \(4, 6\)"):
        net(torch.rand(4, 2), torch.rand(4, 3))


RANGES: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "one minus": (lambda y: 1 - y.sigmoid(), 0, 1),
    "twice, less one": (lambda y: 2 * y.sigmoid() - 1, -1, 1),
    "in half precision": (lambda y: y.sigmoid().half(), 0, 1),
    "stacked": (lambda y: torch.stack([y.sigmoid(), (-y).sigmoid()], 1), 0, 1),
    "a chunk": (lambda y: y.sigmoid().chunk(2, 1)[0], 0, 1),
    "a product": (lambda y: y.sigmoid() * (y + 1).sigmoid(), 0, 1),
    "squared": (lambda y: y.tanh() ** 2, 0, 1),
    "cubed": (lambda y: y.tanh() ** 3, -1, 1),
    "a quotient": (lambda y: y.clamp(0, 2) / 4, 0, 0.5),
    "negative": (lambda y: -y.sigmoid(), -1, 0),
    "either": (lambda y: torch.where(y > 0, y.sigmoid(), torch.zeros_like(y)), 0, 1),
}


@pytest.mark.parametrize("name", RANGES)
def test_bounds_stay_in_the_range_of_what_the_model_ends_in(name: str) -> None:
    end, low, high = RANGES[name]

    class Ending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 6)

        def forward(self, x: Tensor) -> Tensor:
            return end(self.layer(x))

    torch.manual_seed(0)
    x = 4 * torch.randn(5, 4)
    bounds = opened(inn.IntervalNetwork(Ending().eval(), layers=1, scout=SMALL), x, below=3.0, above=3.0)(x)

    assert bool((bounds.lower >= low - 1e-6).all())
    assert bool((bounds.upper <= high + 1e-6).all())


def test_the_range_of_a_power_is_endless_where_its_ends_are_too_large() -> None:
    graph = fx.Graph()
    cut = graph.call_function(aten.clamp.default, (graph.placeholder("x"), -1e300, 1e300))

    assert range_of(graph.call_function(aten.pow.Tensor_Scalar, (cut, 2))) == (0.0, math.inf)
    assert range_of(graph.call_function(aten.pow.Tensor_Scalar, (cut, 3))) == (-math.inf, math.inf)
