"""What comes after the fit: calibrate, predict, evaluate, explain, view and report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pydicom
import pytest
import torch

import intervalnn
from cli.conftest import MODEL, Inn
from data.readers.dicoms import series
from intervalnn.cli import jobs
from intervalnn.view import load_npz
from intervalnn.view.nifti import load_nifti

NET = ["--net", "net.safetensors", *MODEL]


@pytest.fixture(scope="module")
def image_net(project: Path) -> list[str]:
    """Options for a network whose bounds reach 0.1 below and 0.2 above its prediction, for images."""
    import userproject  # type: ignore[import-not-found]

    net = intervalnn.IntervalNetwork(userproject.image_net().eval(), layers=["2"])
    net.set_gaps("2.bias", below=0.1, above=0.2)
    net.save(project / "image.safetensors")
    return ["--net", "image.safetensors", "--model", "userproject:image_net"]


def test_calibrate_writes_what_it_promises(inn: Inn, tmp_path: Path) -> None:
    import userproject

    out = tmp_path / "o.safetensors"
    words = ["--data", "held-out", "--coverage", 0.8, "--level", "single image", "--delta", 0.2, "--out", out]

    shown = inn("calibrate", *NET, *words, "--json")

    net = intervalnn.load(out, userproject.net().eval())
    found = json.loads(shown.stdout)
    assert isinstance(net.calibration, intervalnn.Calibration)
    assert found["promise"] == net.calibration.promise and "probability at least 0.8" in found["promise"]
    assert found["factors"] == net.calibration.factors.tolist() and found["images"] == [60]


def test_calibrate_may_replace_its_own_input(inn: Inn, tmp_path: Path, project: Path) -> None:
    path = tmp_path / "o.safetensors"
    path.write_bytes((project / "net.safetensors").read_bytes())
    words = ["calibrate", "--net", path, *MODEL, "--data", "held-out", "--out", path]

    assert inn(*words).exit_code == 1
    assert inn(*words, "--overwrite").exit_code == 0
    assert path.read_bytes() != (project / "net.safetensors").read_bytes()


def test_too_few_images_for_a_promise_are_refused(inn: Inn, tmp_path: Path) -> None:
    shown = inn("calibrate", *NET, "--data", "test", "--coverage", 0.99, "--out", tmp_path / "o.safetensors")

    assert shown.exit_code == 1 and "this promise takes at least 99 images, got 24" in shown.stderr


# --- predict ---


def test_predict_gives_what_the_network_predicts(inn: Inn, tmp_path: Path) -> None:
    import userproject

    shown = inn("predict", *NET, "--input", "test/x.npy", "--out", tmp_path / "p.npz", "--batch-size", 7)

    assert shown.exit_code == 0, shown.output
    assert "not calibrated, so nothing is promised" in shown.stdout and "Next: inn view" in shown.stdout
    x = torch.from_numpy(np.load("test/x.npy")).float()
    wanted = intervalnn.load("net.safetensors", userproject.net().eval()).predict(x)
    found = load_npz(tmp_path / "p.npz").prediction()
    for name in ("point", "below", "above"):
        torch.testing.assert_close(found[name], wanted[name])


def test_an_archive_brings_its_targets_along(inn: Inn, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", input=np.load("test/x.npy"), target=np.load("test/y.npy"))

    inn("predict", *NET, "--input", tmp_path / "d.npz", "--out", tmp_path / "p.npz")

    record = load_npz(tmp_path / "p.npz")
    assert record.target is not None and record.input is not None
    np.testing.assert_allclose(record.target, np.load("test/y.npy"), rtol=1e-6)


def test_a_folder_of_files_gives_a_folder_that_inn_view_reads(inn: Inn, tmp_path: Path) -> None:
    x = np.load("test/x.npy")
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "a.npy", x[:5])
    np.savez(tmp_path / "in" / "b.npz", x[5:8])
    out = tmp_path / "out"

    shown = inn("predict", *NET, "--input", tmp_path / "in", "--out", out, "--json")

    assert json.loads(shown.stdout)["written"] == [str(out / "a.npz"), str(out / "b.npz")]
    assert [len(load_npz(out / name).point) for name in ("a.npz", "b.npz")] == [5, 3]
    assert json.loads((out / "prediction.json").read_text())["net"] == "net.safetensors"
    assert inn("view", out / "a.npz", "--export", tmp_path / "page.html").exit_code == 0
    again = inn("predict", *NET, "--input", tmp_path / "in", "--out", out)
    assert again.exit_code == 1 and "is there already" in again.stderr
    assert inn("predict", *NET, "--input", tmp_path / "in", "--out", out, "--overwrite").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "page.html"]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that predictions were written to; Ctrl-C comes once, before the third."""
    write, names, done = jobs.save_npz, list[str](), list[bool]()

    def stopping(path: Path, *args: Any, **kwargs: Any) -> Any:
        if len(names) == 2 and not done:
            done.append(True)
            signal.raise_signal(signal.SIGINT)
        names.append(path.stem)
        return write(path, *args, **kwargs)

    monkeypatch.setattr(jobs, "save_npz", stopping)
    return names


