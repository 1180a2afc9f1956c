"""What the baselines learn, on a task whose noise is known."""

from __future__ import annotations

import copy
import functools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from noisy import MAKERS, TRAINED, correlation, covered, line, line_model, loader, noise, quiet
from torch import Tensor, nn

import intervalnn as inn
from intervalnn import losses
from intervalnn.calibration.guarantee import beta_for_coverage
from intervalnn.methods import ConstantWidth, ErrorPredictor, IntervalLossHeads, MCDropout, ProbOut, QuantileHeads

EPOCHS = 30  # of 16 steps


def fitted(make: Any, coverage: float = 0.9, **options: Any) -> Any:
    return copy.deepcopy(fitted_once(make, coverage, **options))


@functools.cache
def fitted_once(make: Any, coverage: float, **options: Any) -> Any:
    method = make(line_model(), **options)
    quiet(method, loader(*line()), coverage=coverage, epochs=EPOCHS, lr=1e-2)
    return method


# --- on the line ---


def test_prob_out_recovers_the_noise() -> None:
    method = fitted(ProbOut)
    x = torch.linspace(-0.95, 0.95, 200)[:, None]

    found = method.predict(x)

    assert float((found.deviation / noise(x) - 1).abs().mean()) < 0.1
    assert float((found.point - x.sin()).abs().max()) < 0.1
    assert covered(method, *line(8000, seed=3)) == pytest.approx(0.9, abs=0.02)


def test_prob_out_covers_another_share_without_being_trained_again() -> None:
    method = fitted(ProbOut)

    method.coverage = 0.5

    assert covered(method, *line(8000, seed=3)) == pytest.approx(0.5, abs=0.03)


@pytest.mark.rotating
@pytest.mark.parametrize("coverage", [0.9, 0.6])
@pytest.mark.parametrize("heads", ["layer", "copy"])
def test_quantile_heads_cover_what_is_asked(coverage: float, heads: Any) -> None:
    method = fitted(QuantileHeads, coverage, heads=heads)

    found = method.predict(line(8000, seed=3)[0])

    assert covered(method, *line(8000, seed=3)) == pytest.approx(coverage, abs=0.03)
    assert float(found.below.min()) >= 0 and float(found.above.min()) >= 0
    assert correlation(found.width, noise(line(8000, seed=3)[0])) > 0.95
    assert torch.equal(found.score, found.width)


@pytest.mark.rotating
@pytest.mark.parametrize("make", [QuantileHeads, IntervalLossHeads])
def test_bounds_that_cross_the_point_or_each_other_end_there(make: Any) -> None:
    method = make(nn.Linear(1, 1))
    with torch.no_grad():
        method.heads.layer.bias.copy_(torch.tensor([1.0, -2.0]))  # the lower one above the upper one

    found = method.predict(torch.ones(3, 1))

    assert not found.below.any() and not found.above.any() and not found.score.any()


def test_until_it_has_learnt_more_prob_out_takes_the_mean_error_as_the_deviation() -> None:
    method = ProbOut(line_model())

    method.start_fit(coverage=None, mae=0.3)

    assert torch.allclose(method.predict(torch.ones(2, 1)).deviation, torch.full((2, 1), 0.3))


def test_quantiles_have_a_direction() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2048, 1, generator=generator)
    y = torch.rand(2048, 1, generator=generator).log().neg()  # exponential, above zero
    model = nn.Linear(1, 1).requires_grad_(False)
    model.weight.zero_(), model.bias.zero_()
    method = QuantileHeads(model)

    quiet(method, loader(x, y), coverage=0.9, epochs=EPOCHS, lr=3e-2)

    found = method.predict(x)
    assert bool((found.direction == 1).all()) and not found.below.any()  # cut, for the lower quantile is above
    assert float(found.above.mean()) == pytest.approx(-math.log(0.05), rel=0.1)


