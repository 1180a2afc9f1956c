"""The streaming classes: batches add up to the whole, over processes too, and nothing undefined is counted."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchmetrics import MetricCollection

from intervalnn import metrics
from intervalnn.metrics import classes
from intervalnn.prediction import Prediction
from metrics.draws import drawn


def every_class() -> dict[str, classes.Streaming]:
    return {
        "coverage": classes.SampleMean(metrics.coverage),
        "width": classes.SampleMean(metrics.mean_width),
        "score": classes.SampleMean(partial(metrics.winkler, coverage=0.8)),
        "pwcc": classes.SampleMean(metrics.pwcc),
        "mse": classes.SampleMean(metrics.mse),
        "pearson": classes.SampleMean(metrics.pearson),
        "median": classes.Pooled(metrics.WidthQuantile(0.5)),
        "ranks": classes.Pooled(metrics.RankCorrelation()),
        "sparsification": classes.Pooled(metrics.Sparsification(steps=5)),
        "direction": classes.Pooled(metrics.Directions()),
        "levels": classes.Pooled(metrics.CalibrationLevels()),
        "strata": classes.Pooled(metrics.WidthStrata()),
        "map": classes.Pooled(metrics.MissedPlaces((40,))),
        "markov": classes.Pooled(metrics.MarkovBound(beta=0.1)),
    }


def flat(result: Any) -> list[float]:
    """Return all numbers of a result, in their order."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [number for part in result for number in flat(part)]
    return torch.as_tensor(result, dtype=torch.float64).flatten().tolist()


each_class = pytest.mark.parametrize("name", every_class())


# --- values ---


def test_the_values_are_those_over_all_components() -> None:
    prediction, target = drawn((6, 40))
    stream = every_class()

    for metric in stream.values():
        metric.update(prediction[:2], target[:2])
        metric.update(prediction[2:], target[2:])

    found = {name: metric.compute() for name, metric in stream.items()}
    lower, upper, truth, width = (
        part.numpy() for part in (prediction.lower, prediction.upper, target, prediction.width)
    )
    missed = np.maximum(lower - truth, 0) + np.maximum(truth - upper, 0)
    assert found["coverage"].item() == pytest.approx(np.mean((lower <= truth) & (truth <= upper)))
    assert found["width"].item() == pytest.approx(width.mean())
    assert found["median"].item() == pytest.approx(np.median(width), rel=1 / 1024)
    assert found["score"].item() == pytest.approx((width + missed * 2 / 0.2).mean())
    assert found["pwcc"].item() == pytest.approx(metrics.pwcc(prediction, target).mean().item())
    assert found["mse"].item() == pytest.approx(metrics.mse(prediction, target).mean().item())
    at_once = [prediction[part].reshape(1, -1) for part in ("point", "below", "above", "score")]
    pooled = metrics.ause(Prediction(*at_once), target.reshape(1, -1))
    assert found["sparsification"].area.item() == pytest.approx(pooled.item(), abs=0.02)


@each_class
def test_batches_add_up_to_the_whole(name: str) -> None:
    prediction, target = drawn((7, 40))
    whole, parts = every_class()[name], every_class()[name]

    whole.update(prediction, target)
    for start, end in ((0, 1), (1, 4), (4, 7)):
        parts.update(prediction[start:end], target[start:end])

    assert flat(parts.compute()) == pytest.approx(flat(whole.compute()), rel=1e-9, nan_ok=True)


@each_class
def test_calling_gives_the_value_of_the_batch_and_keeps_counting(name: str) -> None:
    prediction, target = drawn((6, 40))
    stream, second, whole = (every_class()[name] for _ in range(3))

    stream(prediction[:3], target[:3])
    of_batch = stream(prediction[3:], target[3:])

    second.update(prediction[3:], target[3:])
    whole.update(prediction, target)
    assert flat(of_batch) == pytest.approx(flat(second.compute()), rel=1e-9, nan_ok=True)
    assert flat(stream.compute()) == pytest.approx(flat(whole.compute()), rel=1e-9, nan_ok=True)


@each_class
def test_states_merge_have_a_fixed_size_and_are_reset(name: str) -> None:
    prediction, target = drawn((6, 40))
    first, second, whole = (every_class()[name] for _ in range(3))
    sizes = [getattr(whole, state).numel() for state in whole._defaults]

    first.update(prediction[:2], target[:2])
    second.update(prediction[2:], target[2:])
    first.merge_state(second)
    whole.update(prediction, target)

    assert flat(first.compute()) == pytest.approx(flat(whole.compute()), rel=1e-9, nan_ok=True)
    assert [getattr(whole, state).numel() for state in whole._defaults] == sizes
    before = flat(second.compute())
    whole.reset()
    whole.update(prediction[2:], target[2:])
    assert flat(whole.compute()) == pytest.approx(before, rel=1e-9, nan_ok=True)


