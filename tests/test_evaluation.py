from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn import metrics
from intervalnn.methods import ConstantWidth, MCDropout
from intervalnn.results import Results, Run


class Noisy(nn.Module):
    """Predicts a constant, with a spread of our choice."""

    def __init__(self, spread: float, bias: float = 0.0) -> None:
        super().__init__()
        self.spread, self.bias, self.calls = spread, bias, 0
        self.calibration: inn.Calibration | None = None

    def predict(self, x: Tensor) -> inn.Prediction:
        self.calls += 1
        spread = self.spread * (1 + x.abs())
        p = inn.Prediction.symmetric(torch.zeros_like(x) + self.bias, spread, coverage=0.9)
        return p if self.calibration is None else self.calibration(p)


def batches(n: int, seed: int = 0, parts: int = 1) -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(seed)
    x = torch.randn(n, 8)
    return list(zip(x.chunk(parts), ((1 + x.abs()) * torch.randn(n, 8)).chunk(parts), strict=True))


def test_values_are_one_number_per_sample_and_those_of_the_metric_itself() -> None:
    test = batches(20, parts=3)
    method = Noisy(0.5)

    results = inn.evaluate({"a": method}, test, [metrics.mse, metrics.winkler, metrics.nll])

    whole = inn.Prediction.cat([method.predict(x) for x, _ in test])
    target = torch.cat([y for _, y in test])
    for metric in (metrics.mse, metrics.winkler, metrics.nll):
        np.testing.assert_allclose(results.per_run("a", metric.__name__)[0], metric(whole, target).numpy())
    assert results.runs[0].versions["torch"] == torch.__version__


def test_at_equal_coverage_every_method_has_it_and_the_better_one_is_found() -> None:
    held_out, test = batches(400, seed=1), batches(400, seed=2)
    tight, flat = Noisy(0.1), ConstantWidth(nn.Identity())
    flat.predict = lambda x: inn.Prediction.symmetric(  # type: ignore[method-assign,assignment,misc]
        torch.zeros_like(x), torch.full_like(x, 3.0), coverage=0.9
    )

    results = inn.evaluate({"tight": tight, "flat": flat}, test, held_out=held_out)

    for name in results.methods:
        assert results.spread(name, "coverage at equal coverage").mean == pytest.approx(0.9, abs=0.015)
    assert results.spread("tight", "coverage").mean < 0.4  # as it came
    assert results.best("winkler at equal coverage") == "tight"
    assert results.best("coverage") is None  # neither lower nor higher is better
    assert results.runs[0].methods["tight"].factors[0] == pytest.approx(10, rel=0.1)  # type: ignore[index]


def test_a_calibration_that_a_method_has_is_used_and_kept() -> None:
    held_out, test = batches(300, seed=1), batches(300, seed=2)
    method = Noisy(0.1)
    inn.calibrate(method, held_out, coverage=0.5)
    own = method.calibration

    results = inn.evaluate({"a": method}, test, held_out=held_out, coverage=0.9)

    assert method.calibration is own
    assert results.spread("a", "coverage").mean == pytest.approx(0.5, abs=0.03)
    assert results.spread("a", "coverage at equal coverage").mean == pytest.approx(0.9, abs=0.02)


def test_methods_that_are_alike_have_no_best() -> None:
    results = inn.evaluate({"a": Noisy(1.0), "b": Noisy(1.0 + 1e-4)}, batches(30), [metrics.winkler, metrics.mse])

    assert results.best("winkler") is None
    assert results.best("mse") is None  # no difference at all
    assert results.compare("mse", "a", "b").p == 1.0


def test_undefined_correlations_are_left_out_and_reported() -> None:
    x, y = torch.randn(6, 4), torch.randn(6, 4)
    y[:2] = 1.0  # with a constant error, no correlation
    method = ConstantWidth(nn.Identity())
    method.predict = lambda x: inn.Prediction.symmetric(  # type: ignore[method-assign,assignment,misc]
        torch.zeros_like(x), 1 + x.abs(), coverage=0.9
    )

    results = inn.evaluate({"a": method, "flat": ConstantWidth(nn.Identity())}, [(x, y)], [metrics.pearson])

    spread = results.spread("a", "pearson")
    assert (spread.undefined, spread.samples) == (2, 6) and math.isfinite(spread.mean)
    assert str(results.spread("flat", "pearson")) == "undefined"
    assert "pearson: undefined and left out: a 2 of 6, flat 6 of 6" in results.table()
    assert results.best("pearson") is None


def test_a_density_is_judged_only_where_there_is_one() -> None:
    results = inn.evaluate(
        {"a": Noisy(1.0), "flat": ConstantWidth(nn.Identity())}, batches(5), [metrics.mse, metrics.crps]
    )

    assert len(results.per_run("flat", "crps")[0]) == 0
    assert results.table().splitlines()[2].split()[2] == "-"


