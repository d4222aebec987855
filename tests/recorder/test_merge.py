"""Recordings of several nodes become one folder: files are copied as they are, or nothing is."""

import errno
from pathlib import Path

import pytest
from written_recording import WrittenProcess

from rlaudit.cli.app import run
from rlaudit.recording import merge
from rlaudit.recording.recording import open_recording


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recordings `a` and `b` of one process each."""
    monkeypatch.chdir(tmp_path)
    node("a", 100)
    node("b", 200)


def node(folder: str, pid: int, tokens: int = 3) -> None:
    """Write a process with one step into a recording."""
    process = WrittenProcess(Path(folder), pid=pid)
    process.engine()
    process.step(tokens)
    process.write()


def contents(*folders: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for folder in folders for file in Path(folder).glob("*.jsonl")}


def merged(words: str) -> int:
    return run(["record", *words.split()])


@pytest.mark.parametrize("words", ["--into c/d --merge a b/node-200-0a1b2c3d.jsonl", "--merge a b --into c/d"])
def test_files_of_all_recordings_lie_in_one_folder_byte_by_byte(words: str) -> None:
    assert merged(words) == 0
    assert contents("c/d") == contents("a", "b")
    assert [process.pid for process in open_recording(Path("c/d")).processes] == [100, 200]
    assert {file.stat().st_mode & 0o777 for file in Path("c/d").iterdir()} == {0o600}
    assert Path("c/d").stat().st_mode & 0o777 == 0o700


def test_one_file_in_two_recordings_is_there_once(capsys: pytest.CaptureFixture[str]) -> None:
    node("b", 100)
    assert merged("--merge a b --into c") == 0
    assert contents("c") == contents("b")
    assert "are here once: 1" in capsys.readouterr().err


def test_files_of_one_name_that_differ_are_refused_and_nothing_is_written() -> None:
    node("b", 100, tokens=4)
    assert merged("--merge a b --into c") == 2
    assert not Path("c").exists()


@pytest.mark.parametrize("into", ["full", "a"])
def test_a_folder_that_holds_a_recording_is_refused(into: str) -> None:
    node("full", 300)
    before = contents(into)
    assert merged(f"--merge a b --into {into}") == 2
    assert contents(into) == before


@pytest.mark.parametrize("words", ["a", "a nothing", "a --to c", ""])
def test_what_is_no_recording_is_refused(words: str) -> None:
    assert merged(f"--into c --merge {words}") == 2
    assert not Path("c").exists()


def test_files_of_another_schema_and_of_none_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    newer = Path("b/node-200-0a1b2c3d.jsonl")
    newer.write_bytes(newer.read_bytes().replace(b"rlaudit-recording/1", b"rlaudit-recording/9"))
    Path("a/notes.jsonl").write_text("{}\n")
    assert merged("--merge a b --into c") == 0
    said = capsys.readouterr().err
    assert f"{newer.name} is of rlaudit-recording/9" in said
    assert "notes.jsonl" in said.partition("left out: ")[2]
    assert set(contents("c")) == {newer.name, "node-100-0a1b2c3d.jsonl"}


def test_a_disk_that_is_full_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []

    def full(held: object, copy: object) -> None:
        copied.append(copy)
        if len(copied) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rlaudit.recording.merge.shutil.copyfileobj", full)
    assert merged("--merge a b --into c") == 3
    assert len(copied) == 2 and not list(Path("c").iterdir())


def test_a_file_that_cannot_be_read_ends_the_merge_with_nothing_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readable = merge.first_line

    def read(file: Path) -> bytes:
        if file.name.startswith("node-200"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return readable(file)

    monkeypatch.setattr(merge, "first_line", read)
    assert merged("--merge a b --into c") == 3
    assert "node-200-0a1b2c3d.jsonl cannot be read" in capsys.readouterr().err
    assert not Path("c").exists()
