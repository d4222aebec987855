"""Full disks, closed doors, and files where folders should be: what and where is said, and nobody calls it a bug."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from laboratories import V1, Laboratory

from rlaudit.cli.app import run
from rlaudit.files.unusable_place import OF_THE_MACHINE, OF_THE_NAME

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "examples" / "vllm" / "v0-to-v1" / "report.json"
PLAIN = {"name": "plain", "candidate": {"version": V1}, "repeats": 0}
KINDS = [*((code, 3) for code in OF_THE_MACHINE), *((code, 2) for code in OF_THE_NAME)]


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of bash, in which $R is rlaudit."""
    environ = {**os.environ, "R": f"{sys.executable} -m rlaudit", "PYTHONPATH": str(ROOT), "REPORT": str(REPORT)}
    return subprocess.run(["bash", "-c", script], check=False, cwd=folder, env=environ, capture_output=True, text=True)


@pytest.mark.parametrize(("code", "exit_code"), KINDS, ids=[errno.errorcode[code] for code, _ in KINDS])
def test_every_refusal_of_a_file_system_ends_with_what_and_where(
    code: int, exit_code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code), "/somewhere/file")

    monkeypatch.setattr("rlaudit.report.read_report.read_report", refuse)
    assert run(["report", str(REPORT)]) == exit_code
    said = capsys.readouterr().err
    assert "/somewhere/file" in said
    assert os.strerror(code) in said
    assert "bug" not in said


def test_what_is_no_matter_of_files_stays_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr("rlaudit.report.read_report.read_report", refuse)
    assert run(["report", str(REPORT)]) == 70
    assert "this is a bug in rlaudit" in capsys.readouterr().err


def test_a_file_that_ends_too_early_is_no_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(*_: object) -> None:
        raise EOFError("no data left")

    monkeypatch.setattr("rlaudit.report.read_report.read_report", ends)
    assert run(["report", str(REPORT)]) == 3
    said = capsys.readouterr().err
    assert "ended too early: no data left" in said
    assert "interrupted" not in said


@pytest.mark.parametrize(
    ("script", "exit_code", "says"),
    [
        ("$R report $REPORT > /dev/full", 3, "standard output: No space left on device"),
        ("$R list metrics > /dev/full", 3, "standard output: No space left on device"),
        ("$R report $REPORT >&-", 2, "standard output is closed"),
        ("$R list metrics >&-", 3, "closed"),
        ("$R report $REPORT --output json:/dev/full", 3, "/dev/full: No space left on device"),
        ("touch x; $R report $REPORT --output json:x/y.json", 2, "a file stands where a folder is needed"),
        ("mkdir x; $R report $REPORT --output json:x", 2, "a folder stands where a file is needed"),
        ("$R report $REPORT --output json:$(printf 'x%.0s' {1..300})", 2, "File name too long"),
        ("mkdir x; cd x; rmdir ../x; $R ablate quick --cpu", 3, "the working directory is gone"),
        ("touch run; $R ablate quick --cpu --run-dir run", 2, "a file stands where a folder is needed"),
    ],
)
def test_a_place_that_refuses_is_named_by_the_command(tmp_path: Path, script: str, exit_code: int, says: str) -> None:
    done = shell(script, tmp_path)
    assert says in done.stderr
    assert done.returncode == exit_code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("ending", ["| true", "| head -1", "2>&- | head -1"])
def test_a_reader_that_leaves_does_not_change_the_verdict(tmp_path: Path, ending: str) -> None:
    done = shell(f"$R report $REPORT {ending} > /dev/null; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_report_into_a_pipe_is_written_there(tmp_path: Path) -> None:
    done = shell("mkfifo p; cat p > got & $R report $REPORT --output json:p; code=$?; wait; exit $code", tmp_path)
    assert done.returncode == 1
    assert (tmp_path / "got").stat().st_size > 10_000


def test_nobody_who_reads_the_progress_does_not_end_a_run(laboratory: Laboratory) -> None:
    with laboratory.start(laboratory.recipe(PLAIN)) as process:
        assert process.stderr is not None
        process.stderr.close()
        assert process.stdout is not None
        told = process.stdout.read()
        assert process.wait() == 1
    assert "1. semantic" in told


def test_a_run_directory_that_cannot_be_written_is_named(laboratory: Laboratory) -> None:
    laboratory.run_dir.mkdir()
    (laboratory.run_dir / "cells").write_text("a file")
    run_of = laboratory.ablate(laboratory.recipe(PLAIN))
    assert run_of.exit_code == 2
    assert str(laboratory.run_dir / "cells") in run_of.stderr
