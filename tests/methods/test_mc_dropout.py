"""MC dropout: dropout alone is on, whatever its kind, and the deviation is that of plain passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from noisy import flags, image_model, images, raw
from torch import Tensor, nn
from torch.nn import functional as F

from intervalnn.methods import MCDropout, mc_dropout


def mlp(*dropout: nn.Module) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), *dropout, nn.Linear(16, 2)).eval()


def plain_passes(model: nn.Module, x: Tensor, samples: int) -> Tensor:
    """The plainest way: one pass after the other, with dropout modules in training mode."""
    for module in model.modules():
        if isinstance(module, nn.Dropout | nn.Dropout2d):
            module.train()
    with torch.no_grad():
        passes = torch.stack([model(x) for _ in range(samples)])
    model.eval()
    return passes


# --- what it computes ---


def test_one_pass_after_the_other_is_a_plain_loop_bit_for_bit_up_to_rounding() -> None:
    model, x = mlp(nn.Dropout(0.4)), torch.randn(5, 3, generator=torch.Generator().manual_seed(1))

    found = MCDropout(model, samples=10, batched=False, seed=3).predict(x)

    with torch.random.fork_rng():
        torch.manual_seed(3)
        passes = plain_passes(model, x, 10)
    assert torch.allclose(found.deviation, passes.std(0), rtol=1e-5)
    assert torch.equal(found.point, model(x).detach())
    assert torch.allclose(found.upper - found.point, 1.6448536 * passes.std(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"batched": False}, {"chunk": 7}, {"chunk": 1}, {"chunk": 10**9}])
def test_batched_or_not_the_moments_are_those_of_dropout(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Dropout(0.3), nn.Linear(6, 2)).eval().double()
    x = torch.randn(4, 6, dtype=torch.float64)
    scaled = x[:, None] * model[1].weight.detach()  # (batch, out, in): what each input adds to each output
    expected = (scaled.square().sum(-1) * 0.3 / 0.7).sqrt()  # the variance of a scaled Bernoulli mask

    found = MCDropout(model, samples=4000, point="mean", **options).predict(x)

    assert found.point.shape == (4, 2)
    assert torch.allclose(found.deviation, expected, rtol=0.06)
    assert torch.allclose(found.point, model(x).detach(), atol=4 * float(expected.max()) / 4000**0.5)


def test_the_mean_of_the_passes_is_the_point_if_asked_for() -> None:
    model, x = mlp(nn.Dropout(0.4)), torch.ones(2, 3)

    found = MCDropout(model, samples=3, point="mean", batched=False).predict(x)

    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert torch.allclose(found.point, plain_passes(model, x, 3).mean(0), atol=1e-6)


def test_the_seed_alone_decides() -> None:
    model, x = image_model(), images(3)[0]
    torch.manual_seed(1)
    first = MCDropout(model, samples=4, seed=5).predict(x).deviation
    torch.manual_seed(2)

    assert torch.equal(MCDropout(model, samples=4, seed=5).predict(x).deviation, first)
    assert not torch.equal(MCDropout(model, samples=4, seed=6).predict(x).deviation, first)


def test_samples_and_batches_have_masks_of_their_own() -> None:
    model = mlp(nn.Dropout(0.5))

    whole = MCDropout(model, samples=6).predict(torch.ones(4, 3)).deviation
    parts = MCDropout(model, samples=6).predict(torch.ones(4, 3), batch_size=1).deviation

    assert len(whole.unique(dim=0)) == len(parts.unique(dim=0)) == 4


@pytest.mark.parametrize(("chunk", "sizes"), [(None, [12]), (6, [6, 6]), (4, [3, 3, 3, 3]), (1, [3] * 4)])
def test_a_chunk_bounds_what_the_model_sees_at_once(chunk: int | None, sizes: list[int]) -> None:
    seen: list[int] = []
    model = mlp(nn.Dropout(0.5))
    model.register_forward_hook(lambda _, args, __: seen.append(len(args[0])))

    MCDropout(model, samples=4, chunk=chunk, point="mean").predict(torch.ones(3, 3))

    assert seen == sizes


def test_large_inputs_are_not_repeated_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mc_dropout, "AT_ONCE", 20)
    seen: list[int] = []
    model = mlp(nn.Dropout(0.5))
    model.register_forward_hook(lambda _, args, __: seen.append(len(args[0])))

    MCDropout(model, samples=5, point="mean").predict(torch.ones(3, 3))

    assert seen == [6, 6, 3]


def test_small_deviations_around_large_means_keep_their_digits() -> None:
    class Shifted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.dropout(x, 0.5, self.training) + 1e4

    found = MCDropout(Shifted().eval(), samples=500, chunk=10).predict(torch.ones(5, 1))

    assert torch.allclose(found.deviation, torch.ones(5, 1), atol=0.01)


# --- what is on, and what is not ---


@pytest.mark.parametrize("kind", [nn.Dropout, nn.Dropout1d, nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_every_kind_of_dropout_is_on(kind: Any) -> None:
    model = nn.Sequential(kind(0.5)).eval()

    assert float(MCDropout(model, samples=30).predict(torch.ones(2, 4, 5)).deviation.min()) > 1e-2


@pytest.mark.parametrize("dims", [2, 3])
def test_dropout_of_whole_channels_is_on(dims: int) -> None:
    model = nn.Sequential(getattr(nn, f"Dropout{dims}d")(0.5)).eval()

    deviation = MCDropout(model, samples=30).predict(torch.ones(2, 3, *[2] * dims)).deviation

    assert float(deviation.min()) > 1e-2
    assert torch.equal(deviation.amax((-1, -2)), deviation.amin((-1, -2)))


class Functional(nn.Module):
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.last, self.p = nn.Linear(3, 1), p

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(F.dropout(x, self.p, self.training))
        return result


class Own(nn.Dropout):
    """A dropout that does not call torch's."""

    def forward(self, x: Tensor) -> Tensor:
        return x * (torch.rand_like(x) < 0.5) if self.training else x