def one_sample_each(folder: Path, count: int = 4) -> Path:
    (folder / "x").mkdir(parents=True)
    for i in range(count):
        np.save(folder / "x" / f"{i}.npy", np.load("test/x.npy")[i])
    return folder


def test_stopped_predictions_go_on_by_the_same_command(inn: Inn, tmp_path: Path, written: list[str]) -> None:
    words = ["predict", *NET, "--input", one_sample_each(tmp_path / "in"), "--out", tmp_path / "out"]

    stopped = inn(*words)
    was_there = (tmp_path / "out").exists()
    resumed = inn(*words)

    assert stopped.exit_code == 130 and "the same command goes on from there" in stopped.stderr and not was_there
    assert resumed.exit_code == 0 and written == ["0", "1", "2", "3"]
    assert len(list((tmp_path / "out").glob("*.npz"))) == 4 and not (tmp_path / "out.part").exists()


def test_what_another_network_began_is_done_anew(inn: Inn, tmp_path: Path, written: list[str]) -> None:
    words = ["--input", one_sample_each(tmp_path / "in"), "--out", tmp_path / "out"]
    other = tmp_path / "other.safetensors"
    inn("calibrate", *NET, "--data", "held-out", "--out", other)
    inn("predict", *NET, *words)

    shown = inn("predict", "--net", other, *MODEL, *words)

    assert shown.exit_code == 0 and written == ["0", "1", "0", "1", "2", "3"]


def test_a_folder_with_other_things_in_it_is_never_replaced(inn: Inn, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")

    shown = inn("predict", *NET, "--input", "test", "--out", tmp_path / "out", "--overwrite")

    assert shown.exit_code == 1 and "holds more than predictions" in shown.stderr
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"


@pytest.fixture(scope="session")
def odd_inputs(project: Path) -> None:
    for name in ("empty/x", "twice", "two"):
        (project / "odd" / name).mkdir(parents=True)
    for name in ("a", "b"):
        np.save(project / "odd" / "two" / f"{name}.npy", np.zeros((1, 1, 16)))
    np.save(project / "odd" / "twice" / "a.npy", np.zeros((1, 1, 16)))
    np.savez(project / "odd" / "twice" / "a.npz", x=np.zeros((1, 1, 16)))
    np.save(project / "odd" / "wide.npy", np.zeros((3, 2, 16)))
    np.save(project / "odd" / "objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--input", "nowhere", "--out", "p.npz"], 1, "there is no file or folder nowhere"),
        (["--input", "test/x.npy", "--out", "p.nii.gz"], 2, "--out must end in .npz"),
        (["--input", "test/x.npy", "--out", "p.npz", "--format", "dicom"], 2, "is for volumes"),
        (["--input", "odd/two", "--out", "p.npz"], 2, "odd/two gives a folder of predictions, and --out p.npz ends in"),
        (["--input", "test", "--out", "p.nii.gz"], 2, "--out p.nii.gz ends in .nii.gz, as a file does: leave .nii.gz"),
        (["--input", "test/x.npy", "--out", "p.npz", "--window", "1"], 2, "--window wants two numbers"),
        (["--input", "test/x.npy", "--out", "p.npz", "--patch", "a,b"], 2, "must be numbers with commas between"),
        (["--input", "w.safetensors", "--out", "p.npz"], 1, "holds no file of kind"),
        (["--input", "odd/empty", "--out", "p"], 1, "odd/empty holds no npy or npz files"),
        (["--input", "odd/twice", "--out", "p"], 1, "odd/twice has two files named a"),
        (
            ["--input", "odd/wide.npy", "--out", "p.npz"],
            1,
            "the model cannot take a batch of shape (1, 2, 16) from wide",
        ),
        (["--input", "odd/objects.npy", "--out", "p.npz"], 1, "is no npy file of plain numbers"),
    ],
)
def test_predict_says_what_is_wrong(inn: Inn, odd_inputs: None, words: list[str], code: int, message: str) -> None:
    shown = inn("predict", *NET, *words)

    assert shown.exit_code == code and message in " ".join(shown.stderr.split())
    assert not list(Path().glob("p*.npz*")) and not list(Path().glob("p.nii*"))


