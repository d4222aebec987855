"""A machine without a C compiler or without Python's headers is told before an engine fails on it."""

import sys
from pathlib import Path

import pytest

from rlaudit.engines.environments import environment
from rlaudit.engines.environments.environment_spec import Command, EnvironmentSpec
from rlaudit.engines.environments.health import missing_for_triton, note_of_missing
from rlaudit.errors import NotFinished


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the path, empty; the interpreter's headers are in `include` below it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    return tmp_path


@pytest.fixture
def interpreter(machine: Path) -> Command:
    """The running Python, which looks for its headers in `include` of the machine."""
    (machine / "sysconfig.py").write_text(
        "def get_default_scheme():\n    return 'posix_local'\n"
        f"def get_paths(scheme):\n    return {{'include': {str(machine)!r} + '/include-' + scheme}}\n"
    )
    python = machine / "python"
    first = f"import sys; sys.path.insert(0, {str(machine)!r}); exec(sys.argv[3])"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{first}" "$@"\n')
    python.chmod(0o755)
    return (str(python),)


def compiler(machine: Path, name: str) -> None:
    (machine / name).write_text("#!/bin/sh\n")
    (machine / name).chmod(0o755)


def headers(machine: Path) -> None:
    (machine / "include-posix_prefix").mkdir()
    (machine / "include-posix_prefix/Python.h").write_text("")


def test_both_are_named_when_both_are_missing(machine: Path, interpreter: Command) -> None:
    assert missing_for_triton(interpreter) == (
        "a C compiler: gcc or clang",
        f"Python's headers: {machine}/include-posix_prefix/Python.h",
    )


def test_nothing_is_said_where_both_are_there_and_one_that_is_asked_for_is_missing_by_its_name(
    machine: Path, interpreter: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers(machine)
    for name in ("gcc", "clang"):
        compiler(machine, name)
        assert missing_for_triton(interpreter) == ()
        (machine / name).unlink()
    compiler(machine, "gcc")
    monkeypatch.setenv("CC", "icx")
    assert missing_for_triton(interpreter) == ("a C compiler: icx",)
    assert note_of_missing(()) == ()


def test_an_interpreter_that_does_not_run_is_named() -> None:
    with pytest.raises(NotFinished, match="/nowhere/python does not run"):
        missing_for_triton(("/nowhere/python",))


@pytest.mark.parametrize(("build", "notes"), [("cuda", 1), ("cpu", 0)])
def test_it_is_noted_of_an_engine_for_cuda_whenever_it_is_asked_for(
    build: str, notes: int, machine: Path, interpreter: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = EnvironmentSpec("vllm", "0.18.1", build)  # type: ignore[arg-type]
    found = environment.Environment(spec, machine, interpreter)
    monkeypatch.setattr(environment, "locate", lambda spec: found)
    monkeypatch.setattr(environment, "_checked_with_driver", lambda home, found: found)
    assert len(environment.ensure(spec, print).notes) == notes
