"""uv takes its settings from the user and from no project: what a checkout says decides no engine."""

import os
import sys
import zipfile
from pathlib import Path

import pytest

from rlaudit.engines.environments.pip_configuration import PackageSources, read_package_sources
from rlaudit.engines.environments.uv import Uv, UvError, find_uv

PYTHON = Path(sys.executable)
# Of the wheels of one package, uv takes the newest.
OF_THE_USER, OF_THE_CHECKOUT = "1.0", "2.0"
NEWER_WHEELS = 'find-links = ["{folder}"]\n'
# By name: where below the home folder, and the text. {folder} has the newer wheel.
PLANTED = {
    "uv.toml": ("checkout/uv.toml", NEWER_WHEELS),
    "uv.toml of a folder above": ("uv.toml", NEWER_WHEELS),
    "uv.toml that uv cannot read": ("checkout/uv.toml", "index = what"),
    "pyproject.toml": ("checkout/pyproject.toml", "[tool.uv]\n" + NEWER_WHEELS),
    "overrides": ("checkout/pyproject.toml", '[tool.uv]\noverride-dependencies = ["one==2.0"]\n' + NEWER_WHEELS),
    "overrides alone": ("checkout/pyproject.toml", '[tool.uv]\noverride-dependencies = ["one==3.0"]\n'),
    "constraints": ("checkout/pyproject.toml", '[tool.uv]\nconstraint-dependencies = ["one<1"]\n'),
    "a workspace above": (
        "pyproject.toml",
        '[project]\nname = "x"\nversion = "1"\n[tool.uv.workspace]\nmembers = ["*", "*/*"]\n[tool.uv]\n' + NEWER_WHEELS,
    ),
    "a version of uv": ("checkout/uv.toml", 'required-version = "==0.0.1"\n'),
}


def wheel(folder: Path, version: str) -> str:
    """Put a wheel of the package `one` into the folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"one-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"one-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: one\nVersion: {version}\n")
        file.writestr(f"one-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"one-{version}.dist-info/RECORD", "")
    return str(folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, with the working directory in `checkout` and temporary files below it, too."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "rlaudit"))
    (tmp_path / "checkout/tmp").mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "checkout/tmp"))
    monkeypatch.chdir(tmp_path / "checkout")
    return tmp_path


def resolved(home: Path, sources: PackageSources) -> str:
    """Return what uv resolves `one` to."""
    (home / "requirements.txt").write_text("one\n")
    words = ("--no-header", "--no-annotate", home / "requirements.txt")
    return Uv(find_uv(), sources).pip("compile", PYTHON, *words).strip()


@pytest.mark.parametrize("planted", PLANTED)
def test_what_a_project_says_decides_nothing(planted: str, home: Path) -> None:
    place, text = PLANTED[planted]
    (home / place).write_text(text.format(folder=wheel(home / "newer", OF_THE_CHECKOUT)))
    sources = PackageSources(no_index=True, find_links=(wheel(home / "wheels", OF_THE_USER),))
    assert resolved(home, sources) == f"one=={OF_THE_USER}"
    assert list((home / "checkout/tmp").iterdir()) == []


def test_the_user_s_own_settings_of_uv_count(home: Path) -> None:
    settings = f'no-index = true\nfind-links = ["{wheel(home / "wheels", OF_THE_USER)}"]\n'
    (home / ".config/uv").mkdir(parents=True)
    (home / ".config/uv/uv.toml").write_text(settings)
    assert resolved(home, PackageSources()) == f"one=={OF_THE_USER}"


@pytest.mark.parametrize("where", ["pip.conf", "uv", "uv's file", "a constraint"])
def test_relative_paths_of_the_user_are_those_of_the_working_directory(
    where: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(home / "checkout/wheels", OF_THE_USER)
    if where == "pip.conf":
        (home / ".config/pip").mkdir(parents=True)
        (home / ".config/pip/pip.conf").write_text("[global]\nno-index = yes\nfind-links = wheels\n")
    elif where == "uv's file":
        Path("mine.toml").write_text('no-index = true\nfind-links = ["wheels"]\n')
        monkeypatch.setenv("UV_CONFIG_FILE", "mine.toml")
    else:
        monkeypatch.setenv("UV_NO_INDEX", "1")
        monkeypatch.setenv("UV_FIND_LINKS", "wheels")
    if where == "a constraint":
        wheel(home / "checkout/wheels", OF_THE_CHECKOUT)
        Path("mine.txt").write_text("one<2\n")
        monkeypatch.setenv("UV_CONSTRAINT", "mine.txt")
    assert resolved(home, read_package_sources()).splitlines()[0] == f"one=={OF_THE_USER}"


def test_the_python_of_an_environment_is_not_picked_by_a_file_of_the_checkout(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As pyenv's: the file of the working directory names what a shim on PATH runs.
    shims = home / "shims"
    shims.mkdir()
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    real = os.path.realpath(sys.executable)
    (shims / minor).write_text(f'#!/bin/sh\ntest ! -e .python-version && exec "{real}" "$@"\n')
    (shims / minor).chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}:/usr/bin:/bin")
    monkeypatch.setenv("UV_PYTHON_PREFERENCE", "only-system")
    Path(".python-version").write_text("3.0\n")
    Path("mine.toml").write_text("no-index = true\n")
    monkeypatch.setenv("UV_CONFIG_FILE", "mine.toml")
    Uv(find_uv(), PackageSources()).venv(minor.removeprefix("python"), Path("made"))
    assert os.path.realpath("made/bin/python") == real


def test_a_failure_is_told_in_uv_s_words(home: Path) -> None:
    with pytest.raises(UvError, match="one was not found"):
        resolved(home, PackageSources(no_index=True))


def test_the_python_that_runs_rlaudit_is_found_off_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home / "nothing"))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(home / "pythons"))
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    Uv(find_uv(), PackageSources()).venv(minor, home / "made")
    assert Path(os.path.realpath(home / "made/bin/python")).is_relative_to(os.path.realpath(sys.base_prefix))
