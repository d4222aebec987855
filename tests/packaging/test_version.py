"""The version is written once, and every way to build or run rlaudit has it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rlaudit
from rlaudit.cli.app import run

ROOT = Path(__file__).parents[2]


def test_the_command_says_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rlaudit {rlaudit.__version__}\n"


@pytest.mark.parametrize("tagged", [None, "v9.9.9"])
def test_a_build_has_it_whatever_git_says(tmp_path: Path, tagged: str | None) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "rlaudit").mkdir()
    shutil.copy(ROOT / "rlaudit" / "__init__.py", tmp_path / "rlaudit")
    if tagged:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"], ["tag", tagged]):
            subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "hatchling", "version"]
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.strip() == rlaudit.__version__


def test_what_an_index_shows_is_there_and_leads_to_no_address_that_a_stranger_may_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"description", "readme", "license", "requires-python", "authors", "keywords", "classifiers"} <= set(project)
    assert {"Source", "Issues", "Changelog", "Documentation"} <= set(project["urls"])
    assert all("/<OWNER>/" in url for url in project["urls"].values())
    assert (ROOT / ".github" / "SECURITY.md").is_file()
