"""`--fix` leaves alone what is not the file it read, and says so; what it writes keeps mode and owner."""

import os
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.inspection import fix_files as module

CONFIG = "vllm serve m --no-enable-prefix-caching\n"
VERSIONS = ("--from", "0.8.5", "--to", "0.18.1", "--fail-on", "never")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "run.sh").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "given"


def fix(*words: str) -> int:
    return run(["inspect", *words, *VERSIONS])


def test_a_file_that_is_as_it_was_read_is_fixed_and_keeps_its_mode(folder: Path) -> None:
    (folder / "run.sh").chmod(0o750)
    assert fix("given", "--fix") == 0
    assert (folder / "run.sh").read_text() != CONFIG
    assert (folder / "run.sh").stat().st_mode & 0o777 == 0o750


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes the superuser")
def test_the_owner_stays_the_owner(folder: Path) -> None:
    os.chown(folder / "run.sh", 65534, 65534)
    assert fix("given", "--fix") == 0
    assert (folder / "run.sh").read_text() != CONFIG
    assert ((folder / "run.sh").stat().st_uid, (folder / "run.sh").stat().st_gid) == (65534, 65534)


def test_an_edit_made_meanwhile_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fixing = module.fix_file

    def edited_meanwhile(*arguments: object) -> object:
        (folder / "run.sh").write_text(CONFIG + "# mine\n")
        return fixing(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "fix_file", edited_meanwhile)
    assert fix("given", "--fix") == 3
    assert (folder / "run.sh").read_text() == CONFIG + "# mine\n"
    assert "changed after it was read" in capsys.readouterr().err


def test_a_link_out_of_what_was_given_is_not_followed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / ".git").mkdir()
    (folder / "run.sh").rename(folder.parent / "elsewhere.sh")
    (folder / "run.sh").symlink_to(folder.parent / "elsewhere.sh")
    assert fix("given", "--fix") == 3
    assert (folder.parent / "elsewhere.sh").read_text() == CONFIG
    assert "not in what was given" in capsys.readouterr().err
    assert fix("given/run.sh", "--fix") == 0
    assert (folder / "run.sh").is_symlink()
    assert (folder.parent / "elsewhere.sh").read_text() != CONFIG


def test_a_read_only_file_is_left_alone_whoever_asks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run.sh").chmod(0o444)
    assert fix("given", "--fix") == 3
    assert (folder / "run.sh").read_text() == CONFIG
    assert "read-only" in capsys.readouterr().err


def test_two_names_of_one_file_stay_one_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.link(folder / "run.sh", folder.parent / "other.sh")
    assert fix("given", "--fix") == 3
    assert (folder.parent / "other.sh").read_text() == CONFIG == (folder / "run.sh").read_text()
    assert "2 names" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["safe", "unsafe"])
def test_a_mode_that_stands_apart_is_refused_before_anything_is_written(
    mode: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fix("given", "--fix", mode) == 2
    assert (folder / "run.sh").read_text() == CONFIG
    assert f"--fix={mode}" in capsys.readouterr().err
