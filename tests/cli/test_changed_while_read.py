"""A log that changes while it is read is not judged: figures of one file and evidence of another are of none."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from table_files import as_sequences, rows, write_lines

from rlaudit.cli import app
from rlaudit.diagnosis.compare_tables import Comparer
from rlaudit.errors import UsageError
from rlaudit.files.unchanged import unchanged


def parquet(path: Path, *left_out: str, seed: int = 0) -> Path:
    path.parent.mkdir(exist_ok=True)
    rows(prompts=10, seed=seed).drop(columns=list(left_out)).to_parquet(path)
    return path


def replaced(path: Path) -> None:
    parquet(path.with_name("other.new"), seed=1).rename(path)


def replaced_with_equal_bytes(path: Path) -> None:
    new = path.with_name("other.new")
    new.write_bytes(path.read_bytes())
    new.rename(path)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def removed(path: Path) -> None:
    path.unlink()


def rewritten_in_place(path: Path) -> None:
    before = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def compare_while(change: Callable[[Path], None], path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Compare, and change a file once it is read and before the verdict."""
    compared = Comparer.compare

    def changing(self: Comparer, *tables: object) -> None:
        compared(self, *tables)  # type: ignore[arg-type]
        change(path)

    monkeypatch.setattr(Comparer, "compare", changing)
    return app.run(["compare", *words, "--temperature", "1", "--quiet"])


@pytest.mark.parametrize(
    "change", [replaced, replaced_with_equal_bytes, truncated, appended, removed, rewritten_in_place]
)
def test_a_log_that_changes_is_not_finished_and_is_named(
    change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = parquet(tmp_path / "log.parquet")
    assert compare_while(change, log, monkeypatch, str(log)) == 3
    printed = capsys.readouterr()
    assert f"{log} changed while it was read" in printed.err
    assert not printed.out


def test_lines_appended_to_a_log_of_lines_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_lines(tmp_path / "log.jsonl", as_sequences(rows(prompts=10)))
    assert compare_while(appended, log, monkeypatch, str(log)) == 3
    assert f"{log} changed while it was read" in capsys.readouterr().err


def test_a_file_of_a_folder_and_a_trainers_table_and_todays_log_are_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet(tmp_path / "folder" / "1.parquet")
    second = parquet(tmp_path / "folder" / "2.parquet")
    trainer = parquet(tmp_path / "trainer.parquet", "rollout_logprob")
    log = parquet(tmp_path / "log.parquet", "trainer_logprob")
    today = parquet(tmp_path / "today.parquet")
    commands = {
        second: [str(second.parent)],
        trainer: [str(log), str(trainer)],
        today: [str(tmp_path / "folder" / "1.parquet"), "--before", str(today)],
    }
    for path, words in commands.items():
        with monkeypatch.context() as patched:
            assert compare_while(replaced, path, patched, *words) == 3
        assert f"{path} changed while it was read" in capsys.readouterr().err


def test_a_file_beside_the_logs_may_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = parquet(tmp_path / "folder" / "1.parquet")
    beside = log.with_name("train.log")
    beside.write_text("step 1\n")
    compare_while(appended, beside, monkeypatch, str(log.parent))
    assert "changed while" not in capsys.readouterr().err


def test_the_change_is_named_in_place_of_the_error_that_it_led_to(tmp_path: Path) -> None:
    log = parquet(tmp_path / "log.parquet")
    with pytest.raises(Exception, match="changed while it was read"), unchanged() as readings:
        readings.add([log])
        truncated(log)
        raise UsageError("no column of that name")


def test_a_recordings_files_are_looked_at_below_its_folder(tmp_path: Path) -> None:
    log = parquet(tmp_path / "folder" / "1.parquet")
    with pytest.raises(Exception, match="changed while it was read"), unchanged() as readings:
        readings.add([tmp_path])
        appended(log)
