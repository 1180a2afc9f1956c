"""The page as one file: what it holds, and that it cannot be made to hold more."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from intervalnn.view import export_html, load_npz, page, save_npz
from intervalnn.view.levels import Levels
from intervalnn.view.page import SCRIPTS, STATIC
from view.made import prediction, signals, volume


def block(text: str, name: str) -> bytes:
    match = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', text)
    assert match is not None
    return zlib.decompress(base64.b64decode(match[1]))


def test_the_file_holds_the_slices_that_the_server_would_send(tmp_path: Path) -> None:
    path = volume(tmp_path / "scan.npz")

    text = export_html(path, tmp_path / "out" / "page.html", slices=slice(1, 8, 3), rows=slice(5, 20)).read_text()

    levels = Levels(load_npz(path).cut(slice(1, 8, 3), slice(5, 20)))
    assert [block(text, f"slice-{i}") for i in range(3)] == [levels.packed(i) for i in range(3)]
    assert block(text, "counts") == levels.counts()
    assert 'id="slice-3"' not in text and '"numbers": [1, 4, 7]' in text and '"origin": [5, 0]' in text


def test_the_file_asks_for_nothing_and_allows_its_own_scripts_only(tmp_path: Path) -> None:
    text = export_html(signals(tmp_path / "s.npz"), tmp_path / "page.html").read_text()

    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and "default-src 'none'" in policy[1] and "unsafe" not in policy[1]
    assert policy[1].count("sha256-") == 1 + len(SCRIPTS)
    assert not re.findall(r'(?:src|href)="(?!data:)', text) and "http://" not in re.sub(r"data:[^\"]*", "", text)


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    path = signals(tmp_path / "a&b'<script>alert(1)<!--.npz")

    text = export_html(path, tmp_path / "page.html").read_text()

    assert "<script>alert" not in text and "<!--" not in text
    assert "&lt;script&gt;alert(1)&lt;!--" in text and "\\u003cscript>alert" in text


def test_a_promise_cannot_break_out_of_the_page_either(tmp_path: Path) -> None:
    path = save_npz(tmp_path / "p.npz", prediction((2, 7))[0], promise="</script><script>alert(1)</script>")

    text = export_html(path, tmp_path / "page.html").read_text()

    assert "<script>alert" not in text and "\\u003cscript>alert" in text


def test_no_text_takes_the_wider_side_for_the_more_likely_one() -> None:
    package = STATIC.parent.parent
    read = [*STATIC.glob("*.js"), *(path for name in ("view", "evaluation") for path in (package / name).rglob("*.py"))]
    read += [package / "prediction.py", package / "saving" / "exporting" / "card.py"]

    for path in read:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"likely too (low|high)|(truth|target)[^.]{0,20} rather|rather (above|below)", text), path
    assert len(read) > 30


def test_no_script_ends_its_own_element() -> None:
    for name in SCRIPTS:
        assert not re.search(r"</script|<!--|\r", (STATIC / name).read_text(), re.IGNORECASE)
    assert sorted(path.name for path in STATIC.glob("*.js")) == sorted(SCRIPTS)


def test_a_large_page_brings_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "LARGE", 1000)

    with pytest.warns(UserWarning, match=r"page.html has 0 MB.*slices=slice"):
        export_html(volume(tmp_path / "v.npz"), tmp_path / "page.html")


def test_a_folder_of_several_is_refused_by_name(tmp_path: Path) -> None:
    volume(tmp_path / "a.npz")
    signals(tmp_path / "b.npz")

    with pytest.raises(ValueError, match="holds 2: a, b"):
        export_html(tmp_path, tmp_path / "page.html")


def test_a_failed_export_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OSError("disk full")

    path = volume(tmp_path / "v.npz")
    monkeypatch.setattr(Levels, "counts", fail)
    with pytest.raises(OSError, match="disk full"):
        export_html(path, tmp_path / "page.html")

    assert [file.name for file in tmp_path.iterdir()] == ["v.npz"]


def test_levels_are_those_of_the_arrays(tmp_path: Path) -> None:
    path = signals(tmp_path / "s.npz")

    text = export_html(path, tmp_path / "page.html").read_text()

    head = np.frombuffer(block(text, "slice-0")[:16], dtype="<f8")
    packed = np.frombuffer(block(text, "slice-0")[40:], dtype="<u2").reshape(-1, 200)
    with np.load(path) as file:
        assert np.abs(head[0] + head[1] * packed[0] - file["point"][0, 0]).max() <= 0.51 * head[1]