def test_the_error_predictor_knows_the_errors_it_is_to_expect_and_covers() -> None:
    method = fitted(ErrorPredictor)
    x, y = line(8000, seed=3)

    found = method.predict(x)

    assert covered(method, x, y) == pytest.approx(0.9, abs=0.03)
    expected = math.sqrt(2 / math.pi) * noise(x)  # the mean of the absolute value of a normal error
    assert float((found.score / expected - 1).abs().mean()) < 0.12
    best = correlation(noise(x), (found.point - y).abs())
    assert correlation(found.score, (found.point - y).abs()) > 0.95 * best
    assert torch.equal(found.below, found.above) and float(found.below.min()) > 0


def test_interval_loss_heads_take_the_beta_of_the_coverage_or_the_one_given() -> None:
    x, y = line()
    model = line_model()
    mae = float((model(x).detach() - y).abs().mean())

    by_coverage, given = fitted(IntervalLossHeads), fitted(IntervalLossHeads, beta=beta_for_coverage(0.9, mae))

    assert torch.allclose(by_coverage.predict(x).width, given.predict(x).width, rtol=1e-3)
    # Errors of several sizes: about what the beta of Laplace errors covers (DESIGN.md, section 3).
    assert covered(by_coverage, *line(8000, seed=3)) == pytest.approx(0.83, abs=0.08)
    assert correlation(given.predict(x).width, noise(x)) > 0.9
    assert covered(fitted(IntervalLossHeads, beta=1.5 * mae), x, y) < 0.3  # the best width is near zero


def test_interval_loss_heads_refuse_a_beta_without_meaning() -> None:
    with pytest.raises(ValueError, match="beta must be positive, or None to follow from the coverage, got 0"):
        IntervalLossHeads(line_model(), beta=0)


def test_all_that_learn_are_tighter_than_a_constant_width_at_equal_coverage() -> None:
    held_out, (x, y) = loader(*line(2000, seed=4)), line(8000, seed=3)

    def winkler(method: Any) -> float:
        inn.calibrate(method, held_out, coverage=0.9)
        p = method.predict(x)
        missed = (y - p.upper).clamp(min=0) + (p.lower - y).clamp(min=0)
        return float((p.width + 20 * missed).mean())

    floor, best = winkler(ConstantWidth(line_model())), winkler(Known())

    for make in (ProbOut, QuantileHeads, IntervalLossHeads, ErrorPredictor):
        assert winkler(fitted(make)) < best + 0.3 * (floor - best)


class Known:
    """The best bounds that there are."""

    def predict(self, x: Tensor) -> inn.Prediction:
        return inn.Prediction.symmetric(x.sin(), noise(x), coverage=0.9)


@pytest.mark.rotating
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_unit_of_the_targets_does_not_matter(factor: float) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = line_model()

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = factor * self.inner(x)
            return result

    x, y = line()
    for make in (QuantileHeads, ErrorPredictor):
        method = make(Scaled().eval())

        quiet(method, loader(x, factor * y), coverage=0.9, epochs=20, lr=1e-2)

        assert covered(method, x, factor * y) == pytest.approx(0.9, abs=0.03)


# --- fit ---


@pytest.mark.rotating
@pytest.mark.parametrize("name", TRAINED)
def test_fit_says_what_it_did_and_can_go_on_from_a_checkpoint(name: str, tmp_path: Path) -> None:
    data = list(loader(*line(256)))
    whole, stopped = MAKERS[name](line_model()), MAKERS[name](line_model())
    wanted = {"coverage": 0.8, "epochs": 4, "validation": data}

    history = quiet(whole, data, **wanted)
    with pytest.raises(KeyboardInterrupt):
        quiet(stopped, Interrupted(data, after=2), **wanted, checkpoint=tmp_path / "c.pt")
    quiet(stopped, data, **wanted, checkpoint=tmp_path / "c.pt")

    assert history.settings["coverage"] == whole.coverage == 0.8
    assert history.epochs[-1].loss < history.epochs[0].loss
    x = line(20)[0]
    assert torch.allclose(whole.predict(x).upper, stopped.predict(x).upper, atol=1e-6)


