"""Saving: what is loaded predicts bit for bit the same, and what is not whole is refused."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.calibration.calibration import calibrate
from intervalnn.calibration.guarantee import Offsets
from intervalnn.files import container
from intervalnn.files import whole as files
from intervalnn.prediction import Prediction
from intervalnn.saving.fingerprint import difference, fingerprint


def small_model(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers = (nn.Conv1d(1, 3, 3, padding=1), nn.BatchNorm1d(3), nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(12, 2))
    return nn.Sequential(*layers).eval()


def inputs(n: int = 40) -> Tensor:
    return torch.randn(n, 1, 4, generator=torch.Generator().manual_seed(1))


def small_net(model: nn.Module | None = None, layers: Any = ("4",), **options: Any) -> inn.IntervalNetwork:
    """Return a network whose gaps are random numbers, some of them negative as training leaves them."""
    net = inn.IntervalNetwork(small_model() if model is None else model, layers, **options)
    if isinstance(layers, int):
        net(inputs(2))
    noise = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for gap in net.parameters():
            gap.copy_(torch.rand(gap.shape, generator=noise) * 0.2 - 0.02)
    return net


def calibrated(net: inn.IntervalNetwork, groups: Any = None) -> inn.IntervalNetwork:
    x = inputs()
    y = net.model(x).detach() + 0.2 * torch.randn(len(x), 2, generator=torch.Generator().manual_seed(3))
    calibrate(net, [(x[:20], y[:20]), (x[20:], y[20:])], coverage=0.5, groups=groups)
    return net


def by_sign(prediction: Prediction) -> Tensor:
    return (prediction.point > 0).long()


def assert_equal(a: inn.IntervalNetwork, b: inn.IntervalNetwork) -> None:
    """Compare all that is saved of two networks; unlike a prediction, this captures no program."""
    assert (a.names, a.kind, a.cap, a.form, a.offsets) == (b.names, b.kind, b.cap, b.form, b.offsets)
    ours, theirs = a.state_dict(), b.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name]), name
    assert difference(fingerprint(a.model), fingerprint(b.model)) is None


def assert_same(a: inn.IntervalNetwork, b: inn.IntervalNetwork) -> None:
    assert_equal(a, b)
    p, q = a.predict(inputs()), b.predict(inputs())
    for part in ("point", "below", "above", "score"):
        assert getattr(p, part).dtype == getattr(q, part).dtype
        assert torch.equal(getattr(p, part), getattr(q, part))


# --- what comes back ---


@pytest.mark.parametrize(
    "options",
    [
        {"layers": ["4.bias"], "cap": 0.05},
        {"layers": "all", "exact": True},
        {"layers": lambda name, module: isinstance(module, nn.Conv1d)},
        {"layers": "all", "kind": "symmetric"},
        {"layers": "all", "kind": "input", "cap": float("inf")},
        {"layers": []},
    ],
    ids=lambda options: "-".join(options),
)
def test_gaps_and_layers_come_back(options: dict[str, Any], tmp_path: Path) -> None:
    net = small_net(**options)

    net.save(tmp_path / "net.safetensors")
    again = inn.load(tmp_path / "net.safetensors", small_model())

    assert_equal(net, again)


@pytest.mark.parametrize(
    "options", [{"layers": 1}, {"layers": "all", "gap_dtype": torch.bfloat16}], ids=lambda options: "-".join(options)
)
def test_a_loaded_network_predicts_bit_for_bit_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    net = small_net(**options)

    net.save(tmp_path / "net.safetensors")
    again = inn.load(tmp_path / "net.safetensors", small_model())

    assert again.weight_intervals().keys() == net.weight_intervals().keys()  # before any call
    assert_same(net, again)


@pytest.mark.parametrize("groups", [None, "width", torch.tensor([0, 1])], ids=["one", "width", "regions"])
def test_calibration_and_offsets_come_back(groups: Any, tmp_path: Path) -> None:
    net = small_net()
    net.offsets = Offsets(below=0.1 + 0.2, above=-1e-3)
    calibrated(net, groups)

    net.save(str(tmp_path / "net.safetensors"))
    again = inn.load(str(tmp_path / "net.safetensors"), small_model())

    assert_same(net, again)
    assert again.calibration.promise == net.calibration.promise  # type: ignore[union-attr]
    assert again.calibration.settings() == net.calibration.settings()  # type: ignore[union-attr]


def test_groups_by_a_function_need_it_again(tmp_path: Path) -> None:
    net = calibrated(small_net(), by_sign)
    net.save(tmp_path / "net.safetensors")

    with pytest.raises(ValueError, match="by a function, which is not saved; give it as groups"):
        inn.load(tmp_path / "net.safetensors", small_model())
    assert_same(net, inn.load(tmp_path / "net.safetensors", small_model(), groups=by_sign))


def test_groups_for_a_network_without_them_are_refused(tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors")

    with pytest.raises(ValueError, match="takes no groups"):
        inn.load(tmp_path / "net.safetensors", small_model(), groups=by_sign)


def test_how_it_was_trained_and_by_what_is_kept(tmp_path: Path) -> None:
    net = small_net()
    net.training_settings = {"recipe": "paper", "lr": 1e-5, "epochs": [1, 2]}

    net.save(tmp_path / "net.safetensors")
    again = inn.load(tmp_path / "net.safetensors", small_model())
    stored, _ = container.read(tmp_path / "net.safetensors")

    assert again.training_settings == net.training_settings
    assert stored["versions"] == {"intervalnn": inn.__version__, "torch": str(torch.__version__)}


def test_a_loaded_network_can_be_trained_further_and_saved_again(tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors")
    net = inn.load(tmp_path / "net.safetensors", small_model())

    net(inputs()).width.mean().backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    net.save(tmp_path / "net.safetensors")

    assert_equal(net, inn.load(tmp_path / "net.safetensors", small_model()))


def test_tied_and_complex_and_double_weights_come_back(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            torch.manual_seed(seed)
            self.first = nn.Linear(4, 4, dtype=torch.float64)
            self.second = nn.Linear(4, 4, dtype=torch.float64)
            self.second.weight = self.first.weight
            self.turn = nn.Parameter(torch.randn(4, dtype=torch.complex128))
            self.register_buffer("count", torch.tensor(seed))
            self.register_buffer("shift", torch.full((4,), float(seed), dtype=torch.float64), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return (self.second(self.first(x)) * self.turn).real + self.shift

    net = inn.IntervalNetwork(Odd(1).eval(), "all")
    with torch.no_grad():
        for gap in net.parameters():
            gap.fill_(0.01)
    x = torch.ones(2, 4, dtype=torch.float64)

    net.save(tmp_path / "net.safetensors", include_model=True)
    again = inn.load(tmp_path / "net.safetensors", Odd(2).eval())

    assert torch.equal(again.predict(x).lower, net.predict(x).lower)
    assert torch.equal(again.predict(x).point, net.predict(x).point)


# --- the underlying model ---


def test_weights_in_the_file_fill_a_model_built_anew(tmp_path: Path) -> None:
    net = calibrated(small_net())
    net.save(tmp_path / "net.safetensors", include_model=True)
    fresh = small_model(seed=5)

    again = inn.load(tmp_path / "net.safetensors", fresh)

    assert again.model is fresh
    assert_same(net, again)


def test_verify_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors", include_model=True)
    other = small_model(seed=5)
    before = fingerprint(other)

    with pytest.raises(ValueError, match=r"parameter '0\.weight' must have values of sha256 .* leave out verify"):
        inn.load(tmp_path / "net.safetensors", other, verify=True)

    assert fingerprint(other) == before


def test_a_model_of_another_structure_is_not_filled(tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors", include_model=True)
    other = small_model(seed=5)
    other[2] = nn.Tanh()
    before = fingerprint(other)

    for verify in (False, True):
        with pytest.raises(ValueError, match="class LeakyReLU, got Tanh; give the model that it was saved with"):
            inn.load(tmp_path / "net.safetensors", other, verify=verify)

    assert fingerprint(other) == before


def changed(change: Callable[[nn.Sequential], object]) -> nn.Sequential:
    model = small_model()
    with torch.no_grad():
        change(model)
    return model


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m[4].bias[1].add_(1e-6), r"parameter '4.bias' must have values of sha256 \w+\.\.\., got \w+\.\.\."),
        (lambda m: m[1].running_var[0].mul_(2), "buffer '1.running_var' must have values"),
        (lambda m: m.double(), "parameter '0.weight' must have dtype float32, got float64"),
        (lambda m: setattr(m, "4", nn.Linear(12, 3)), r"parameter '4.weight' must have shape \(2, 12\), got \(3, 12\)"),
        (lambda m: setattr(m, "4", nn.Linear(12, 2, bias=False)), r"must have a parameter '4.bias' of shape \(2,\)"),
        (lambda m: m.append(nn.Linear(2, 2)), "must not have a parameter '5.weight', and has one"),
        (lambda m: m.append(nn.Tanh()), "must not have a module '5', and has one of class Tanh"),
        (lambda m: delattr(m, "3"), "must have a module '3' of class Flatten, and has none"),
        (lambda m: setattr(m, "2", nn.ReLU()), "module '2' must be of class LeakyReLU, got ReLU"),
        (lambda m: setattr(m[2], "negative_slope", 0.2), "module '2' must have negative_slope=0.1, got 0.2"),
        (lambda m: setattr(m[0], "padding_mode", "circular"), "module '0' must have padding_mode='zeros'"),
    ],
)
def test_the_first_difference_is_named(change: Callable[[nn.Sequential], object], message: str, tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors")

    with pytest.raises(ValueError, match=message):
        inn.load(tmp_path / "net.safetensors", changed(change))


def test_weights_that_are_no_longer_tied_are_a_difference() -> None:
    tied, untied = (nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)) for _ in range(2))
    tied[1].weight = tied[0].weight
    untied.load_state_dict(tied.state_dict())

    assert difference(fingerprint(tied), fingerprint(untied)) == (
        "parameter '1.weight' must be tied to '0.weight', got one that is tied to none before it"
    )


def test_a_setting_of_a_later_torch_is_no_difference() -> None:
    model, later = small_model(), small_model()
    later[2].new_setting = 3  # type: ignore[assignment]

    assert difference(fingerprint(model), fingerprint(later)) is None
    assert difference(fingerprint(later), fingerprint(model)) is None


def test_a_model_without_values_is_refused(tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors")
    with torch.device("meta"):
        model = small_model()

    with pytest.raises(ValueError, match=r"parameter '0\.weight' must be a dense tensor with values"):
        inn.load(tmp_path / "net.safetensors", model)


def test_a_model_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="model must be the underlying model"):
        inn.load(tmp_path / "net.safetensors", "UNet")  # type: ignore[arg-type]


# --- what cannot be saved ---


def test_layers_that_are_not_known_yet_cannot_be_saved(tmp_path: Path) -> None:
    net = inn.IntervalNetwork(small_model(), layers=1)

    with pytest.raises(RuntimeError, match=r"call net\(x\) once"):
        net.save(tmp_path / "net.safetensors")

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [("offsets", lambda p: p), ("calibration", lambda p: p), ("training_settings", {"loss": torch.nn.MSELoss})],
)
def test_what_has_no_plain_values_cannot_be_saved(name: str, value: Any, tmp_path: Path) -> None:
    net = small_net()
    setattr(net, name, value)

    with pytest.raises(TypeError, match=f"net.{name} must be"):
        net.save(tmp_path / "net.safetensors")


# --- the file ---


def test_two_saves_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        calibrated(small_net(layers="all"), "width").save(tmp_path / name, include_model=True)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_any_safetensors_reader_can_read_it(tmp_path: Path) -> None:
    net = small_net()
    net.save(tmp_path / "net.safetensors", include_model=True)

    tensors = load_file(tmp_path / "net.safetensors")
    with safe_open(tmp_path / "net.safetensors", "pt") as file:
        metadata = file.metadata()

    assert torch.equal(tensors["gaps.4.weight.below"], net.state_dict()["gaps.4.weight.below"])
    assert torch.equal(tensors["model.4.weight"], net.model[4].weight)  # type: ignore[index]
    assert list(metadata) == ["intervalnn"]
    assert json.loads(metadata["intervalnn"])["version"] == 1


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_umask_is_respected(umask: int, tmp_path: Path) -> None:
    net, before = small_net(), os.umask(umask)
    try:
        net.save(tmp_path / "net.safetensors")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "net.safetensors").stat().st_mode) == 0o666 & ~umask


def test_folders_are_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    small_net().save(tmp_path / "a" / "b" / "net.safetensors")

    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["net.safetensors"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "net.safetensors")

    small_net().save(tmp_path / "link")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "net.safetensors").is_file()


@pytest.mark.parametrize("step", ["save_file", "_sync"])
def test_a_file_is_kept_if_writing_another_fails(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.safetensors"
    small_net().save(path)
    before = path.read_bytes()

    def full(*args: Any, **kwargs: Any) -> None:
        next(tmp_path.glob(".*.tmp/part")).write_bytes(b"half of it")
        raise SafetensorError("No space left on device") if step == "save_file" else OSError("No space left on device")

    monkeypatch.setattr(container if step == "save_file" else files, step, full)
    with pytest.raises(OSError, match="No space left"):
        small_net(layers="all").save(path)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path, nets = tmp_path / "net.safetensors", [small_net(), small_net(layers="all")]
    nets[0].save(path)
    writer = threading.Thread(target=lambda: [nets[i % 2].save(path) for i in range(30)])  # type: ignore[func-returns-value]

    writer.start()
    while writer.is_alive():
        assert inn.load(path, small_model()).names in (nets[0].names, nets[1].names)
    writer.join()


# --- what is refused ---


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.safetensors"):
        inn.load(tmp_path / "none.safetensors", small_model())


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        inn.load(tmp_path, small_model())


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_file_of_others_is_refused(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    save_file(small_model().state_dict(), tmp_path / "net.safetensors", metadata=metadata)

    with pytest.raises(ValueError, match="was not written by intervalnn"):
        inn.load(tmp_path / "net.safetensors", small_model())


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    torch.save(small_model().state_dict(), tmp_path / "net.pt")

    with pytest.raises(ValueError, match="is no safetensors file"):
        inn.load(tmp_path / "net.pt", small_model())


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Tensor]], object]) -> Path:
    """Change the document and the tensors of a file, and leave its checksum as it was."""
    with safe_open(path, "pt") as file:
        document = json.loads(file.metadata()["intervalnn"])
    tensors = load_file(path)
    change(document, tensors)
    save_file(tensors, path, metadata={"intervalnn": json.dumps(document)})
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: d.update(version=2), "has format version 2, and this intervalnn reads up to 1; update it"),
        (lambda d, t: d.update(version="1"), "must be a number from 1, got '1'"),
        (lambda d, t: d.pop("version"), "must be a number from 1, got None"),
        (lambda d, t: d.pop("settings"), "is damaged"),
        (lambda d, t: d["settings"].update(cap=0.5), "is damaged"),
        (lambda d, t: d["settings"].update(names=[]), "is damaged"),
        (lambda d, t: t["gaps.4.bias.above"].add_(1), "is damaged"),
        (lambda d, t: t.update({"gaps.4.bias.above": t["gaps.4.bias.above"].view(torch.int32)}), "is damaged"),
        (lambda d, t: t.pop("gaps.4.bias.above"), "is damaged"),
        (lambda d, t: t.update(more=torch.zeros(1)), "is damaged"),
    ],
)
def test_a_changed_file_is_refused(change: Callable[..., object], message: str, tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors")
    rewritten(tmp_path / "net.safetensors", change)

    with pytest.raises(ValueError, match=message):
        inn.load(tmp_path / "net.safetensors", small_model())


@pytest.mark.parametrize(
    "change",
    [
        lambda s, t: s.pop("kind"),
        lambda s, t: s.update(model=[]),
        lambda s, t: s.update(gap_dtype="load"),
        lambda s, t: s.update(names=["5.weight"]),
        lambda s, t: s.update(names=["0.weight"]),
        lambda s, t: t.pop("gaps.4.bias.above"),
        lambda s, t: t.update({"gaps.4.bias.above": torch.zeros(7)}),
    ],
)
def test_a_whole_file_that_holds_something_else_is_refused(change: Callable[..., object], tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors")
    stored, tensors = container.read(tmp_path / "net.safetensors")
    change(stored, tensors)
    container.write(tmp_path / "net.safetensors", stored, tensors)

    with pytest.raises(ValueError, match=r"net\.safetensors does not hold|the model has no layer"):
        inn.load(tmp_path / "net.safetensors", small_model())


@pytest.mark.parametrize("kind", ["channel", "layer"])
def test_a_file_with_gaps_of_a_kind_that_is_no_more_says_what_to_do(kind: str, tmp_path: Path) -> None:
    small_net().save(tmp_path / "net.safetensors")
    stored, tensors = container.read(tmp_path / "net.safetensors")
    container.write(tmp_path / "net.safetensors", stored | {"kind": kind}, tensors)

    known = "this intervalnn knows 'weight', 'symmetric', 'input'; fit a network with one of these anew"
    with pytest.raises(ValueError, match=rf"net\.safetensors has gaps of kind='{kind}', and {known}"):
        inn.load(tmp_path / "net.safetensors", small_model())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[inn.IntervalNetwork, bytes, Path]:
    net = small_net()
    net.offsets = Offsets(0.25, 0.5)
    calibrated(net, "width")
    path = tmp_path_factory.mktemp("saving") / "net.safetensors"
    net.save(path)
    return net, path.read_bytes(), path


fuzz = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
places = st.floats(0, 1, exclude_max=True)


@fuzz
@given(place=places)
def test_a_file_cut_anywhere_is_refused(whole: tuple[inn.IntervalNetwork, bytes, Path], place: float) -> None:
    _, data, path = whole
    path.write_bytes(data[: int(place * len(data))])

    with pytest.raises(ValueError, match=r"net\.safetensors"):
        inn.load(path, small_model())


@fuzz
@given(flips=st.dictionaries(places, st.integers(1, 255), min_size=1, max_size=3))
def test_flipped_bytes_are_refused_or_change_nothing(
    whole: tuple[inn.IntervalNetwork, bytes, Path], flips: dict[float, int]
) -> None:
    net, data, path = whole
    damaged = bytearray(data)
    for place, bits in flips.items():
        damaged[int(place * len(data))] ^= bits
    path.write_bytes(damaged)

    try:
        again = inn.load(path, small_model())
    except ValueError:
        return
    assert_equal(net, again)  # such as two flips of one byte


@fuzz
@given(data=st.binary(max_size=200))
def test_any_other_bytes_are_refused(whole: tuple[inn.IntervalNetwork, bytes, Path], data: bytes) -> None:
    path = whole[2]
    path.write_bytes(data)

    with pytest.raises(ValueError, match=r"net\.safetensors"):
        inn.load(path, small_model())


SAVING = """
import sys, torch, intervalnn as inn
torch.manual_seed(0)
model = torch.nn.Linear(2, 1).eval()
nets = inn.IntervalNetwork(model, "all"), inn.IntervalNetwork(model, ["bias"])  # whose tensors lie in other places
for net in nets:
    net.set_gaps("bias", below=0.1, above=0.2)
while True:
    for net in nets:
        net.save(sys.argv[1], include_model=net is nets[0])
"""


@pytest.mark.rotating
def test_a_file_that_another_process_saves_again_and_again_is_never_called_damaged(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = nn.Linear(2, 1).eval(), tmp_path / "net.safetensors"
    writer = subprocess.Popen([sys.executable, "-c", SAVING, str(path)])
    try:
        while not path.exists():
            time.sleep(0.1)
            assert writer.poll() is None
        seen = {tuple(inn.load(path, model).names) for _ in range(1000)}
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()
    assert len(seen) == 2  # it was replaced meanwhile
