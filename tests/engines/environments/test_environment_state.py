"""What is on disk after builds that worked, failed, were killed, or ran twice at once."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlaudit.engines.engine import Build
from rlaudit.engines.environments import environment
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.given_environment import given_environment
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.errors import NotFinished, UsageError

SPEC = EnvironmentSpec("trainer", "4.57.6", "cuda")
BUILD_IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from rlaudit.engines.environments import build
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
build.shutil.disk_usage = lambda folder: type("Usage", (), {"free": 1e12})
ensure(EnvironmentSpec("trainer", "4.57.6", "cuda"), lambda line: print(line, flush=True), Path(sys.argv[1]))
print("built", flush=True)
"""
NO_NETWORK = """error: Request failed after 3 retries in 8.0s
  cause: Failed to fetch: https://nope.invalid/simple/transformers/
  cause: error sending request for url (https://nope.invalid/simple/transformers/)
  cause: client error (Connect)
  cause: dns error
"""


def leave_free(monkeypatch: pytest.MonkeyPatch, gigabytes: float) -> None:
    """What the disk of the machine has left is no matter of these tests: none of them installs anything."""
    usage = type("Usage", (), {"free": gigabytes * 1e9})()
    monkeypatch.setattr("rlaudit.engines.environments.build.shutil.disk_usage", lambda folder: usage)


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = Path(__file__).with_name("fake_uv.py")
    binary = tmp_path / "uv"
    binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_UV_LOG", str(tmp_path / "calls"))
    leave_free(monkeypatch, gigabytes=1000)
    return binary


@pytest.fixture
def pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    reached, go = tmp_path / "reached", tmp_path / "go"
    for pipe in (reached, go):
        os.mkfifo(pipe)
    monkeypatch.setenv("FAKE_UV_REACHED", str(reached))
    monkeypatch.setenv("FAKE_UV_GO", str(go))
    yield reached, go


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().split()