class Interrupted:
    """A loader that is stopped when it is asked for one more epoch, after the look at the data."""

    def __init__(self, data: Any, after: int) -> None:
        self.batches, self.left = data, after + 1

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return iter(self.batches)


def test_the_coverage_of_the_method_is_the_default() -> None:
    method = QuantileHeads(line_model(), coverage=0.7)

    assert quiet(method, loader(*line(64)), epochs=1).settings["coverage"] == 0.7


def test_prob_out_has_the_papers_settings() -> None:
    data = loader(*line(64))

    settings = quiet(ProbOut(line_model()), data, recipe="paper").settings

    assert {"epochs": 100, "lr": 1e-4, "loss": "gaussian"}.items() <= settings.items()


def test_the_papers_recipe_for_prob_out_is_a_plain_loop() -> None:
    x, y = line(96)
    data = [(x[i : i + 32], y[i : i + 32]) for i in (0, 32, 64)]
    method, literal = ProbOut(line_model()), ProbOut(line_model())

    quiet(method, data, recipe="paper", epochs=3)

    literal.heads.scale.fill_(float((line_model()(x).detach() - y).abs().mean()))
    optimizer = torch.optim.Adam(literal.parameters(), lr=1e-4)
    for _ in range(3):
        for batch, target in data:
            mean, log_variance = literal(batch)
            optimizer.zero_grad()
            (0.5 * log_variance + 0.5 * (target - mean) ** 2 / log_variance.exp()).mean().backward()
            optimizer.step()
    assert torch.allclose(method.predict(x).upper, literal.predict(x).upper, atol=1e-5)


def test_a_method_takes_another_loss_but_no_beta() -> None:
    data = loader(*line(64))

    assert quiet(QuantileHeads(line_model()), data, loss=losses.interval(beta=0.01), epochs=1).settings["loss"] == (
        "interval"
    )
    with pytest.raises(ValueError, match="beta is for interval networks; give this method a coverage"):
        quiet(QuantileHeads(line_model()), data, beta=0.01)


def test_methods_without_parameters_have_nothing_to_train() -> None:
    for method in (MCDropout(line_model()), ConstantWidth(line_model())):
        with pytest.raises(ValueError, match="has no parameters to train; calibrate it"):
            quiet(method, loader(*line(64)), coverage=0.9)


def test_a_module_of_the_users_own_can_say_how_it_is_trained() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(1, 1)
            self.given: Any = None

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.last(x)
            return result

        def point(self, x: Tensor) -> Tensor:
            return torch.zeros_like(x)

        def start_fit(self, *, coverage: float | None, mae: float) -> losses.Loss:
            self.given = coverage, mae
            return losses.mae

    method, (x, y) = Own(), line(64)

    settings = quiet(method, [(x, y)], coverage=0.8, epochs=2).settings

    assert settings["loss"] == "mae" and "coverage" not in settings
    assert method.given == (0.8, pytest.approx(float(y.abs().mean())))


# --- losses ---


def test_the_gaussian_loss_is_that_of_torch() -> None:
    mean, spread, target = torch.randn(3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    density = torch.distributions.Normal(mean, (spread / 2).exp())

    found = losses.gaussian((mean, spread), target)

    assert float(found) == pytest.approx(-float(density.log_prob(target).mean()), rel=1e-12)


def test_the_loss_of_errors_is_least_at_their_mean_and_their_quantile() -> None:
    errors = torch.randn(20_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss, point = losses.error(coverage=0.9, unit=1.0), torch.zeros_like(errors)

    def at(gap: Tensor, expected: Tensor) -> float:
        gap, expected = gap.expand_as(errors), expected.expand_as(errors)
        return float(loss((inn.Interval(point, gap, gap), expected), errors))

    quantile, mean = errors.abs().quantile(0.9), errors.abs().mean()

    best = at(quantile, mean)
    for factor in (0.95, 1.05):
        assert at(factor * quantile, mean) > best and at(quantile, factor * mean) > best
