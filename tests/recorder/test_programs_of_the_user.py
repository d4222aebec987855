"""Under uvx, which puts rlaudit's own environment first on PATH, a recorded command finds the user's programs."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from recorded_commands import ROOT

SHOW = "import sys; print(sys.prefix)"
IN_A_SHELL = ["bash", "-c", f"python -c '{SHOW}'"]
A_CHILD = f"import subprocess; subprocess.run(['python', '-c', '{SHOW}'])"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with rlaudit's environment, `own`, and the user's, `theirs`, that has a vllm."""
    for name in ("own", "theirs"):
        venv.create(tmp_path / name, symlinks=True)
    packages(tmp_path / "own").joinpath("rlaudit.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    packages(tmp_path / "theirs").joinpath("vllm.py").write_text("")
    return tmp_path


def packages(environment: Path) -> Path:
    return next(environment.glob("lib/python*/site-packages"))


def record(place: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    mine = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    path = os.pathsep.join([str(place / "own" / "bin"), str(place / "theirs" / "bin"), os.environ["PATH"]])
    return subprocess.run(
        [place / "own" / "bin" / "python", "-m", "rlaudit", "record", "--", *words],
        check=False,
        cwd=place,
        env={**mine, "PATH": path, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "words",
    [["python", "-c", SHOW], IN_A_SHELL, ["python3", "-c", A_CHILD]],
    ids=lambda words: words[0],
)
def test_the_users_python_runs_and_is_named(words: list[str], place: Path) -> None:
    ended = record(place, *words)
    assert ended.stdout == f"{place / 'theirs'}\n"
    assert f"python is {place / 'theirs' / 'bin' / 'python'}" in ended.stderr.splitlines()[0]


@pytest.mark.parametrize("package", ["vllm", "torch"])
def test_an_environment_that_can_train_is_the_users(package: str, place: Path) -> None:
    packages(place / "own").joinpath(f"{package}.py").write_text("")
    ended = record(place, "python", "-c", SHOW)
    assert ended.stdout == f"{place / 'own'}\n"
    assert ended.stderr.startswith("rlaudit: recording into")


def test_an_environment_that_was_activated_is_meant(place: Path) -> None:
    assert record(place, "python", "-c", SHOW, VIRTUAL_ENV=str(place / "own")).stdout == f"{place / 'own'}\n"


def test_a_program_that_lies_nowhere_else_is_run(place: Path) -> None:
    (place / "own" / "bin" / "only-here").symlink_to(sys.executable)
    ended = record(place, "only-here", "-c", "import shutil; print(shutil.which('python'))")
    assert ended.stdout == f"{place / 'own' / 'bin' / 'python'}\n"


def test_without_another_python_the_one_there_is_runs(place: Path) -> None:
    ended = record(place, "python", "-c", SHOW, PATH=str(place / "own" / "bin"))
    assert ended.stdout == f"{place / 'own'}\n"
