"""Ensembles: of given models, and of copies with weights drawn anew."""

from __future__ import annotations

import pytest
import torch
from noisy import image_model, line, line_model, loader, quiet
from torch import Tensor, nn

from intervalnn.methods import Ensemble


def test_the_point_is_the_mean_and_the_deviation_that_of_the_members() -> None:
    members = [nn.Linear(2, 1) for _ in range(3)]
    x = torch.randn(4, 2)

    found = Ensemble(members).predict(x)

    outputs = torch.stack([member(x) for member in members]).detach()
    assert torch.equal(found.point, outputs.mean(0)) and torch.equal(found.deviation, outputs.std(0))


def test_copies_are_drawn_anew_each_its_own_way_and_by_the_seed() -> None:
    model = image_model()

    first, again, other = Ensemble.like(model, 3), Ensemble.like(model, 3), Ensemble.like(model, 3, seed=1)

    weights = [member[0].weight for member in first.members] + [model[0].weight]
    assert len({float(weight.detach().sum()) for weight in weights}) == 4
    assert torch.equal(first.members[2][0].weight, again.members[2][0].weight)
    assert not torch.equal(first.members[2][0].weight, other.members[2][0].weight)
    assert bool((first.members[0][1].running_mean == 0).all())


def test_fit_trains_all_members_and_they_stay_apart() -> None:
    x, y = line(512)
    ensemble = Ensemble.like(line_model(), 3)

    history = quiet(ensemble, loader(x, y, 64), coverage=0.9, epochs=20, lr=3e-3)

    assert history.settings["loss"] == "mse"
    outputs = ensemble(x).detach()
    errors = (outputs - x.sin()).square().mean((1, 2))
    assert float(errors.max()) < 0.01
    assert float(outputs.std(0).min()) > 0
    assert ensemble.predict(x).point.shape == x.shape
    # the members disagree most where they have seen nothing
    assert float(ensemble.predict(10 * x.sign()).score.mean()) > 5 * float(ensemble.predict(x).score.mean())


def test_members_train_as_they_would_alone() -> None:
    x, y = line(128)
    ensemble, alone = Ensemble.like(line_model(), 2), Ensemble.like(line_model(), 2).members[1]

    quiet(ensemble, [(x, y)], epochs=20)
    optimizer = torch.optim.Adam(alone.parameters(), eps=0.5e-8)  # gradients of two are half as large
    for step in range(20):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 + torch.cos(torch.tensor(torch.pi * step / 20)).item()) / 2
        optimizer.zero_grad()
        (0.5 * (alone(x) - y).square().mean()).backward()
        optimizer.step()

    assert torch.allclose(ensemble.members[1](x), alone(x), atol=1e-4)


def test_given_members_are_only_read_so_there_is_nothing_to_train() -> None:
    ensemble = Ensemble([line_model(), line_model()])

    assert not ensemble.state_dict().keys() - {"_extra_state"}
    with pytest.raises(ValueError, match="Ensemble has no parameters to train; calibrate it"):
        quiet(ensemble, loader(*line(32)), coverage=0.9)


def test_fewer_than_two_members_are_refused() -> None:
    for make in (lambda: Ensemble([line_model()]), lambda: Ensemble([]), lambda: Ensemble.like(line_model(), 1)):
        with pytest.raises(ValueError, match="an ensemble has at least 2 members"):
            make()


def test_one_model_is_not_taken_for_the_list_of_its_layers() -> None:
    with pytest.raises(TypeError, match=r"takes a list of models, got a Sequential; Ensemble\.like\(model, 5\)"):
        Ensemble(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))  # type: ignore[arg-type]


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.position = nn.Linear(2, 2), nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.first(x) + self.position
        return result


def test_weights_that_no_layer_draws_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"no layer of Positions draws 'position' anew: give .* reset_parameters"):
        Ensemble.like(Positions())


def test_weights_under_a_parametrisation_are_refused_by_name() -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))

    with pytest.raises(ValueError, match=r"'0.parametrizations.weight.original0', '0.parametrizations.weight.orig"):
        Ensemble.like(model)


def test_torchs_own_layers_can_all_be_drawn_anew() -> None:
    model = nn.ModuleList(
        [
            nn.TransformerEncoderLayer(4, 2, 8),
            nn.LSTM(2, 3),
            nn.GroupNorm(2, 4),
            nn.Embedding(5, 2),
            nn.PReLU(),
            nn.ConvTranspose2d(1, 2, 3),
            nn.BatchNorm1d(3),
        ]
    )

    assert len(Ensemble.like(model, 2).members) == 2


def test_members_of_its_own_can_be_converted() -> None:
    ensemble = Ensemble.like(nn.Linear(2, 1), 2).double()

    assert ensemble.predict(torch.ones(1, 2, dtype=torch.float64)).point.dtype == torch.float64


def test_it_says_what_it_is() -> None:
    assert repr(Ensemble.like(line_model(), 4)) == "Ensemble(4 x Sequential, coverage=0.9)"
