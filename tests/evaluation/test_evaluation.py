from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rich
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn import metrics
from intervalnn.evaluation.records import Measured, Run
from intervalnn.evaluation.results import Results
from intervalnn.methods import ConstantWidth, MCDropout


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


ALIKE = {"a": Noisy(1.0), "b": Noisy(1.0)}
SAME = batches(3)
LAST = lambda p, y: p.width.flatten(1)[:, -1]  # noqa: E731


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
    assert results.table().splitlines()[3].split()[2] == "-"


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
        run = Run({n: Measured({"m": v.tolist()}, 0, 0) for n, v in (("a", a), ("b", a * 0))}, 0.9, {})
        found = Results([run]).compare("m", "a", "b", draws=1000, seed=k)
        hits += found.lower <= 0 <= found.upper
        assert (found.p < 0.05) == (not found.lower <= 0 <= found.upper) or abs(found.p - 0.05) < 0.02

    assert 0.89 <= hits / 200 <= 0.99  # 95 % asked


def test_few_pairs_are_never_significant() -> None:
    run = Run({n: Measured({"m": v}, 0, 0) for n, v in (("a", [1.0, 1.0]), ("b", [2.0, 2.5]))}, 0.9, {})

    assert Results([run]).compare("m", "a", "b").p >= 0.5


def test_a_bootstrap_over_groups_takes_their_samples_for_one() -> None:
    rng, groups = np.random.default_rng(0), [[f"s{run}{i // 50}" for i in range(200)] for run in range(2)]
    by_subject = rng.normal(0.0, 1.0, 8)
    values = [np.repeat(by_subject[4 * run : 4 * run + 4], 50) + rng.normal(0.0, 0.1, 200) for run in range(2)]
    runs = [
        Run({"a": Measured({"m": v.tolist()}, 0, 0), "b": Measured({"m": [0.0] * 200}, 0, 0)}, 0.9, {}) for v in values
    ]
    results = Results(runs)

    found = results.compare_by(groups, "m", "a", "b")

    means = results.by_group("a", "m", groups)
    drawn = rng.choice(list(means.values()), (20_000, 8)).mean(1)
    assert list(means) == [f"s{run}{i}" for run in range(2) for i in range(4)]
    assert found.pairs == 8 and found.difference == pytest.approx(np.mean(values))
    assert [found.lower, found.upper] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.05)
    assert found.p >= 2.0**-7 and results.compare("m", "a", "b").p < found.p


def test_groups_of_one_sample_each_are_compared_as_samples_are() -> None:
    values = {
        n: Measured({"m": v}, 0, 0) for n, v in (("a", [1.0, 2.0, 4.0, float("nan")]), ("b", [0.5, 2.5, 1.0, 0.0]))
    }
    results = Results([Run(values, 0.9, {})])

    assert results.compare_by([["w", "x", "y", "z"]], "m", "a", "b") == results.compare("m", "a", "b")


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

    results = inn.evaluate({"INN": net}, data, held_out=list(data))

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


def test_samples_are_paired_even_where_the_loader_shuffles_or_runs_but_once() -> None:
    (x, y), *_ = batches(40)
    shuffled = DataLoader(TensorDataset(x, y), 8, shuffle=True)

    for loader in (shuffled, (batch for batch in shuffled)):
        results = inn.evaluate(ALIKE, loader, [metrics.mse])
        np.testing.assert_array_equal(*(results.per_run(name, "mse")[0] for name in "ab"))


