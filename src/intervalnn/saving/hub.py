"""Hub: an interval network as a folder, as the Hugging Face hub keeps it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from torch import nn

from intervalnn.files.whole import replacing
from intervalnn.network.network import IntervalNetwork
from intervalnn.saving.saving import load, save, settings_of

__all__ = ["CONFIG", "WEIGHTS", "from_pretrained", "save_pretrained"]

# The names that huggingface_hub.ModelHubMixin writes and the hub looks for.
WEIGHTS = "model.safetensors"
CONFIG = "config.json"

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def save_pretrained(folder: str | Path, net: IntervalNetwork, *, include_model: bool = True) -> None:
    """Write an interval network into a folder that can be uploaded to the Hugging Face hub.

    ``model.safetensors`` is the file of :func:`intervalnn.saving.save` and holds all there is.
    ``config.json`` repeats its settings for readers and for the hub, and is never read back.

    Args:
        folder: Where to; made if missing.
        net: The network.
        include_model: Write parameters and buffers of the underlying model too.

    Example:
        >>> import tempfile, torch
        >>> net = IntervalNetwork(nn.Linear(2, 1).eval(), layers="all")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_pretrained(folder, net)
        ...     again = from_pretrained(folder, nn.Linear(2, 1).eval())
        >>> x = torch.ones(1, 2)
        >>> torch.equal(again.predict(x).point, net.predict(x).point)
        True
    """
    folder = Path(folder)
    save(net, folder / WEIGHTS, include_model=include_model)
    with replacing(folder / CONFIG) as temporary:
        temporary.write_text(json.dumps(_config(net, include_model), indent=2) + "\n", encoding="utf-8")


def from_pretrained(
    folder_or_repo: str | Path, model: nn.Module, *, download: dict[str, Any] | None = None, **options: Any
) -> IntervalNetwork:
    """Return the interval network in a folder, or in a repository of the Hugging Face hub.

    Args:
        folder_or_repo: A folder, which is tried first and needs no network; or the name of a
            repository, ``"owner/name"``, which needs the package ``huggingface_hub``.
        model: The underlying model, as in :func:`intervalnn.load`.
        download: Options of ``huggingface_hub.hf_hub_download``, such as ``revision`` or ``cache_dir``.
        options: Options of :func:`intervalnn.load`.
    """
    folder = Path(folder_or_repo)
    if folder.is_dir():
        return load(folder / WEIGHTS, model, **options)
    if not isinstance(folder_or_repo, str) or not _REPO.fullmatch(folder_or_repo):
        raise FileNotFoundError(f"there is no folder {folder_or_repo}, and it is no name of a repository")
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise ImportError(
            f"there is no folder {folder_or_repo}, and the hub needs a package: pip install huggingface_hub"
        ) from error
    return load(hf_hub_download(folder_or_repo, WEIGHTS, **(download or {})), model, **options)


def _config(net: IntervalNetwork, include_model: bool) -> dict[str, Any]:
    settings = settings_of(net)
    model = {"class": type(net.model).__name__, "digest": settings["model"]["digest"], "included": include_model}
    return {"library_name": "intervalnn", **settings, "model": model}