@pytest.mark.parametrize(
    "model",
    [
        Functional(),
        nn.Sequential(Own()),
        nn.TransformerEncoderLayer(3, 1, 8, batch_first=True),
        nn.TransformerEncoder(nn.TransformerEncoderLayer(3, 1, 8, batch_first=True), 2, enable_nested_tensor=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_dropout_in_code_and_in_attention_is_on(model: nn.Module) -> None:
    deviation = MCDropout(model.eval(), samples=10).predict(torch.randn(2, 4, 3)).deviation

    assert float(deviation.max()) > 1e-2 and not model.training


def test_dropout_of_attention_weights_and_between_recurrent_layers_is_on() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(4, 1, dropout=0.5, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.inner(x, x, x)[0]
            return result

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.LSTM(4, 4, num_layers=2, dropout=0.5, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.inner(x)[0]
            return result

    for model in (Attention(), Recurrent()):
        assert float(MCDropout(model.eval(), samples=10).predict(torch.randn(2, 5, 4)).deviation.max()) > 1e-2


def test_a_dropout_used_twice_is_on_twice() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)
            self.again = self.drop

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.again(self.drop(x))
            return result

    found = MCDropout(Twice().eval(), samples=3000).predict(torch.ones(1, 1)).deviation

    assert float(found) == pytest.approx(3**0.5, rel=0.1)  # 4 with probability 1/4


def test_batch_norm_stays_as_it_is() -> None:
    model, x = image_model(), 100 * images(4)[0]
    model.train()
    before, modes = raw(model), flags(model)
    seen: list[bool] = []
    model[1].register_forward_hook(lambda layer, *_: seen.append(layer.training))

    MCDropout(model, samples=4).predict(x)

    assert raw(model) == before and flags(model) == modes
    assert seen and not any(seen)


def test_the_copy_shares_every_tensor_with_the_model() -> None:
    model = image_model()
    seen: list[Tensor] = []
    model[0].register_forward_hook(lambda layer, *_: seen.append(layer.weight))

    MCDropout(model, samples=2).predict(images(1)[0])

    assert all(weight is model[0].weight for weight in seen) and len(seen) == 2


def test_weights_that_change_later_are_seen() -> None:
    model, x = mlp(nn.Dropout(0.5)), torch.ones(2, 3)
    method = MCDropout(model, samples=4)
    before = method.predict(x).deviation

    with torch.no_grad():
        model[3].weight.mul_(2)

    assert torch.allclose(method.predict(x).deviation, 2 * before, rtol=1e-5)


# --- what is refused ---


@pytest.mark.parametrize("samples", [1, 0, -3])
def test_fewer_than_two_passes_are_refused(samples: int) -> None:
    with pytest.raises(ValueError, match=f"samples must be at least 2, .* got {samples}"):
        MCDropout(mlp(nn.Dropout()), samples=samples)


@pytest.mark.parametrize("model", [mlp(), mlp(nn.Dropout(0.0)), Functional(0.0)], ids=["none", "p=0", "function, p=0"])
def test_a_model_without_dropout_is_refused(model: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"has no dropout that could be on: no layer such as nn\.Dropout"):
        MCDropout(model).predict(torch.ones(1, 3))


def test_options_without_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="point must be 'model' or 'mean', got 'median'"):
        MCDropout(mlp(), point="median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
        MCDropout(mlp(), chunk=0)


def test_tensors_without_a_batch_go_one_pass_after_the_other() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, factor: Tensor) -> Tensor:
            return F.dropout(x, 0.5, self.training) * factor

    x, factor = torch.ones(4, 2), torch.tensor(3.0)

    with pytest.raises(ValueError, match=r"got \[4, 0\]; MCDropout\(model, batched=False\) does one pass"):
        MCDropout(Scaled()).predict(x, factor)
    assert MCDropout(Scaled(), batched=False).predict(x, factor).point.shape == (4, 2)