def test_runs_are_written_read_and_put_together(tmp_path: Path) -> None:
    runs = [inn.evaluate({"a": Noisy(s), "b": Noisy(2 * s)}, batches(10), seed=i) for i, s in enumerate((1.0, 1.1))]
    both = runs[0] + runs[1]

    both.save(tmp_path)
    again = Results.load(tmp_path)

    assert again == both
    means = [float(np.mean(v)) for v in both.per_run("a", "winkler")]
    spread = again.spread("a", "winkler")
    assert (spread.mean, spread.sd) == pytest.approx((np.mean(means), np.std(means, ddof=1)))
    assert "±" in again.table() and again.table(style="markdown").count("|") > 10
    assert again.table(style="latex").startswith(r"\begin{tabular}{lrrrrrrrr}")
    frame = again.to_pandas()
    assert len(frame) == 2 * 2 * 6 * 10
    with pytest.raises(FileExistsError, match="overwrite=True"):
        both.save(tmp_path)


def test_undefined_and_infinite_values_survive_the_file(tmp_path: Path) -> None:
    def odd(p: inn.Prediction, y: Tensor) -> Tensor:
        return torch.tensor([math.nan, math.inf, 1.0])

    results = inn.evaluate({"a": Noisy(1.0)}, batches(3), [odd])
    path = results.runs[0].save(tmp_path / "run.json")

    np.testing.assert_array_equal(Run.load(path).methods["a"].values["odd"], [math.nan, math.inf, 1.0])


@pytest.mark.parametrize("text", ["", "{}", '{"format": "intervalnn results 1"}', "[1]", '{"format": "other"}'])
def test_foreign_files_are_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)

    with pytest.raises(ValueError, match=r"run\.json is not a file of results"):
        Results.load(path)


def test_the_bootstrap_finds_a_true_difference_as_often_as_it_says() -> None:
    rng, hits = np.random.default_rng(0), 0
    for k in range(200):
        a = rng.normal(0.0, 1.0, 60)
        run = Run({n: inn.results.Measured({"m": v.tolist()}, 0, 0) for n, v in (("a", a), ("b", a * 0))}, 0.9, {})
        found = Results([run]).compare("m", "a", "b", draws=1000, seed=k)
        hits += found.lower <= 0 <= found.upper
        assert (found.p < 0.05) == (not found.lower <= 0 <= found.upper) or abs(found.p - 0.05) < 0.02

    assert 0.89 <= hits / 200 <= 0.99  # 95 % asked


def test_few_pairs_are_never_significant() -> None:
    run = Run({n: inn.results.Measured({"m": v}, 0, 0) for n, v in (("a", [1.0, 1.0]), ("b", [2.0, 2.5]))}, 0.9, {})

    assert Results([run]).compare("m", "a", "b").p >= 0.5


def test_several_inputs_reach_the_model_as_arguments() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return self.layer(a) + b

    torch.manual_seed(0)
    data = [((torch.randn(40, 3), torch.randn(40, 3)), torch.randn(40, 3)) for _ in range(2)]
    net = inn.IntervalNetwork(Two(), layers="all")
    inn.fit(net, data, coverage=0.9, epochs=5, progress=False)
    inn.calibrate(net, data, coverage=0.8)

    results = inn.evaluate({"INN": net}, data, held_out=data)

    assert results.spread("INN", "coverage at equal coverage").mean == pytest.approx(0.9, abs=0.05)


def test_interval_network_and_baseline_side_by_side_cost_what_they_cost() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 4))
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 4)), 32)
    methods = {"constant": ConstantWidth(model), "dropout": MCDropout(model, samples=8)}

    run = inn.evaluate(methods, loader).runs[0]

    for measured in run.methods.values():
        assert measured.seconds > 0
    # eight passes in one batch keep eight times as much of the hidden layer, and a little more
    assert run.methods["dropout"].peak_mib > 3 * run.methods["constant"].peak_mib > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inn.evaluate({}, batches(3)), "at least one entry"),
        (lambda: inn.evaluate({"a": Noisy(1.0)}, []), "loader is empty"),
        (lambda: inn.evaluate({"a": Noisy(1.0)}, batches(3), coverage=90), "coverage must lie between 0 and 1"),
        (lambda: inn.evaluate({"a": Noisy(1.0)}, [(torch.zeros(2, 3), torch.zeros(2, 4))]), "target must have shape"),
        (lambda: inn.evaluate({"a": Noisy(1.0)}, [(torch.zeros(1, 3), torch.full((1, 3), math.nan))]), "finite"),
        (lambda: inn.evaluate({"a": Noisy(1.0)}, batches(3), {"m": lambda p, y: y}), r"one number per sample, \(3,\)"),
        (lambda: inn.evaluate({"a": Noisy(1.0)}, batches(3), {"m": lambda p, y: 1.0}), "got float"),
        (lambda: Results([]), "at least one run"),
        (lambda: Results.load("/nowhere/at/all.json"), "No such file"),
    ],
)
def test_bad_input_is_refused_with_what_was_wanted(call: object, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        call()  # type: ignore[operator]


def test_unknown_names_are_refused_with_those_that_exist() -> None:
    results = inn.evaluate({"a": Noisy(1.0)}, batches(3))

    with pytest.raises(KeyError, match="no method 'b'; there are a"):
        results.spread("b", "mse")
    with pytest.raises(KeyError, match="no metric 'rmse'; there are mse, coverage"):
        results.spread("a", "rmse")


def test_runs_of_other_methods_do_not_go_into_one_table() -> None:
    a, b = (inn.evaluate({name: Noisy(1.0)}, batches(3)) for name in "ab")

    with pytest.raises(ValueError, match="same methods"):
        a + b