def test_a_folder_with_one_input_gives_the_file_that_was_asked_for(inn: Inn, tmp_path: Path) -> None:
    shown = inn("predict", *NET, "--input", "test", "--out", tmp_path / "p.npz")

    assert shown.exit_code == 0, shown.output
    record = load_npz(tmp_path / "p.npz")
    assert record.target is not None and len(record.point) == 24


def test_a_file_holds_what_the_help_says(inn: Inn, tmp_path: Path) -> None:
    calibrated = tmp_path / "c.safetensors"
    inn("calibrate", *NET, "--data", "held-out", "--out", calibrated)

    for name, source in (("net.safetensors", "test/x.npy"), (calibrated, "test")):
        inn("predict", "--net", name, *MODEL, "--input", source, "--out", tmp_path / "p.npz", "--overwrite")

        names = {"point", "below", "above", "promise", "input"} | ({"target"} if source == "test" else set())
        with np.load(tmp_path / "p.npz") as file:
            assert set(file) == names
        said = " ".join(inn("predict", "--help").stdout.split())
        assert all(name in said for name in (*names, "score, where it is not the width", "dims", "spacing", "unit"))


def test_what_is_promised_goes_along_to_the_page(inn: Inn, tmp_path: Path) -> None:
    calibrated, page = tmp_path / "c.safetensors", tmp_path / "page.html"
    inn("calibrate", *NET, "--data", "held-out", "--out", calibrated)
    words = ["--input", "test/x.npy", "--out", tmp_path / "p.npz", "--overwrite"]

    found = json.loads(inn("predict", "--net", calibrated, *MODEL, *words, "--json").stdout)
    inn("view", tmp_path / "p.npz", "--export", page)
    assert "at most 0.1" in found["promise"] and load_npz(tmp_path / "p.npz").promise == found["promise"]
    assert found["promise"] in page.read_text()

    found = json.loads(inn("predict", *NET, *words, "--json").stdout)
    inn("view", tmp_path / "p.npz", "--export", page, "--overwrite")
    assert found["promise"] is None and "None: the network was not calibrated." in page.read_text()


def test_a_promise_is_not_carried_over_to_blended_patches(inn: Inn, tmp_path: Path, image_net: list[str]) -> None:
    import userproject

    net = intervalnn.load("image.safetensors", userproject.image_net().eval())
    images = torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        intervalnn.calibrate(net, [(images, net.model(images) + 0.05)], coverage=0.9)
    net.save(tmp_path / "c.safetensors")
    nibabel.save(nibabel.Nifti1Image(np.zeros((8, 8, 2), np.int16), np.eye(4)), tmp_path / "scan.nii")
    words = ["--net", tmp_path / "c.safetensors", *image_net[2:], "--input", tmp_path / "scan.nii", "--format", "npz"]

    for out, patches in {
        "whole": [],
        "cut": ["--patch", "8,8"],
        "blended": ["--patch", "6,6", "--overlap", 0.5],
    }.items():
        shown = inn("predict", *words, *patches, "--out", tmp_path / f"{out}.npz")
        assert shown.exit_code == 0, shown.output

        promise = load_npz(tmp_path / f"{out}.npz").promise
        assert "at most 0.1" in promise and ("need not hold" in promise) == (out == "blended")
        assert promise in " ".join(shown.stdout.split())


