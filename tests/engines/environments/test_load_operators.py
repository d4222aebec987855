"""vLLM's compiled operators are loaded as the release would, and on a login node what can be looked at is."""

import json
import sys
from pathlib import Path

import pytest

from rlaudit.engines.environments import environment, health
from rlaudit.engines.environments.environment_spec import Command, EnvironmentSpec
from rlaudit.engines.environments.health import Health, check
from rlaudit.engines.inside.scripts import load_operators
from rlaudit.errors import NotFinished

CUDA = EnvironmentSpec("vllm", "0.18.1", "cuda")
CPU = EnvironmentSpec("vllm", "0.18.1", "cpu")
ABSENT = "libcuda-of-no-machine.so.1"
CHOOSES = """
from pathlib import Path
class Platform:
    def import_kernels(self):
        {body}
current_platform = Platform()
"""
ANSWERS_NONE = """
class Platform:
    def __getattr__(self, name):
        return None
current_platform = Platform()
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """The packages of an interpreter that holds a torch and a vLLM without operators; see `interpreter`."""
    folder = tmp_path / "packages"
    for name in ("torch", "vllm", "vllm/platforms"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("")
    return folder


@pytest.fixture
def interpreter(tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    # The driver of the machine that runs the tests is no matter of theirs.
    monkeypatch.setattr(health, "_LOAD_OPERATORS", health._LOAD_OPERATORS.replace(load_operators.DRIVER, ABSENT))
    return (str(python),)


@pytest.fixture
def driver(interpreter: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any library that loads everywhere."""
    monkeypatch.setattr(health, "_LOAD_OPERATORS", health._LOAD_OPERATORS.replace(ABSENT, "libc.so.6"))


def test_without_a_driver_a_module_is_found_and_left_to_be_loaded(
    packages: Path, interpreter: Command, tmp_path: Path
) -> None:
    (packages / "vllm/_C.abi3.so").write_bytes(b"no loader takes this")
    assert check(CUDA, interpreter, tmp_path) == Health(unchecked=("vllm._C",))


@pytest.mark.usefixtures("driver")
def test_with_a_driver_a_module_that_does_not_load_is_refused_in_the_loaders_words(
    packages: Path, interpreter: Command, tmp_path: Path
) -> None:
    (packages / "vllm/_C.abi3.so").write_bytes(b"no loader takes this")
    with pytest.raises(NotFinished, match=r"_C\.abi3\.so: (file too short|invalid ELF header)"):
        check(CUDA, interpreter, tmp_path)


def test_a_module_that_is_not_in_the_environment_is_refused_by_name(interpreter: Command, tmp_path: Path) -> None:
    with pytest.raises(NotFinished, match=r"No module named 'vllm\._C'"):
        check(CUDA, interpreter, tmp_path)


@pytest.mark.usefixtures("driver")
def test_every_module_that_the_release_imports_is_loaded(packages: Path, interpreter: Command, tmp_path: Path) -> None:
    spec = EnvironmentSpec("vllm", "0.23.0", "cuda")
    (packages / "vllm/_C.py").write_text("")
    with pytest.raises(NotFinished, match="_C_stable_libtorch"):
        check(spec, interpreter, tmp_path)
    (packages / "vllm/_C_stable_libtorch.py").write_text("")
    assert check(spec, interpreter, tmp_path) == Health()


def test_of_a_release_that_is_not_recorded_whatever_it_brings_is_loaded(
    packages: Path, interpreter: Command, tmp_path: Path
) -> None:
    spec = EnvironmentSpec("vllm", "99.0", "cuda")
    with pytest.raises(NotFinished, match="no compiled module"):
        check(spec, interpreter, tmp_path)
    (packages / "vllm/_C_next.abi3.so").write_bytes(b"")
    assert check(spec, interpreter, tmp_path).unchecked == ("vllm._C_next",)


def test_the_cpu_platform_itself_says_which_module_this_machine_takes(
    packages: Path, interpreter: Command, tmp_path: Path
) -> None:
    """A file that a program maps stands for the library it loads; the others are never touched."""
    taken = packages / "vllm/_C_AVX2.abi3.so"
    taken.write_bytes(bytes(4096))
    body = f"import mmap; self.file = open({str(taken)!r}, 'rb'); self.held = mmap.mmap(self.file.fileno(), 0, prot=1)"
    (packages / "vllm/platforms/__init__.py").write_text(CHOOSES.format(body=body))
    assert check(CPU, interpreter, tmp_path) == Health()


def test_a_cpu_platform_that_goes_on_without_its_module_is_refused(
    packages: Path, interpreter: Command, tmp_path: Path
) -> None:
    (packages / "vllm/platforms/__init__.py").write_text(CHOOSES.format(body="print('warning: no operators')"))
    with pytest.raises(NotFinished, match=r"loaded none of vllm\._C, vllm\._C_AVX2, vllm\._C_AVX512"):
        check(CPU, interpreter, tmp_path)


def test_a_platform_of_an_old_release_that_answers_none_for_every_name_chooses_nothing(
    packages: Path, interpreter: Command, tmp_path: Path
) -> None:
    (packages / "vllm/platforms/__init__.py").write_text(ANSWERS_NONE)
    with pytest.raises(NotFinished, match=r"No module named 'vllm\._C'"):
        check(EnvironmentSpec("vllm", "0.8.5", "cpu"), interpreter, tmp_path)


@pytest.mark.usefixtures("driver")
def test_an_interpreter_that_dies_of_a_signal_is_said_to(packages: Path, interpreter: Command, tmp_path: Path) -> None:
    (packages / "vllm/_C.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    with pytest.raises(NotFinished, match="ended by SIGILL"):
        check(CUDA, interpreter, tmp_path)


def test_what_could_not_be_checked_is_checked_once_there_is_a_driver(
    tmp_path: Path, packages: Path, interpreter: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = environment.root() / CUDA.name
    home.mkdir(parents=True)
    state = {
        "format": environment.FORMAT, "spec": {"package": "vllm", "version": "0.18.1", "build": "cuda"},
        "directory": "20261121T033512-4711", "python": interpreter[0], "variables": {}, "lock": [], "notes": [],
        "versions": {}, "unchecked": ["vllm._C"],
    }  # fmt: skip
    (home / environment.STATE).write_text(json.dumps(state))
    (packages / "vllm/_C.py").write_text("")
    monkeypatch.setattr(environment, "driver_is_there", lambda: False)
    (note,) = environment.ensure(CUDA, print).notes
    assert "vllm._C" in note
    monkeypatch.setattr(environment, "driver_is_there", lambda: True)
    monkeypatch.setattr(health, "_LOAD_OPERATORS", health._LOAD_OPERATORS.replace(ABSENT, "libc.so.6"))
    assert environment.ensure(CUDA, print).notes == ()
    assert json.loads((home / environment.STATE).read_text())["unchecked"] == []