@each_class
def test_it_can_be_pickled(name: str) -> None:
    metric = every_class()[name]
    metric.update(*drawn((3, 40)))

    again = pickle.loads(pickle.dumps(metric))

    assert flat(again.compute()) == pytest.approx(flat(metric.compute()), nan_ok=True)


# --- the undefined ---


def test_undefined_samples_are_left_out_and_counted() -> None:
    prediction, target = drawn((5, 40))
    constant = Prediction(*(prediction[name] for name in ("point", "below", "above")), torch.ones(5, 40))
    metric = classes.SampleMean(metrics.pwcc)

    metric.update(prediction, target)
    metric.update(constant, target)

    values = metrics.pwcc(prediction, target)
    summary = metric.summary()
    assert metric.compute().item() == pytest.approx(values.mean().item())
    assert (summary.defined, summary.total) == (5, 10)
    assert summary.sd == pytest.approx(values.std().item())


def test_a_mean_of_nothing_defined_is_nan_and_never_zero() -> None:
    zero = torch.zeros(2, 3)
    metric = classes.SampleMean(metrics.pwcc)
    metric.update(Prediction(zero, zero, zero, zero), zero)

    assert metric.compute().isnan()
    assert str(metric.summary()) == str(metrics.Mean(math.nan, math.nan, 0, 2))


def test_equal_first_batches_do_not_make_one_metric_stand_for_another() -> None:
    zero = torch.zeros(2, 40)
    prediction, target = drawn((5, 40))
    together = MetricCollection(every_class())
    apart = every_class()

    for pair in ((Prediction(zero, zero, zero, zero), zero), (prediction, target)):
        together.update(*pair)
        for metric in apart.values():
            metric.update(*pair)

    found = together.compute()
    for name in ("coverage", "width", "score", "pwcc", "mse", "pearson"):
        assert found[name].item() == pytest.approx(apart[name].compute().item())


def test_a_function_that_does_not_give_one_number_per_sample_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one number per sample, \(3,\), got \(40,\); see Pooled"):
        classes.SampleMean(metrics.miscoverage_map).update(*drawn())


def test_the_package_names_every_class() -> None:
    assert set(classes.__all__) <= set(dir(metrics))
    assert all(getattr(metrics, name) is getattr(classes, name) for name in classes.__all__)


# --- processes ---

PROCESS = """
import sys, torch, torch.distributed as dist
sys.path.insert(0, {folder!r})
from metrics.test_classes import drawn, every_class, flat
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
prediction, target = drawn((7, 40))
for name, metric in every_class().items():
    metric.update(prediction[rank::2], target[rank::2])
    print(name, flat(metric.compute()))
summary = every_class()["pwcc"]
summary.update(prediction[rank::2], target[rank::2])
print("summary", list(summary.summary()))
"""


@pytest.mark.slow
def test_two_processes_find_together_what_one_finds(tmp_path: Path) -> None:
    code = PROCESS.format(folder=str(Path(__file__).parents[1]))
    alone = every_class()
    for metric in alone.values():
        metric.update(*drawn((7, 40)))

    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    found = [process.communicate(timeout=300)[0].decode().splitlines() for process in processes]

    wanted = {name: flat(metric.compute()) for name, metric in alone.items()}
    wanted["summary"] = list(alone["pwcc"].summary())  # type: ignore[operator]
    for lines in found:
        results = {line.split(" ", 1)[0]: eval(line.split(" ", 1)[1], {"nan": math.nan}) for line in lines}
        assert results.keys() == wanted.keys()
        for name, numbers in results.items():
            assert numbers == pytest.approx(wanted[name], rel=1e-9, nan_ok=True), name


# --- accelerators ---


@pytest.mark.gpu
@each_class
def test_an_accelerator_finds_what_the_processor_finds(name: str) -> None:
    prediction, target = drawn((6, 40))
    on_processor, on_accelerator = every_class()[name], every_class()[name].to("cuda")

    on_processor.update(prediction, target)
    on_accelerator.update(prediction.to("cuda"), target)  # the target follows the prediction

    assert flat(on_accelerator.compute()) == pytest.approx(flat(on_processor.compute()), rel=1e-9, nan_ok=True)
