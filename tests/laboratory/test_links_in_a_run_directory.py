"""A run directory that came from a stranger: nothing outside it is written, and nothing in it is waited for."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlaudit.ablation.unfinished_run import unfinished_document
from rlaudit.engines.cells.seal import SEAL
from rlaudit.errors import UsageError
from rlaudit.laboratory.run_folder import CELLS, PLAN, REPORT, TOKENS, cells_of_plan, opened

MINE = "mine"


def run_in(folder: Path) -> None:
    """Carry a run out that requests one cell."""
    with opened(folder) as run:
        run.begin({"recipe": {}})
        run.asked_for("a cell")
        run.finish({"exit_code": 0}, lambda draft: draft.write_bytes(b"tokens") and None)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file, which is as it was when the test has ended."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text(MINE)
    yield folder
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("file", MINE)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "file")


def relative_link(path: Path, outside: Path) -> None:
    path.symlink_to(f"../{outside.name}/file")


def pipe(path: Path, outside: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("planted", [link, relative_link, pipe])
@pytest.mark.parametrize("name", [PLAN, CELLS, TOKENS, REPORT, SEAL])
def test_a_file_that_is_a_link_or_a_pipe_is_replaced(
    name: str, planted: Callable[[Path, Path], None], run: Path, outside: Path
) -> None:
    planted(run / name, outside)
    run_in(run)
    plain = run.parent / "plain"
    run_in(plain)
    for folder in (run, plain):
        assert not (folder / name).is_symlink()
    assert (run / name).read_bytes() == (plain / name).read_bytes()
    assert (run / name).stat().st_mode == (plain / name).stat().st_mode


def test_a_report_that_becomes_a_link_while_the_run_goes_on_is_replaced(run: Path, outside: Path) -> None:
    with opened(run) as folder:
        folder.begin({"recipe": {}})
        for name in (CELLS, TOKENS, REPORT):
            (run / name).unlink(missing_ok=True)
            link(run / name, outside)
        folder.asked_for("a cell")
        folder.finish({"exit_code": 0}, lambda draft: draft.write_bytes(b"tokens") and None)
    assert not any(path.is_symlink() for path in run.iterdir())


FOLDERS = ("cells", "checkpoints", "weights handed over", ".on-ray-0123-1")


@pytest.mark.parametrize(
    ("name", "target"), [*((name, target) for name in (*FOLDERS, ".lock") for target in ("", "new")), (".lock", "file")]
)
def test_a_link_that_would_be_written_through_is_refused(name: str, target: str, run: Path, outside: Path) -> None:
    (run / name).symlink_to(outside / target)
    with pytest.raises(UsageError, match=f"{name} is a link"):
        run_in(run)
    assert sorted(path.name for path in run.iterdir()) == [name]


def test_a_lock_that_is_a_pipe_is_refused(run: Path) -> None:
    os.mkfifo(run / ".lock")
    with pytest.raises(UsageError, match=r"\.lock is no file"):
        run_in(run)


def test_the_run_directory_itself_may_be_a_link(run: Path) -> None:
    here = run.parent / "here"
    here.symlink_to(run)
    run_in(here)
    assert here.is_symlink()
    assert (run / REPORT).is_file()


def test_a_link_to_a_file_that_is_none_of_the_run_s_stays(run: Path, outside: Path) -> None:
    link(run / "notes.txt", outside)
    run_in(run)
    assert (run / "notes.txt").is_symlink()


def test_a_plan_that_is_a_pipe_is_not_waited_for(run: Path) -> None:
    os.mkfifo(run / PLAN)
    (run / CELLS).write_text('{"plan": "x", "cells": []}')
    assert cells_of_plan(run) == []
    assert unfinished_document(run)["exit_code"] == 3
