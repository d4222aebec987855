"""Files that are replaced: the old bytes or the new ones, whatever happens in between."""

import errno
import multiprocessing
import os
import signal
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rlaudit.files.write_atomically import replacing, write_atomically

WRITERS = 8
LARGE = 1 << 20


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing(kind: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(kind, os.strerror(kind))

    return fail


@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.write_bytes", "pathlib.Path.chmod", "pathlib.Path.replace"])
def test_a_write_that_fails_leaves_the_old_file_alone_and_says_which_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, kind: int
) -> None:
    path = tmp_path / "report.json"
    path.write_text("the last good one")
    with monkeypatch.context() as broken, pytest.raises(OSError, match=r"report\.json") as raised:
        broken.setattr(step, failing(kind))
        write_atomically(path, b"new")
    assert raised.value.errno == kind
    assert path.read_text() == "the last good one"
    assert listed(tmp_path) == ["report.json"]


def test_files_that_belong_together_are_replaced_together_or_not_at_all(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("tokens", "report", "seal")]
    for path in paths:
        path.write_text("old")
    with pytest.raises(OSError, match="full"), replacing(*paths) as drafts:
        for draft in drafts[:2]:
            draft.write_text("new")
        raise OSError("full")
    assert [path.read_text() for path in paths] == ["old"] * 3
    with replacing(*paths) as drafts:
        for draft in drafts:
            draft.write_text("new")
        assert [path.read_text() for path in paths] == ["old"] * 3
    assert [path.read_text() for path in paths] == ["new"] * 3
    assert listed(tmp_path) == ["report", "seal", "tokens"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444, 0o755])
def test_permission_bits_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_new_file_has_the_bits_that_the_mask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_name_as_long_as_names_may_be_is_no_trouble(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("x" * 255), b"new")
    assert listed(tmp_path) == ["x" * 255]


def test_a_folder_in_the_place_of_the_file_is_named_and_left(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError, match="taken"):
        write_atomically(tmp_path / "taken", b"new")
    assert listed(tmp_path) == ["taken"]


def in_a_process(work: Callable[[], None]) -> "multiprocessing.process.BaseProcess":
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def killed_while_writing(path: Path) -> None:
    with replacing(path) as (draft,):
        draft.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_kill_leaves_the_old_file_and_a_draft_that_is_not_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("the last good one")
    process = in_a_process(partial(killed_while_writing, path))
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert path.read_text() == "the last good one"
    assert len(listed(tmp_path)) == 2
    write_atomically(path, b"new")
    assert path.read_text() == "new"


def many_writes(path: Path, letter: int) -> None:
    for _ in range(5):
        write_atomically(path, bytes([letter]) * LARGE)


def test_a_reader_sees_whole_files_only_however_many_write_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"a" * LARGE)
    writers = [in_a_process(partial(many_writes, path, ord("a") + number)) for number in range(WRITERS)]
    seen = set()
    while any(writer.is_alive() for writer in writers):
        data = path.read_bytes()
        seen.add((len(data), len(set(data))))
    for writer in writers:
        writer.join(30)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    assert seen <= {(LARGE, 1)}
    assert listed(tmp_path) == ["file"]