@pytest.mark.parametrize(("out", "hint"), [("p.nii.gz", "leave .nii.gz out"), ("p.npz", "add --format npz")])
def test_a_volume_gives_no_folder_that_looks_like_a_file(
    inn: Inn, tmp_path: Path, image_net: list[str], out: str, hint: str
) -> None:
    nibabel.save(nibabel.Nifti1Image(np.zeros((8, 8, 2), np.int16), np.eye(4)), tmp_path / "scan.nii")

    shown = inn("predict", *image_net, "--input", tmp_path / "scan.nii", "--out", tmp_path / out)

    said = " ".join(shown.stderr.split())
    assert shown.exit_code == 2 and "a volume gives a folder" in said and hint in said
    assert [path.name for path in tmp_path.iterdir()] == ["scan.nii"]


def test_a_nifti_volume_gives_nifti_files_on_its_grid(inn: Inn, tmp_path: Path, image_net: list[str]) -> None:
    affine = np.diag([-0.5, -0.5, 2.0, 1.0])
    stored = np.random.default_rng(0).integers(-900, 900, (8, 8, 3)).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(stored, affine), tmp_path / "scan.nii.gz")

    shown = inn("predict", *image_net, "--input", tmp_path / "scan.nii.gz", "--out", tmp_path / "out")

    assert shown.exit_code == 0, shown.output
    record = load_nifti(tmp_path / "out" / "point.nii.gz")
    assert (record.unit, record.promise) == ("HU", "None: the network was not calibrated.")
    parts = {name: nibabel.load(tmp_path / "out" / f"{name}.nii.gz") for name in ("lower", "point", "upper")}
    np.testing.assert_allclose(parts["point"].affine, affine)
    width = parts["upper"].get_fdata() - parts["lower"].get_fdata()
    np.testing.assert_allclose(width, 0.3 * 2000, rtol=1e-4)  # of 2000 Hounsfield units between 0 and 1


@pytest.mark.filterwarnings("default:1 files skipped")
def test_a_volume_that_cannot_be_read_is_named(inn: Inn, tmp_path: Path, image_net: list[str]) -> None:
    nibabel.save(nibabel.Nifti1Image(np.zeros((8, 8, 2), np.int16), np.eye(4)), tmp_path / "good.nii")
    (tmp_path / "bad.nii").write_text("no volume at all")
    words = ["predict", *image_net, "--input", tmp_path, "--out"]

    shown, found = inn(*words, tmp_path / "a"), json.loads(inn(*words, tmp_path / "b", "--json").stdout)

    assert (
        shown.exit_code == 0 and "Warning: 1 files skipped" in shown.stderr and "bad.nii could not be" in shown.stderr
    )
    assert "bad.nii could not be read" in found["warnings"][0]


def test_several_volumes_give_a_folder_each(inn: Inn, tmp_path: Path, image_net: list[str]) -> None:
    for name in ("first", "second"):
        image = nibabel.Nifti1Image(np.zeros((8, 8, 2), np.int16), np.eye(4))
        nibabel.save(image, tmp_path / f"{name}.nii")

    as_nifti = inn(
        "predict", *image_net, "--input", tmp_path, "--out", tmp_path / "a", "--patch", "4,4", "--overlap", 0.25
    )
    as_npz = inn(
        "predict", *image_net, "--input", tmp_path / "first.nii", "--out", tmp_path / "b.npz", "--format", "npz"
    )

    assert as_nifti.exit_code == as_npz.exit_code == 0
    names = {path.relative_to(tmp_path / "a").as_posix() for path in (tmp_path / "a").rglob("point*")}
    assert names == {"first/point.nii.gz", "second/point.nii.gz"}
    assert load_npz(tmp_path / "b.npz").unit == "HU"


def test_a_dicom_series_gives_series_that_belong_to_it(inn: Inn, tmp_path: Path, image_net: list[str]) -> None:
    series(tmp_path / "study")

    shown = inn("predict", *image_net, "--input", tmp_path / "study", "--out", tmp_path / "out")

    assert shown.exit_code == 0, shown.output
    slices = sorted((tmp_path / "out" / "upper").iterdir())
    source = pydicom.dcmread(min((tmp_path / "study").iterdir()))
    assert len(slices) == 4
    assert pydicom.dcmread(slices[0]).StudyInstanceUID == source.StudyInstanceUID
    assert "not calibrated" in pydicom.dcmread(slices[0]).DerivationDescription


# --- evaluate and explain ---


