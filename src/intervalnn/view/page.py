"""Page: the viewer's page, linked to its files by the server, or whole in one file for a colleague."""

from __future__ import annotations

import base64
import hashlib
import json
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from intervalnn.files.limits import MAX_GIB
from intervalnn.files.whole import replacing
from intervalnn.view.levels import Levels
from intervalnn.view.source import entries

__all__ = ["SCRIPTS", "STATIC", "STYLE", "export_html", "page"]

STATIC = Path(__file__).parent / "static"
STYLE = "page.css"
# In the order they are read: each uses names of those before it.
SCRIPTS = (
    "numbers.js",
    "levels.js",
    "colours.js",
    "geometry.js",
    "slices.js",
    "plot.js",
    "panels.js",
    "controls.js",
    "pointer.js",
    "profile.js",
    "images.js",
    "signals.js",
    "page.js",
)
LARGE = 100 * 2**20  # bytes above which browsers take long to open a page


def export_html(
    path: str | Path,
    out: str | Path,
    *,
    slices: slice = slice(None),
    rows: slice = slice(None),
    columns: slice = slice(None),
    unit: str | None = None,
    dims: int | None = None,
    max_gib: float = MAX_GIB,
) -> Path:
    """Write a prediction as one HTML file that opens in a browser without a server, and return its path.

    Args:
        path: What to show, as in :func:`intervalnn.view.view`; it must lead to one prediction.
        out: The file to write.
        slices: Which slices to keep, such as ``slice(100, 200, 2)``, since all of a volume make a large page.
        rows: Which rows to keep of each slice.
        columns: Which columns.
        unit: Of the point, such as ``"HU"``, where the files do not say or say otherwise.
        dims: 2 for images, 1 for signals, where the shape does not tell.
        max_gib: How much a file may unpack to, in GiB, unless it is as large itself.
    """
    found = entries(path, unit=unit, dims=dims, max_gib=max_gib)
    if len(found) > 1:
        names = ", ".join(entry.name for entry in found)
        raise ValueError(
            f"one page shows one prediction, and {path} holds {len(found)}: {names}; name one of their files"
        )
    out = Path(out)
    levels = Levels(found[0].load().cut(slices, rows, columns))
    config = {"entries": [found[0].name], "meta": levels.meta(found[0].name)}
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(_template().generate(**_parts(config, inline=True), data=_blocks(levels)))
    if (size := out.stat().st_size) > LARGE:
        warnings.warn(
            f"{out} has {size / 2**20:.0f} MB, which browsers take long to open; keep fewer slices "
            "(slices=slice(None, None, 4)) or cut them (rows, columns)",
            stacklevel=2,
        )
    return out


def page(names: list[str]) -> str:
    """Return the page that the server sends, to show predictions of these names."""
    return str(_template().render(**_parts({"entries": names, "meta": None}, inline=False)))


def _parts(config: dict[str, Any], *, inline: bool) -> dict[str, Any]:
    texts = {name: (STATIC / name).read_text(encoding="utf-8") for name in (STYLE, *SCRIPTS)}
    hashes = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in texts.items()}
    return {
        "title": config["entries"][0],
        "config": json.dumps(config, allow_nan=False).replace(
            "<", "\\u003c"
        ),  # so that no name ends the script element
        "inline": inline,
        "style": STYLE,
        "scripts": SCRIPTS,
        "texts": texts,
        "hashes": hashes,
        "icon": base64.b64encode((STATIC / "icon.svg").read_bytes()).decode(),
    }


def _blocks(levels: Levels) -> Iterator[tuple[str, str]]:
    """Yield the name and the packed, deflated bytes of every slice, and of the counts."""
    for i in range(levels.record.slices):
        yield f"slice-{i}", _deflated(levels.packed(i))
    yield "counts", _deflated(levels.counts())


def _deflated(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('the viewer needs jinja2: pip install "intervalnn[report]"') from error
    folder = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    wanted = jinja2.Environment(loader=folder, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return wanted.get_template("page.html")
