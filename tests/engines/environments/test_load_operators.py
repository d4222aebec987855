"""vLLM's compiled operators are loaded as the release would, and on a login node what can be looked at is."""

import json
import sys
from pathlib import Path

import pytest

from rlaudit.engines.engine import Build
from rlaudit.engines.environments import environment, health
from rlaudit.engines.environments.environment_spec import Command, EnvironmentSpec
from rlaudit.engines.environments.health import Health, check
from rlaudit.engines.inside.scripts import load_operators
from rlaudit.errors import NotFinished

CUDA = EnvironmentSpec("vllm", "0.18.1", "cuda")
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
# A file that a program maps stands for the library it loads; the others are never touched.
MAPS = CHOOSES.format(
    body="import mmap; self.file = open(Path(__file__).parents[1] / '_C_AVX2.abi3.so', 'rb'); "
    "self.held = mmap.mmap(self.file.fileno(), 0, prot=1)"
)
SPOILED, PLATFORM = {"_C.abi3.so": "no loader takes this"}, "platforms/__init__.py"


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


# By what is so: the release, its build, whether there is a driver, files below vllm/, and what is unchecked or said.
CASES: dict[str, tuple[str, Build, bool, dict[str, str], tuple[str, ...] | str]] = {
    "without a driver a module is found and left to be loaded": ("0.18.1", "cuda", False, SPOILED, ("vllm._C",)),
    "with a driver a module that does not load is refused in the loader's words": (
        "0.18.1", "cuda", True, SPOILED, r"_C\.abi3\.so: (file too short|invalid ELF header)",
    ),
    "a module that is not in the environment is refused by name": (
        "0.18.1", "cuda", False, {}, r"No module named 'vllm\._C'",
    ),
    "every module that the release imports is loaded": (
        "0.23.0", "cuda", True, {"_C.py": ""}, "_C_stable_libtorch",
    ),
    "and is enough": ("0.23.0", "cuda", True, {"_C.py": "", "_C_stable_libtorch.py": ""}, ()),
    "a release that is not recorded has to bring some": ("99.0", "cuda", False, {}, "no compiled module"),
    "and whatever it brings is loaded": ("99.0", "cuda", False, {"_C_next.abi3.so": ""}, ("vllm._C_next",)),
    "the CPU platform itself says which module this machine takes": (
        "0.18.1", "cpu", False, {"_C_AVX2.abi3.so": "\0" * 4096, PLATFORM: MAPS}, (),
    ),
    "a CPU platform that goes on without its module is refused": (
        "0.18.1", "cpu", False, {PLATFORM: CHOOSES.format(body="print('warning: no operators')")},
        r"loaded none of vllm\._C, vllm\._C_AVX2, vllm\._C_AVX512",
    ),
    "a platform of an old release that answers None for every name chooses nothing": (
        "0.8.5", "cpu", False, {PLATFORM: ANSWERS_NONE}, r"No module named 'vllm\._C'",
    ),
    "an interpreter that dies of a signal is said to": (
        "0.18.1", "cuda", True, {"_C.py": "import os, signal; os.kill(os.getpid(), signal.SIGILL)"}, "ended by SIGILL",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_operators_are_loaded_as_the_release_would_or_refused(
    case: str, packages: Path, interpreter: Command, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    version, build, has_driver, files, found = CASES[case]
    if has_driver:
        request.getfixturevalue("driver")
    for name, text in files.items():
        (packages / "vllm" / name).write_text(text)
    spec = EnvironmentSpec("vllm", version, build)
    if isinstance(found, str):
        with pytest.raises(NotFinished, match=found):
            check(spec, interpreter, tmp_path)
    else:
        assert check(spec, interpreter, tmp_path) == Health(unchecked=found)


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