def test_evaluate_measures_networks_and_methods_on_the_same_samples(inn: Inn, tmp_path: Path) -> None:
    methods = ["--method", "flat=userproject:flat", "--method", "intervalnn:MCDropout"]
    data = ["--data", "test", "--held-out", "held-out", "--coverage", 0.8]

    shown = inn("evaluate", "--net", "INN=net.safetensors", *methods, *MODEL, *data, "--out", tmp_path / "r.json")

    assert shown.exit_code == 0, shown.output
    assert all(word in shown.stdout for word in ("INN", "flat", "MCDropout", "winkler at equal coverage"))
    results = intervalnn.Results.load(tmp_path / "r.json")
    assert results.methods == ["INN", "flat", "MCDropout"] and results.runs[0].coverage == 0.8
    assert 0.7 < results.spread("INN", "coverage at equal coverage").mean < 0.95
    assert len(results.per_run("INN", "mse")[0]) == 24


def test_evaluate_takes_metrics_by_name(inn: Inn, tmp_path: Path) -> None:
    words = ["evaluate", "--net", "net.safetensors", *MODEL, "--data", "test", "--out", tmp_path / "r.json"]

    shown = inn(*words, "--metric", "mae", "--metric", "coverage", "--json")
    wrong = inn(*words, "--metric", "covrage", "--overwrite")

    assert json.loads(shown.stdout)["methods"]["net"].keys() == {"mae", "coverage", "seconds", "peak_mib"}
    assert wrong.exit_code == 2 and "no metric 'covrage'; did you mean 'coverage'" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "Give something to measure"),
        (["--net", "a/net.safetensors", "--net", "net.safetensors"], 2, "there are two named 'net'"),
        (["--net", "flat=net.safetensors", "--method", "userproject:flat"], 2, "are both named 'flat'"),
        (["--method", "userproject:unchanged"], 1, "method 'unchanged' must have predict(x) -> Prediction"),
        (["--method", "userproject:image_net"], 1, "userproject:image_net takes (), and was called otherwise"),
        (["--method", "userproject:broken"], 1, "This was raised in userproject:broken."),
    ],
)
def test_evaluate_says_what_is_wrong(inn: Inn, tmp_path: Path, words: list[str], code: int, message: str) -> None:
    shown = inn("evaluate", *words, *MODEL, "--data", "test", "--out", tmp_path / "r.json")

    assert shown.exit_code == code and message in shown.stderr


def test_explain_shows_and_draws_every_parameter(inn: Inn, tmp_path: Path) -> None:
    shown = inn("explain", *NET, "--data", "test", "--plot", tmp_path / "layers.png")
    found = json.loads(inn("explain", *NET, "--data", "test", "--json").stdout)

    assert shown.exit_code == 0 and "What opens the bounds" in shown.stdout
    assert (tmp_path / "layers.png").stat().st_size > 5000
    assert [row["name"] for row in found["parameters"]] == ["3.weight", "3.bias", "scout 0"]
    assert sum(row["share"] for row in found["parameters"]) == pytest.approx(1)


@pytest.mark.rotating
def test_export_writes_a_file_that_runs_without_the_library(inn: Inn, tmp_path: Path) -> None:
    shown = inn("export", *NET, "--data", "test", "--out", tmp_path / "net.pt2", "--tolerance", "0.01", "--json")
    again = inn("export", *NET, "--data", "test", "--out", tmp_path / "net.pt2")

    assert shown.exit_code == 0 and (tmp_path / "net.pt2").exists() and (tmp_path / "net.pt2.json").exists()
    assert json.loads(shown.stdout)["card"]["verification"]["of_width"] == 0.01
    assert again.exit_code != 0 and "there" in again.stderr


# --- view and report ---


def test_view_exports_a_part_of_a_prediction(inn: Inn, tmp_path: Path) -> None:
    inn("predict", *NET, "--input", "test/x.npy", "--out", tmp_path / "p.npz")
    words = ["view", tmp_path / "p.npz", "--export", tmp_path / "page.html"]

    shown, again = inn(*words, "--slices", "2:6:2", "--unit", "mm"), inn(*words)
    wrong, aimless = inn(*words, "--slices", "a", "--overwrite"), inn(*words[:2], "--slices", "1:2")
    text, short = (inn(*words[:3], tmp_path / name) for name in ("page.txt", "short.htm"))

    assert shown.exit_code == 0 and "mm" in (tmp_path / "page.html").read_text()
    assert again.exit_code == 1 and "is there already" in again.stderr
    assert wrong.exit_code == 2 and "START:STOP:STEP, got 'a'" in wrong.stderr
    assert aimless.exit_code == 2 and "--slices is for --export" in aimless.stderr
    assert text.exit_code == 2 and "must end in .html or .htm, got" in " ".join(text.stderr.split())
    assert not (tmp_path / "page.txt").exists()
    assert short.exit_code == 0 and (tmp_path / "short.htm").exists()


