"""File: an interval network written for another runtime, with its card, whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from intervalnn.calibration.calibration import Calibration
from intervalnn.files.whole import beside
from intervalnn.network.network import IntervalNetwork
from intervalnn.saving.exporting.agreement import Allowed, SizeError, agreement
from intervalnn.saving.exporting.card import card
from intervalnn.saving.exporting.example import Example
from intervalnn.saving.exporting.names import flat
from intervalnn.saving.exporting.runtime import Runtime
from intervalnn.saving.exporting.runtimes import RUNTIMES
from intervalnn.saving.exporting.sizes import other_sizes
from intervalnn.saving.exporting.standalone import Standalone, standalones
from intervalnn.saving.saving import settings_of

__all__ = ["export"]

_OUTPUTS = ("point", "lower", "upper", "below", "above", "score", "direction")


def export(
    net: IntervalNetwork,
    example: Any,
    path: str | Path,
    *,
    outputs: Sequence[str] = ("point", "lower", "upper"),
    dynamic: bool = True,
    verify: bool = True,
    tolerance: float = 1e-4,
    overwrite: bool = False,
    name: str | None = None,
    licence: str | None = None,
) -> dict[str, Any]:
    """Write an interval network to a file that runs without this library, and a card beside it.

    The file takes what the model takes, by the model's own names, and returns the prediction with
    its bounds, offsets and calibration included: exactly ``lower <= point <= upper``. Weights are
    split once, here. The batch and the size of the signal may vary where torch can follow them
    through the model, and the runtime as well; sizes that the card gives as numbers are fixed. The
    file holds neither the example nor anything of this machine, and the same network gives the same
    bytes.

    A compiled package is machine code for the device of the network and for processors like this one. It does
    hold paths of this machine, so its bytes differ each time. It cannot refuse sizes, so only those vary that
    the model takes without a condition: where height and width must be multiples of 16, they are the example's.
    Compiling takes from seconds to minutes, and a C++ compiler.

    Args:
        net: The network.
        example: What the model takes: a tensor, a tuple of arguments, or a mapping of them by name.
        path: Where to. ``.onnx`` for ONNX (needs the extra ``onnx``), ``.pt2`` for ``torch.export``,
            ``.aoti.pt2`` for a package compiled by AOTInductor. The card gets the same name with ``.json``
            behind it.
        outputs: What to return of each prediction: of ``"point"``, ``"lower"``, ``"upper"``, ``"below"``,
            ``"above"``, ``"score"`` and ``"direction"``.
        dynamic: Let sizes vary. Without it all are those of the example, and exporting is quicker.
        verify: Run the file, on the example and at other sizes, and compare it with the network.
        tolerance: How far the bounds may then differ, as a share of their width, beside rounding of the point; in
            float16 and bfloat16 at least a few of their roundings.
        overwrite: Replace a file that is already there.
        name: What the card calls it; by default the class of the model.
        licence: What the card says of the licence, if anything.

    Returns:
        The card.

    Raises:
        ValueError: If the model does not take the example, or the runtime cannot express an operation.
        RuntimeError: If the file does not compute what the network does, or if there is no compiler for one that
            is compiled; nothing is left of it then.

    Example:
        >>> import tempfile, torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()).eval()
        >>> net = IntervalNetwork(model, layers="all")
        >>> net.set_gaps("0.bias", below=0.1, above=0.2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     card = export(net, torch.ones(4, 2), f"{folder}/net.pt2")
        ...     run = torch.export.load(f"{folder}/net.pt2").module()
        >>> card["inputs"]
        [{'name': 'input', 'shape': ['batch', 2], 'dtype': 'float32'}]
        >>> sorted(run(torch.zeros(1, 2)))
        ['lower', 'point', 'upper']
    """
    path, runtime = _target(path, overwrite)
    runtime.check(run=verify)
    _check(net, outputs, tolerance)
    given = Example.of(net.model, example)
    args, kwargs = given.arguments
    predicted = net.predict(*args, **kwargs)
    _refuse_complex(predicted)
    given = given.apart_from({*outputs, *flat(predicted, outputs)})
    settings = settings_of(net)
    several = given.several(net.model) if dynamic else given
    attempts = _programs(net, given, several, outputs, dynamic=dynamic, conditions=not runtime.compiled)
    with beside(path) as folder:
        file = folder / path.name
        verification = None
        for program, traced in attempts:
            versions = settings["versions"] | runtime.write(program, file)
            if not verify:
                break
            calls = [given, *other_sizes(net, program, traced)]
            try:
                verification = _verification(net, runtime, file, calls, outputs, tolerance)
                break
            except SizeError:
                if not program.varying(given):
                    raise  # else fewer sizes may vary
        about = {"name": name or type(net.model).__name__} | ({"licence": licence} if licence else {})
        about |= {"format": runtime.format, "versions": versions}
        about |= card(net, settings, program, file) | {"verification": verification}
        _card_of(file).write_text(json.dumps(_finite(about), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        for part in sorted(folder.iterdir(), key=lambda part: part == file):  # the file itself last
            _settle(part, path.parent)
    return about


def _programs(
    net: IntervalNetwork, given: Example, traced: Example, outputs: Sequence[str], **options: bool
) -> Iterator[tuple[Standalone, Example]]:
    """Yield a network as one program, for fewer and fewer sizes, and the call of which it was made."""
    for program in standalones(net, traced, outputs, **options):
        if traced is not given and not program.takes(given):  # torch has fixed the size of the batch after all
            yield from _programs(net, given, given, outputs, **options)
            return
        yield program, traced


def _finite(value: Any) -> Any:
    """Return a value with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _target(path: str | Path, overwrite: bool) -> tuple[Path, Runtime]:
    path = Path(path).resolve()
    runtime = next((runtime for end, runtime in RUNTIMES.items() if path.name.endswith(end)), None)
    if runtime is None:
        *ends, last = RUNTIMES
        raise ValueError(f"path must end in {', '.join(ends)} or {last}, got '{path.name}'")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it")
    for there in (path, _card_of(path)):
        if there.exists() and not overwrite:
            raise FileExistsError(f"there is already a file {there}; set overwrite=True to replace it")
    return path, runtime


def _card_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _check(net: IntervalNetwork, outputs: Sequence[str], tolerance: float) -> None:
    if not isinstance(net, IntervalNetwork):
        raise TypeError(f"net must be an IntervalNetwork, got {type(net).__name__}")
    if isinstance(outputs, str) or not outputs or len(set(outputs)) < len(outputs) or not {*outputs} <= {*_OUTPUTS}:
        raise ValueError(f"outputs must be some of {', '.join(_OUTPUTS)}, each once, got {outputs!r}")
    if not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance must be a share of the width, 1e-4 for a ten-thousandth, got {tolerance}")
    if isinstance(net.calibration, Calibration) and net.calibration.groups.kind == "function":
        raise ValueError(
            "the network was calibrated in groups by a function, which may name a group that was never met, and a file "
            "cannot refuse that; calibrate it without groups, by width or by regions"
        )


def _refuse_complex(predictions: Any) -> None:
    if any(leaf.is_complex() for leaf in flat(predictions, ["point"]).values()):
        raise TypeError("complex predictions have no order; let the model return real and imaginary part apart")


def _verification(
    net: IntervalNetwork, runtime: Runtime, file: Path, calls: list[Example], outputs: Sequence[str], tolerance: float
) -> dict[str, Any]:
    """Run a file on some calls, each size once, and return how far it differs from the network."""
    try:
        run = runtime.open(file)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise RuntimeError(
            f"{' and '.join(runtime.runners)} cannot load what was written ({reason}); it may not "
            "know the network's data types: set verify=False to write it for another runtime, or export to a .pt2 file"
        ) from error
    once = {tuple(call.shapes): call for call in calls}.values()
    dtypes = {leaf.dtype for leaf in net.model.parameters() if leaf.is_floating_point()}
    point = max(dtypes, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float32)
    allowed = Allowed.for_dtypes(tolerance, point, net.form.gap_dtype or point)
    found = [agreement(run, net, call, outputs, allowed) for call in once]
    runners = {name: version(name) for name in runtime.runners}
    return {"runtime": runners} | asdict(allowed) | {"calls": found}


def _settle(part: Path, folder: Path) -> None:
    """Move a file to where it belongs, once it is on the disk."""
    with part.open("rb+") as stream:
        os.fsync(stream.fileno())
    part.replace(folder / part.name)
