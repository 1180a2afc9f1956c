"""Container: one file of tensors and settings that is read whole or not at all."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from intervalnn.files.limits import check_file
from intervalnn.files.whole import replacing

__all__ = ["VERSION", "read", "read_tensors", "sha256", "verify_archive", "write"]

VERSION = 1  # of the format; raise it when older code would misread a file
FOLDER = 0x10  # among the attributes in an archive: torch takes a record so marked as there, and reads nothing
HEADER = 100_000_000  # bytes that safetensors allows for the table of tensors at the start
KEY = "intervalnn"  # the one key of the metadata, since several are written in random order


def write(path: str | Path, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write settings and tensors to a file, the same bytes each time; a file already there is lost only then.

    Args:
        path: Where to; missing folders are made.
        settings: Plain values, as JSON can hold them.
        tensors: By name.
    """
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = _dump({"version": VERSION, "settings": settings, "sha256": _checksum(settings, own)})
    with replacing(path) as temporary:
        try:
            save_file(own, temporary, metadata={KEY: text})
        except SafetensorError as error:
            raise OSError(str(error)) from error


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the settings and tensors of a file that :func:`write` wrote, or refuse it."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file; intervalnn.saving.hub.from_pretrained takes a folder")
    tensors, metadata = read_tensors(path)
    document = _document(path, metadata)
    if document.get("sha256") != _checksum(document.get("settings"), tensors):
        raise ValueError(f"{path} is damaged: its contents do not match their checksum; save it anew")
    return document["settings"], tensors


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata of a safetensors file.

    The file is opened once, since another process may replace it at any time: safetensors opens it twice, and takes
    the places of one file for the numbers of another.
    """
    check_file(path)
    with path.open("rb") as file:
        start = file.read(9)
        if int.from_bytes(start[:8], "little") > HEADER or start[8:] != b"{":  # told before all of it is read
            raise ValueError(f"{path} is no safetensors file: it must start with a table of its tensors")
        content = start + file.read()
    try:
        tensors = {name: tensor.clone() for name, tensor in load(content).items()}
    except SafetensorError as error:
        raise ValueError(f"{path} is no safetensors file, or a part of one only ({error})") from error
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])  # load would have refused another
    return tensors, header.get("__metadata__") or {}


def verify_archive(path: str | Path) -> None:
    """Refuse a file of ``torch.save`` that is damaged, since torch itself does not look at the checksums in it."""
    path = Path(path)
    check_file(path)
    with zipfile.ZipFile(path) as archive:
        if sum(each.file_size for each in archive.infolist()) > path.stat().st_size:
            raise ValueError("it unpacks to more than it has, and torch packs nothing")
        damaged = archive.testzip()
        folders = [each.filename for each in archive.infolist() if each.external_attr & FOLDER]
    if damaged is not None or folders:
        raise ValueError(f"{damaged or folders[0]} does not match its checksum, or is called a folder")


def _document(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    if KEY not in metadata:
        raise ValueError(f"{path} was not written by intervalnn: its metadata must have the key '{KEY}'")
    try:
        document = json.loads(metadata[KEY])
    except ValueError as error:
        raise ValueError(f"{path} is damaged: its metadata is no JSON ({error})") from error
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int or version < 1:
        raise ValueError(f"{path} is damaged: the version of its format must be a number from 1, got {version!r}")
    if version > VERSION:
        raise ValueError(f"{path} has format version {version}, and this intervalnn reads up to {VERSION}; update it")
    assert isinstance(document, dict)
    return document


def _checksum(settings: Any, tensors: Mapping[str, Tensor]) -> str:
    """Return one checksum over settings, and name, dtype, shape and numbers of all tensors."""
    parts = [[name, str(t.dtype), list(t.shape), sha256(t)] for name, t in sorted(tensors.items())]
    return hashlib.sha256(_dump([settings, parts]).encode()).hexdigest()


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def sha256(tensor: Tensor) -> str:
    """Return the checksum of the numbers of a tensor, whatever its device and strides."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().data).hexdigest()
