"""Short memory is said in a sentence and ends with 3: it is no bug, no verdict, and nothing waits for ever."""

import errno
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rlaudit.cli import app
from rlaudit.cli.memory_limit import out_of_memory

MB = 2**20


def limited(kind: int, megabytes: int, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlaudit", *words],
        check=False,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(kind, (megabytes * MB, megabytes * MB)),
    )


@pytest.mark.parametrize("megabytes", [80, 150, 200, 250, 300, 400])
@pytest.mark.parametrize("words", [["list", "metrics"], ["curves", "a.csv", "b.csv"], ["compare", "x.parquet"]])
def test_a_command_with_too_little_memory_says_so(tmp_path: Path, megabytes: int, words: list[str]) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("step,k3\n" + "".join(f"{step},0.01\n" for step in range(30)))
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    done = limited(resource.RLIMIT_AS, megabytes, *words, cwd=tmp_path)
    if megabytes < 350 or words[0] == "compare":
        assert done.returncode == 3
        assert done.stderr.startswith("rlaudit: memory is short: ")
        assert f"this process may have {megabytes} MB (ulimit -v)" in done.stderr
    else:
        assert done.returncode == 0


def test_the_limit_of_data_counts_as_well(tmp_path: Path) -> None:
    done = limited(resource.RLIMIT_DATA, 60, "list", "metrics", cwd=tmp_path)
    assert done.returncode == 3
    assert "(ulimit -d)" in done.stderr


def test_what_needs_little_runs_with_little(tmp_path: Path) -> None:
    assert limited(resource.RLIMIT_AS, 80, "explain", "k3", cwd=tmp_path).returncode == 0


def no_thread() -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("error", [MemoryError("97 MB"), OSError(errno.ENOMEM, "x")], ids=["array", "system"])
def test_an_allocation_that_fails_is_3(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: list[str]) -> int:
        raise error

    monkeypatch.setattr("rlaudit.cli.commands.run_command", fail)
    assert app.run(["compare"]) == 3
    assert "memory is short: " in capsys.readouterr().err


def test_a_thread_that_cannot_be_started_is_short_memory() -> None:
    default = threading.stack_size(2**46)  # more than any address space has
    try:
        threading.Thread(target=print).start()
    except RuntimeError as error:
        assert out_of_memory(error) is not None
    else:
        pytest.fail("the thread was started")
    finally:
        threading.stack_size(default)


def test_another_runtime_error_stays_a_bug() -> None:
    try:
        no_thread()
    except RuntimeError as error:
        assert out_of_memory(error) is None