def start(uv: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", BUILD_IN_ANOTHER_PROCESS, str(uv)],
        env={**os.environ, "PYTHONPATH": str(Path(environment.__file__).parents[3])},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_environment_is_built_once_and_found_again_with_everything_that_was_recorded(
    uv: Path, tmp_path: Path
) -> None:
    built = environment.ensure(SPEC, lambda line: None, uv)
    assert environment.locate(SPEC) == environment.ensure(SPEC, lambda line: None, uv) == built
    assert calls(tmp_path).count("venv") == 1
    assert environment.list_environments() == [built]
    assert built.lock == ("nvidia-cuda-runtime==13.0.96", "torch==2.13.0", "transformers==4.57.6")
    # How it came about.
    state = json.loads((environment.root() / SPEC.name / environment.STATE).read_text())
    assert state["uv"] == "uv 0.0.0 (fake)"
    assert state["versions"]["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert {"built", "overrides", "constraints", "as_of", "seconds"} <= state.keys()


@pytest.mark.parametrize(
    ("command", "says", "told"),
    [
        *((command, "error: nothing works today", "nothing works today") for command in ("venv", "install", "freeze")),
        ("compile", NO_NETWORK, r"transformers.* dns error"),
    ],
)
def test_a_build_that_fails_anywhere_leaves_nothing_and_says_why(
    command: str, says: str, told: str, uv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_UV_FAILS", command)
    monkeypatch.setenv("FAKE_UV_SAYS", says)
    with pytest.raises(NotFinished, match=told):
        environment.ensure(SPEC, lambda line: None, uv)
    assert not (environment.root() / SPEC.name).exists()
    assert environment.locate(SPEC) is None


@pytest.mark.parametrize(
    ("build", "lock", "offered", "told"),
    [
        ("cuda", "torch==9.9.9\nnvidia-cuda-runtime==13.2.1", "12.8", r"its torch 9\.9\.9 needs .*CUDA 13\.2"),
        ("cuda", "torch==9.9.9\nnvidia-cuda-runtime==13.2.1", "", None),
        ("cuda", "torch==2.13.0+cpu\nnvidia-cuda-runtime==13.4.1", "", "would get a torch without CUDA"),
        ("cpu", "torch==2.13.0+cpu", "", None),
    ],
)
def test_the_torch_that_was_resolved_is_held_against_build_and_driver_before_it_is_installed(
    build: Build, lock: str, offered: str, told: str | None, uv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_UV_LOCK", lock)
    monkeypatch.setattr("rlaudit.engines.environments.build.offered_cuda", lambda: offered)
    with pytest.raises(NotFinished, match=told) if told else contextlib.nullcontext():
        environment.ensure(EnvironmentSpec("trainer", "4.57.6", build), lambda line: None, uv)
    assert ("install" in calls(tmp_path)) is (told is None)


def test_an_environment_that_does_not_import_is_not_kept(uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UV_BROKEN", "torch")
    with pytest.raises(NotFinished, match="built for another planet"):
        environment.ensure(SPEC, lambda line: None, uv)
    assert environment.all_names() == []


def test_a_killed_build_is_not_found_and_the_next_one_clears_it_away(
    uv: Path, pipes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go = pipes
    with start(uv) as builder:
        reached.read_text()
        builder.send_signal(signal.SIGKILL)
    home = environment.root() / SPEC.name
    assert len(list(home.iterdir())) == 1
    assert environment.locate(SPEC) is None
    assert environment.list_environments() == []
    monkeypatch.delenv("FAKE_UV_REACHED")
    built = environment.ensure(SPEC, lambda line: None, uv)
    assert sorted(path.name for path in home.iterdir()) == sorted([built.directory.name, environment.STATE])
    go.write_text("the orphaned installation may end now")


def test_a_second_process_waits_for_the_build_and_uses_it(uv: Path, pipes: tuple[Path, Path], tmp_path: Path) -> None:
    reached, go = pipes
    with start(uv) as first:
        reached.read_text()
        with start(uv) as second:
            assert second.stdout is not None
            assert "another process is building it" in second.stdout.readline()
            go.write_text("go")
            assert second.stdout.readline() == "built\n"
        assert first.wait() == 0
    assert calls(tmp_path).count("venv") == 1


def test_a_removed_environment_is_gone(uv: Path) -> None:
    environment.ensure(SPEC, lambda line: None, uv)
    home = environment.root() / SPEC.name
    (home / "own").write_bytes(b"x" * 8192)
    (home / "linked").write_bytes(b"x" * 16384)
    os.link(home / "linked", home.parent.parent / "as-in-the-cache-of-uv")
    freed = environment.remove(SPEC.name)
    assert freed.shared == 16384 and freed.freed >= 8192
    assert environment.all_names() == []


def test_an_environment_is_unused_from_the_last_command_on_that_asked_for_it(uv: Path) -> None:
    environment.ensure(SPEC, lambda line: None, uv)
    state = environment.root() / SPEC.name / environment.STATE
    before = state.stat().st_mtime - 10 * 86400
    os.utime(state, (before, before))
    assert (environment.unused_names(9), environment.unused_names(11)) == ([SPEC.name], [])
    environment.ensure(SPEC, lambda line: None, uv)
    assert environment.unused_names(9) == []
    (environment.root() / "vllm-0.9.0-cpu").mkdir()  # of a build that was killed
    assert environment.unused_names(9) == ["vllm-0.9.0-cpu"]


@pytest.mark.parametrize("name", ["vllm-9-cpu", "..", "../engines", ""])
def test_removing_what_is_not_there_is_a_usage_error(uv: Path, name: str) -> None:
    environment.ensure(SPEC, lambda line: None, uv)
    with pytest.raises(UsageError, match="no engine environment"):
        environment.remove(name)
    assert environment.locate(SPEC) is not None


def test_a_given_interpreter_without_the_package_is_a_usage_error(uv: Path) -> None:
    with pytest.raises(UsageError, match="holds no vLLM"):
        given_environment(ENGINE.package, (sys.executable,))


def test_a_full_disk_is_told_with_figures_before_anything_is_installed(
    uv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_free(monkeypatch, gigabytes=2)
    with pytest.raises(NotFinished, match=r"takes up to 5\.1 GB and .* has 2\.0 GB free"):
        environment.ensure(SPEC, lambda line: None, uv)
    assert "install" not in calls(tmp_path)
