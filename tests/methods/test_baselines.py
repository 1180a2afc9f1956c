"""What all baselines promise."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from noisy import MAKERS, TRAINED, covered, flags, image_model, images, line, line_model, loader, quiet, raw
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.methods import ConstantWidth, Ensemble, MCDropout, ProbOut, QuantileHeads

every_method = pytest.mark.parametrize("name", list(MAKERS))
every_trained_method = pytest.mark.parametrize("name", TRAINED)


# --- the user's model ---


@pytest.mark.filterwarnings("ignore:the bounds hold")  # what two epochs learn is not asked here
@every_method
def test_not_a_byte_or_flag_of_the_underlying_model_changes(name: str) -> None:
    model, (x, y) = image_model(), images()
    model.train()
    model[3].eval()
    model.requires_grad_(False)
    model[0].weight.requires_grad_()
    before, asked = raw(model), flags(model)

    method = MAKERS[name](model)
    if name in TRAINED:
        quiet(method, loader(x, y, 16), coverage=0.8, epochs=2, validation=loader(x, y, 16))
    method.predict(x, batch_size=16)
    inn.calibrate(method, loader(x, y, 16), coverage=0.5)

    assert raw(model) == before and flags(model) == asked


@every_method
def test_parameters_are_what_is_trained_and_none_of_the_models(name: str) -> None:
    model = image_model().requires_grad_(False)

    method = MAKERS[name](model)

    own, theirs = set(method.parameters()), set(model.parameters())
    assert not own & theirs and all(parameter.requires_grad for parameter in own)
    assert bool(own) == (name in TRAINED)


@every_method
def test_the_point_is_that_of_the_model_in_eval_mode(name: str) -> None:
    model, (x, _) = image_model(), images(4)
    with torch.no_grad():
        expected = model(x)
    model.train()

    point = MAKERS[name](model).predict(x).point

    if "Ensemble" not in name:
        assert torch.equal(point, expected)
    assert not point.requires_grad


@every_method
def test_predicting_in_batches_is_predicting(name: str) -> None:
    method, (x, _) = MAKERS[name](image_model()), images(7)

    whole, parts = method.predict(x), method.predict(x, batch_size=3)

    assert torch.allclose(whole.point, parts.point, atol=1e-6)
    if name != "MCDropout":  # whose masks depend on the batches
        assert torch.allclose(whole.upper, parts.upper, atol=1e-6)


@every_method
def test_modes_are_restored_even_when_prediction_fails(name: str) -> None:
    method = MAKERS[name](image_model()).train()
    modes = [module.training for module in method.modules()]

    method.predict(images(2)[0])
    with pytest.raises(RuntimeError):
        method.predict(torch.zeros(2, 5, 6, 6))

    assert [module.training for module in method.modules()] == modes


@every_method
def test_the_global_random_state_is_left_as_it_was(name: str) -> None:
    model, (x, y) = image_model(), images(16)
    torch.manual_seed(7)
    before = torch.get_rng_state()

    method = MAKERS[name](model)
    if name in TRAINED and "like" not in name:
        quiet(method, loader(x, y, 8), coverage=0.9, epochs=1)
    method.predict(x)

    assert torch.equal(torch.get_rng_state(), before)


# --- calibration, and saving ---


@every_method
def test_every_method_can_be_calibrated_and_covers_then(name: str) -> None:
    model = nn.Sequential(line_model(), nn.Identity()) if name != "MCDropout" else _with_dropout(line_model())
    method = MAKERS[name](model)
    if name in TRAINED:
        quiet(method, loader(*line()), coverage=0.9, epochs=2)

    inn.calibrate(method, loader(*line(1000, seed=1)), coverage=0.9)

    assert covered(method, *line(4000, seed=2)) == pytest.approx(0.9, abs=0.03)
    assert "calibrated" in repr(method)


def _with_dropout(model: nn.Module) -> nn.Module:
    first, *rest = model
    return nn.Sequential(first, nn.Dropout(0.1), *rest).eval()


@every_method
@pytest.mark.parametrize("groups", [None, "width"])
def test_a_state_dict_restores_what_was_learnt_and_the_calibration(name: str, groups: Any) -> None:
    model, (x, y) = image_model(), images(64)
    method, again = MAKERS[name](model), MAKERS[name](model)
    if name in TRAINED:
        quiet(method, loader(x, y, 16), coverage=0.6, epochs=2)
    inn.calibrate(method, loader(x, y, 16), coverage=0.6, groups=groups if name != "ConstantWidth" else None)

    again.load_state_dict(method.state_dict())

    first, second = method.predict(x), again.predict(x)
    assert torch.equal(first.lower, second.lower) and torch.equal(first.upper, second.upper)
    assert again.calibration.promise == method.calibration.promise  # type: ignore[union-attr]
    assert again.coverage == method.coverage
    assert all(isinstance(value, Tensor) for value in method.state_dict().values())


def test_loading_a_state_without_a_calibration_drops_it() -> None:
    method = ConstantWidth(line_model())
    state = method.state_dict()
    inn.calibrate(method, loader(*line(200)), coverage=0.9)

    method.load_state_dict(state)

    assert method.calibration is None


@every_trained_method
def test_fitting_drops_a_calibration_made_for_other_bounds(name: str) -> None:
    model, (x, y) = image_model(), images()
    method = MAKERS[name](model)
    inn.calibrate(ConstantWidth(model), loader(x, y), coverage=0.8)
    method.calibration = inn.calibrate(ConstantWidth(model), loader(x, y), coverage=0.8)

    quiet(method, loader(x, y, 16), epochs=1)

    assert method.calibration is None


@every_method
def test_methods_can_be_copied_and_pickled(name: str) -> None:
    method, (x, _) = MAKERS[name](image_model()), images(3)

    for again in (copy.deepcopy(method), pickle.loads(pickle.dumps(method))):
        assert torch.equal(again.predict(x).upper, method.predict(x).upper)


# --- what they take ---


@every_method
def test_float64_stays_float64(name: str) -> None:
    model, (x, y) = image_model().double(), images(16)
    method = MAKERS[name](model)
    if name in TRAINED:
        quiet(method, loader(x.double(), y.double(), 8), coverage=0.9, epochs=1)

    prediction = method.predict(x.double())

    assert {prediction.point.dtype, prediction.below.dtype, prediction.score.dtype} == {torch.float64}
    assert prediction.point.shape == (16, 2, 6, 6)
    assert bool((prediction.below >= 0).all()) and bool((prediction.above >= 0).all())


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(2, 3), nn.Linear(3, 1), nn.Dropout()

    def forward(self, x: Tensor, *, z: Tensor | float = 0.0) -> Tensor:
        result: Tensor = self.b(self.drop(self.a(x)) + z)
        return result


@every_method
def test_a_model_may_take_several_tensors_by_position_and_by_name(name: str) -> None:
    method = MAKERS[name](Two())
    x, z = torch.randn(5, 2), torch.randn(5, 3)

    assert method.predict(x, z=z).point.shape == (5, 1)
    assert method.predict(x, z=z, batch_size=2).point.shape == (5, 1)
    with pytest.raises(ValueError, match=r"all tensors must have one first dimension, got \[5, 3\]"):
        method.predict(x, z=z[:3], batch_size=2)


class Halving(nn.Module):
    def __init__(self, model: nn.Module, *, in_place: bool) -> None:
        super().__init__()
        self.model, self.in_place = model, in_place

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x.div_(2.0) if self.in_place else x / 2.0)  # type: ignore[no-any-return]


@every_method
def test_a_model_may_write_to_its_input(name: str) -> None:
    x, model = torch.randn(5, 2), Two()
    given = x.clone()

    found, expected = (MAKERS[name](Halving(model, in_place=flag)).predict(given) for flag in (True, False))

    assert torch.equal(given, x)
    for part in ("point", "below", "above", "score"):
        assert torch.equal(found[part], expected[part])


@every_method
def test_batches_of_no_samples_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        MAKERS[name](image_model()).predict(images(2)[0], batch_size=0)


@every_method
def test_tensors_that_are_not_registered_are_no_obstacle(name: str) -> None:
    class Unregistered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.last = nn.Dropout(), nn.Linear(2, 1)
            self.factor = self.last.weight * 2  # with a graph, so that it cannot be copied

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.last(self.drop(x) * self.factor)
            return result

    model, x = Unregistered(), torch.randn(3, 2)

    point = MAKERS[name](model).predict(x).point

    assert "Ensemble" in name or torch.equal(point, model.eval()(x).detach())


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop, self.last = nn.Dropout(), nn.Linear(2, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.last(self.drop(x)), x


@every_method
def test_a_model_of_several_outputs_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="the model must return one tensor, got a tuple; wrap it"):
        MAKERS[name](Pair()).predict(torch.ones(1, 2))


@every_trained_method
def test_targets_of_another_shape_are_refused(name: str) -> None:
    method, (x, y) = MAKERS[name](line_model()), line(32)

    with pytest.raises(ValueError, match=r"target must have shape \(32, 1\), like the bounds, got \(32,\)"):
        quiet(method, [(x, y[:, 0])], coverage=0.9)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, float("nan")])
def test_a_coverage_that_is_no_share_is_refused(coverage: float) -> None:
    model = image_model()

    for make in (MCDropout, ProbOut, QuantileHeads, lambda m, coverage: Ensemble([m, m], coverage=coverage)):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
            make(model, coverage=coverage)
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        quiet(QuantileHeads(model), loader(*images()), coverage=coverage)


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, got function"):
        ConstantWidth(lambda x: x)  # type: ignore[arg-type]


# --- devices and dtypes ---


@every_method
def test_the_device_is_the_models_and_moving_moves_both(name: str) -> None:
    model = image_model()
    method = MAKERS[name](model)

    assert method.device == torch.device("cpu")
    assert method.to("meta").device == torch.device("meta")
    assert name == "Ensemble.like" or next(model.parameters()).is_meta


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "Ensemble.like"])
def test_another_dtype_is_refused_for_it_would_change_the_model(name: str) -> None:
    method = MAKERS[name](image_model())

    with pytest.raises(TypeError, match=r"follows the dtype of its model; call model\.to"):
        method.double()


def test_a_model_without_tensors_has_a_device_too() -> None:
    assert ConstantWidth(nn.ReLU()).device == torch.device("cpu")