def test_report_writes_a_page_of_what_evaluate_wrote(inn: Inn, tmp_path: Path) -> None:
    results = tmp_path / "results"
    inn("evaluate", "--net", "INN=net.safetensors", *MODEL, "--data", "test", "--out", results / "run.json")

    shown = inn("report", results, "--out", tmp_path / "page.html")

    assert shown.exit_code == 0, shown.output
    assert "INN" in (tmp_path / "page.html").read_text()
    assert inn("report", results, "--out", tmp_path / "page.html").exit_code == 1
    (tmp_path / "page.html").unlink()
    again = inn("report", results, "--out", tmp_path / "page.html")
    assert again.exit_code == 1 and "page-tables is there already" in " ".join(again.stderr.split())
    assert inn("report", results, "--out", tmp_path / "page.html", "--overwrite").exit_code == 0


# --- for real ---


@pytest.mark.slow
def test_the_whole_way_in_processes_of_their_own(project: Path, tmp_path: Path) -> None:
    def run(*words: object) -> dict[str, Any]:
        command = [sys.executable, "-m", "intervalnn.cli", *map(str, words), "--json"]
        shown = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)  # type: ignore[no-any-return]

    net, calibrated = tmp_path / "net.safetensors", tmp_path / "calibrated.safetensors"

    fitted = run("fit", *MODEL, "--data", "train", "--layers", 1, "--epochs", 20, "--out", net)
    promised = run("calibrate", "--net", net, *MODEL, "--data", "held-out", "--out", calibrated)
    run("predict", "--net", calibrated, *MODEL, "--input", "test", "--out", tmp_path / "p")
    found = run("evaluate", "--net", f"INN={calibrated}", *MODEL, "--data", "test", "--out", tmp_path / "r" / "1.json")
    rows = run("explain", "--net", calibrated, *MODEL, "--data", "test")["parameters"]
    page = run("report", tmp_path / "r", "--out", tmp_path / "report.html")

    record = load_npz(tmp_path / "p" / "x.npz")
    assert record.target is not None
    inside = (record.target >= record.point - record.below) & (record.target <= record.point + record.above)
    assert found["methods"]["INN"]["coverage"] == pytest.approx(inside.mean(), abs=1e-3)
    assert fitted["parameters"] == [row["name"] for row in rows] and "at most 0.1" in promised["promise"]
    assert Path(page["out"]).stat().st_size > 1000


@pytest.mark.slow
def test_several_processes_fit_one_network(project: Path, tmp_path: Path) -> None:
    fit = ["fit", *MODEL, "--data", "train", "--epochs", "2", "--json", "--out"]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "intervalnn.cli"]

    shown = [
        subprocess.run([sys.executable, *start, *fit, tmp_path / name], cwd=project, capture_output=True, text=True)
        for start, name in ((launcher, "two.safetensors"), (["-m", "intervalnn.cli"], "one.safetensors"))
    ]

    two, one = (json.loads(each.stdout) for each in shown)
    assert two["width"] == pytest.approx(one["width"], rel=1e-4) and two["coverage"] == one["coverage"]
    assert not (tmp_path / "two.safetensors.checkpoint").exists()


@pytest.mark.slow
def test_view_serves_until_ctrl_c(inn: Inn, tmp_path: Path) -> None:
    inn("predict", *NET, "--input", "test/x.npy", "--out", tmp_path / "at home.npz")
    command = [sys.executable, "-m", "intervalnn.cli", "view", tmp_path / "at home.npz", "--no-browser", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        with urllib.request.urlopen(address, timeout=30) as answer:
            page = answer.read().decode()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    finally:
        process.kill()

    assert "<html" in page and (process.returncode, rest) == (0, "")
