"""Recordings of several nodes become one folder: files are copied as they are, or nothing is."""

from pathlib import Path

import pytest
from written_recording import WrittenProcess

from rlaudit.cli.app import run
from rlaudit.recording import merge
from rlaudit.recording.recording import open_recording


def node(folder: Path, pid: int, tokens: int = 3) -> Path:
    """Return the recording of a process with one step."""
    process = WrittenProcess(folder, pid=pid)
    process.engine()
    process.step(tokens)
    return process.write()


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}


@pytest.mark.parametrize("place", ["before", "behind"])
def test_files_of_all_recordings_lie_in_one_folder_byte_by_byte(place: str, tmp_path: Path) -> None:
    one, other, out = node(tmp_path / "a", 100), node(tmp_path / "b", 200), tmp_path / "c" / "d"
    into = ["--into", str(out)]
    words = ["--merge", str(one), str(next(other.glob("*.jsonl")))]
    assert run(["record", *into, *words] if place == "before" else ["record", *words, *into]) == 0
    assert contents(out) == {**contents(one), **contents(other)}
    assert [process.pid for process in open_recording(out).processes] == [100, 200]
    assert {file.stat().st_mode & 0o777 for file in out.iterdir()} == {0o600}
    assert out.stat().st_mode & 0o777 == 0o700


def test_one_file_in_two_recordings_is_there_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = node(tmp_path / "a", 100), node(tmp_path / "b", 100)
    node(other, 200)
    assert run(["record", "--merge", str(one), str(other), "--into", str(tmp_path / "c")]) == 0
    assert contents(tmp_path / "c") == contents(other)
    assert "are here once: 1" in capsys.readouterr().err


def test_files_of_one_name_that_differ_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    one, other = node(tmp_path / "a", 100), node(tmp_path / "b", 100, tokens=4)
    assert run(["record", "--merge", str(one), str(other), "--into", str(tmp_path / "c")]) == 2
    assert not (tmp_path / "c").exists()


def test_a_folder_that_holds_a_recording_is_refused(tmp_path: Path) -> None:
    one, other, out = node(tmp_path / "a", 100), node(tmp_path / "b", 200), node(tmp_path / "c", 300)
    before = contents(out)
    assert run(["record", "--merge", str(one), str(other), "--into", str(out)]) == 2
    assert run(["record", "--merge", str(one), str(other), "--into", str(one)]) == 2
    assert contents(out) == before


@pytest.mark.parametrize("words", [["a"], ["a", "nothing"], ["a", "--to", "c"], []])
def test_what_is_no_recording_is_refused(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node(tmp_path / "a", 100)
    assert run(["record", "--into", "c", "--merge", *words]) == 2
    assert not (tmp_path / "c").exists()


def test_files_of_another_schema_and_of_none_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = node(tmp_path / "a", 100), node(tmp_path / "b", 200)
    (newer,) = other.glob("*.jsonl")
    newer.write_bytes(newer.read_bytes().replace(b"rlaudit-recording/1", b"rlaudit-recording/9"))
    (one / "notes.jsonl").write_text("{}\n")
    assert run(["record", "--merge", str(one), str(other), "--into", str(tmp_path / "c")]) == 0
    said = capsys.readouterr().err
    assert f"{newer} is of rlaudit-recording/9" in said and f"left out: {one / 'notes.jsonl'}" in said
    assert set(contents(tmp_path / "c")) == {newer.name, "node-100-0a1b2c3d.jsonl"}


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = node(tmp_path / "a", 100), node(tmp_path / "b", 200)
    copied = []

    def full(held: object, copy: object) -> None:
        copied.append(copy)
        if len(copied) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("rlaudit.recording.merge.shutil.copyfileobj", full)
    assert run(["record", "--merge", str(one), str(other), "--into", str(tmp_path / "c")]) == 3
    assert len(copied) == 2 and not list((tmp_path / "c").iterdir())


def test_a_file_that_cannot_be_read_ends_the_merge_with_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = node(tmp_path / "a", 100), node(tmp_path / "b", 200)
    kept = next(other.glob("*.jsonl"))
    readable = merge.first_line
    monkeypatch.setattr(merge, "first_line", lambda file: unreadable() if file == kept else readable(file))
    assert run(["record", "--merge", str(one), str(other), "--into", str(tmp_path / "c")]) == 3
    assert f"{kept} cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def unreadable() -> bytes:
    raise PermissionError(13, "Permission denied")