def test_a_model_that_writes_to_its_input_is_measured_on_what_the_loader_gave() -> None:
    class InPlace(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mul_(2.0)

    (x, y), *_ = batches(5)
    before = x.clone()
    own = Noisy(1.0)
    own.predict = lambda x: inn.Prediction.symmetric(x.mul_(2.0), x.abs(), coverage=0.9)  # type: ignore[method-assign]

    results = inn.evaluate({"a": ConstantWidth(InPlace()), "b": own}, [(x, y)], [metrics.mse])

    assert torch.equal(x, before)
    for name in "ab":
        np.testing.assert_allclose(results.per_run(name, "mse")[0], (2 * x - y).square().mean(1), rtol=1e-6)


def test_interval_scores_are_those_of_the_coverage_unless_a_partial_says_otherwise() -> None:
    test, own = batches(20), Noisy(0.5)
    at = {c: metrics.winkler(own.predict(test[0][0]), test[0][1], coverage=c).mean() for c in (0.5, 0.8)}

    results = inn.evaluate({"a": own}, test, [metrics.winkler, partial(metrics.pinball, coverage=0.8)], coverage=0.5)

    assert results.spread("a", "winkler").mean == pytest.approx(float(at[0.5]))
    assert results.spread("a", "pinball").mean == pytest.approx(float(at[0.8]) * 0.1)


def test_a_density_is_asked_for_by_partial_too() -> None:
    results = inn.evaluate({"flat": ConstantWidth(nn.Identity())}, batches(3), [partial(metrics.nll, floor=1.0)])

    assert results.metrics == []


def test_an_interrupted_calibration_leaves_the_method_as_it_was() -> None:
    method = Noisy(0.1)
    inn.calibrate(method, batches(50), coverage=0.5)
    own = method.calibration

    def interrupted() -> Iterator[tuple[Tensor, Tensor]]:
        yield from batches(20)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inn.evaluate({"a": method}, batches(3), held_out=interrupted())
    assert method.calibration is own


def test_progress_is_shown_on_a_terminal_alone_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for terminal, progress in ((True, True), (True, False), (False, True)):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
        monkeypatch.setattr(rich, "_console", console)
        inn.evaluate(ALIKE, batches(3), progress=progress)
        shown[terminal, progress] = console.file.getvalue()  # type: ignore[attr-defined]

    assert "evaluate" in shown[True, True] and shown[True, True].endswith("\x1b[2K")  # the line is erased
    assert shown[True, False] == shown[False, True] == ""


# --- tables ---


def table(values: dict[str, dict[str, list[float]]], style: Any = "text", runs: int = 1, **better: Any) -> str:
    methods = {name: Measured(each, 0.5, 3.0) for name, each in values.items()}
    return Results([Run(methods, 0.9, better)] * runs).table(style=style)


def test_a_text_table_wraps_long_names_and_has_a_place_for_the_mark() -> None:
    a, b = [1.0 + i / 100 for i in range(20)], [2.0] * 20

    lines = table(
        {"a": {"winkler at equal coverage": a, "m": a}, "b": {"winkler at equal coverage": b, "m": b}}, m="lower"
    )

    assert lines.splitlines() == [
        "         winkler",
        "        at equal           seconds  peak",
        "method  coverage        m     each   MiB",
        "a          1.095  1.095 *     0.50  3.00",
        "b          2.000  2.000       0.50  3.00",
        "*: better than all others that have a value, beyond chance on the same samples.",
    ]


def test_a_latex_table_has_bold_numbers_powers_of_ten_and_no_bare_special_sign() -> None:
    few, many = [1e-7 * (1 + i / 100) for i in range(20)], [2.0] * 20
    values = {
        r"a_b \ 50% & $x^2$ {~} #1 <|>": {"x_y": few, "z": [math.inf] * 20},
        "b": {"x_y": many, "z": [math.nan] * 20},
    }

    found = table(values, "latex", runs=2, x_y="lower").splitlines()

    assert found[2] == r"method & x\_y & z & seconds each & peak MiB \\"
    name = r"a\_b \textbackslash{} 50\% \& \$x\textasciicircum{}2\$ \{\textasciitilde{}\} \#1 $<$$|$$>$"
    assert found[4] == name + r" & $\mathbf{1.095 \cdot 10^{-7}} \pm \mathbf{0}$ & $\infty$ & $0.50$ & $3.00$ \\"
    assert found[5] == r"b & $2.000 \pm 0$ & undefined & $0.50$ & $3.00$ \\"
    assert found[7] == r"\multicolumn{5}{l}{Mean $\pm$ standard deviation over 2 runs.} \\"
    assert found[9] == r"\multicolumn{5}{l}{z: undefined and left out: b 40 of 40} \\"
    assert all(len(re.findall(r"(?<!\\)&", line)) == 4 for line in found[2:6] if line != r"\hline")


def test_a_markdown_table_keeps_its_columns_whatever_the_names() -> None:
    lines = table({"a|b": {"<lambda>": [1.0]}}, "markdown").splitlines()

    assert lines == [
        "| method | &lt;lambda> | seconds each | peak MiB |",
        "| --- | ---: | ---: | ---: |",
        r"| a\|b | 1.000 | 0.50 | 3.00 |",
    ]


def test_infinite_values_are_compared_without_warning() -> None:
    run = Run(
        {n: Measured({"m": v}, 0, 0) for n, v in (("a", [math.inf] * 9), ("b", [1.0] * 9))},
        0.9,
        {},
    )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Results([run]).compare("m", "a", "b")
    assert (found.lower, found.upper) == (math.inf, math.inf) and found.p < 0.05


def test_a_method_without_common_samples_keeps_the_others_from_being_best() -> None:
    low, nan = [0.0] * 10, [math.nan] * 10
    values = {"a": low + nan, "b": [1.0] * 10 + nan, "c": nan + [2.0] * 10}
    run = Run({n: Measured({"m": v}, 0, 0) for n, v in values.items()}, 0.9, {"m": "lower"})

    assert Results([run]).best("m") is None


def test_runs_go_together_whatever_the_order_of_their_methods() -> None:
    first, second = inn.evaluate(ALIKE, SAME), inn.evaluate(dict(reversed(ALIKE.items())), SAME)

    assert (first + second).spread("a", "mse").samples == 2 * 3


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path: Path) -> None:
    settings = {"lr": np.float32(0.5), "n": np.int64(3), "flag": np.bool_(True)}

    path = inn.evaluate(ALIKE, SAME, settings=settings).runs[0].save(tmp_path / "run.json")

    assert Run.load(path).settings == {"lr": 0.5, "n": 3, "flag": True}


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
        (lambda: inn.evaluate(ALIKE, batches(3), [LAST, LAST]), "two metrics '<lambda>'; name them"),
        (lambda: inn.evaluate(ALIKE, batches(3), {"width at equal coverage": LAST}), "two metrics 'width at"),
        (lambda: inn.evaluate(ALIKE, batches(3), ["mse"]), "must be a function, such as .*, got 'mse'"),
        (lambda: inn.evaluate(ALIKE, batches(3), metrics.mse), "a list or a mapping of functions"),
        (
            lambda: inn.evaluate(ALIKE, batches(3), [metrics.SampleMean(metrics.pwcc)]),
            r"metric 'SampleMean' .* got \(\); .* torchmetrics",
        ),
        (lambda: inn.evaluate(ALIKE, batches(3), better={"mse": "small"}), "better must be 'lower' or 'higher'"),
        (lambda: inn.evaluate({"a": nn.Linear(8, 8)}, batches(3)), "method 'a' must have predict.* a Linear has none"),
        (lambda: inn.evaluate({1: Noisy(1.0)}, batches(3)), "name of a method must be a string, got 1"),
        (lambda: inn.evaluate(ALIKE, SAME, held_out=SAME), "held_out must be other samples"),
        (lambda: inn.evaluate(ALIKE, SAME, held_out=(b for b in SAME)), "held_out is gone through for each method"),
        (lambda: inn.evaluate(ALIKE, SAME, held_out=[]), "This was method 'a' on held_out"),
        (lambda: inn.evaluate(ALIKE, TensorDataset(*SAME[0])), "a TensorDataset samples; give DataLoader"),
        (lambda: inn.evaluate(ALIKE, SAME, held_out=TensorDataset(*SAME[0])), "a TensorDataset samples"),
        (lambda: inn.calibrate(Noisy(1.0), TensorDataset(*SAME[0])), "a TensorDataset samples; give DataLoader"),
        (lambda: inn.calibrate(Noisy(-1.0), SAME), "gap below of a prediction must be >= 0"),
        (lambda: inn.evaluate(ALIKE, SAME).table(style="html"), "style must be one of 'text', 'markdown', 'latex'"),
        (lambda: Results([]), "at least one run"),
        (lambda: Results.load("/nowhere/at/all.json"), "there is no file /nowhere/at/all.json"),
    ],
)
def test_bad_input_is_refused_with_what_was_wanted(call: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
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
