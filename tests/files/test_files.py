"""Files: what has its final name is whole, and what killed processes leave is removed."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from intervalnn.files import whole as files
from intervalnn.files.whole import beside, check_writable, replace_folder, replacing


def left_over(folder: Path, age: float = 60.0) -> Path:
    left = folder / ".net.0123456789abcdef.tmp"
    left.mkdir()
    (left / "part").write_text("half")
    os.utime(left, (time.time() - age, time.time() - age))
    return left


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_there(tmp_path: Path) -> None:
    left = left_over(tmp_path)
    (tmp_path / ".mine.tmp").mkdir()  # of somebody else

    with replacing(tmp_path / "other") as temporary:
        temporary.write_text("whole")

    assert not left.exists() and (tmp_path / ".mine.tmp").exists()


def test_what_another_process_is_writing_to_is_left_alone(tmp_path: Path) -> None:
    with beside(tmp_path / "net") as folder:
        os.utime(folder, (0, 0))  # for long

        with replacing(tmp_path / "net") as temporary:
            temporary.write_text("whole")

        assert folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_what_was_just_made_may_not_have_its_lock_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "GRACE", 60.0)  # however long this test is held up
    left = left_over(tmp_path, age=0.0)

    with replacing(tmp_path / "net") as temporary:
        temporary.write_text("whole")

    assert left.exists()


@pytest.mark.parametrize("moment", ["before it is opened", "before it is locked"])
def test_a_folder_that_is_swept_before_it_has_its_lock_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A process that is held up between the two looks like one that was killed."""
    locked, swept = files._locked, []

    def late(folder: Path, *, exclusive: bool) -> Any:
        if swept:
            return locked(folder, exclusive=exclusive)
        swept.append(folder)
        if moment == "before it is opened":
            folder.rmdir()
            return locked(folder, exclusive=exclusive)
        lock = locked(folder, exclusive=exclusive)
        folder.rmdir()
        return contextlib.nullcontext(lock)

    monkeypatch.setattr(files, "_locked", late)
    with replacing(tmp_path / "net") as temporary:
        temporary.write_text("whole")

    assert swept and (tmp_path / "net").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_a_new_file_has_the_permissions_that_the_user_gives_to_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "net") as temporary:
            temporary.write_text("whole")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "net").stat().st_mode) == 0o640


def test_errors_that_say_enough_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^slice 2 is gone$"), replacing(tmp_path / "net"):
        raise FileNotFoundError("slice 2 is gone")
    with pytest.raises(FileNotFoundError, match=r"could not write .*net: No such file or directory: /no/source"):  # noqa: SIM117
        with replacing(tmp_path / "net"):
            Path("/no/source").read_text()
    assert not list(tmp_path.iterdir())


def folder_of(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "file").write_text(text)
    return path


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    folder_of(tmp_path / ".out.0123456789abcdef.old", "left by a process that was killed between two renames")
    folder_of(tmp_path / "out", "old")

    replace_folder(tmp_path / "out", folder_of(tmp_path / "new", "new"))

    assert (tmp_path / "out" / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_comes_back_if_the_other_cannot_be_put_there(tmp_path: Path) -> None:
    folder_of(tmp_path / "out", "old")

    with pytest.raises(OSError, match=r"could not write .*out: No such file"):
        replace_folder(tmp_path / "out", tmp_path / "there is none")

    assert (tmp_path / "out" / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_another_process_has_just_put_there_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, theirs = Path.rename, iter([True])

    def racing(self: Path, target: Path) -> Path:
        if self.name == "new" and next(theirs, False):
            folder_of(tmp_path / "out", "theirs")
        return rename(self, target)

    monkeypatch.setattr(files.Path, "rename", racing)
    replace_folder(tmp_path / "out", folder_of(tmp_path / "new", "new"))

    assert (tmp_path / "out" / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_trying_a_place_leaves_nothing_there(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b" / "net")

    assert not list(tmp_path.iterdir())


def test_a_name_that_is_too_long_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File name too long; choose a place that can be written to"):
        check_writable(tmp_path / ("x" * 250))
