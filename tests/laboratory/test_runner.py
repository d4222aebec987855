"""What a study asks of an executor: everything at once, and the answers in the order of its questions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Event, Failure, Outcome
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.runner import Runner
from rlaudit.progress import Progress

DONE = Outcome("ok", {}, None, {})
LATE = Outcome("failed", {}, Failure("timeout", "too late"), {})


@dataclass
class Elsewhere:
    """An executor that keeps a diary."""

    answers: list[Outcome]
    diary: list[str] = field(default_factory=list)

    def submit(
        self,
        cell: Cell,
        title: str = "",
        on_event: Callable[[Event], None] = lambda event: None,
        number: int | None = None,
    ) -> "Taken":
        self.diary.append(f"submit {cell.job['number']}")
        return Taken(self, cell.job["number"])

    def __enter__(self) -> "Elsewhere":
        return self

    def __exit__(self, *error: object) -> None:
        self.diary.append("closed")


@dataclass
class Taken:
    where: Elsewhere
    number: int

    def result(self) -> Outcome:
        self.where.diary.append(f"result {self.number}")
        return self.where.answers.pop(0)

    def cancel(self) -> None:
        self.where.diary.append(f"cancel {self.number}")


def cell(tmp_path: Path, number: int, timeout_seconds: float = 10.0) -> Cell:
    script = tmp_path / "script.py"
    script.write_text("")
    return Cell({"script": str(script), "number": number}, ("python",), {}, timeout_seconds, {})


def runner(tmp_path: Path, where: Elsewhere) -> Runner:
    return Runner(RunFolder(tmp_path), where, Progress(quiet=True))


def test_everything_is_submitted_before_the_first_answer_is_waited_for(tmp_path: Path) -> None:
    where = Elsewhere([DONE, DONE])
    asked = [(cell(tmp_path, number), f"cell {number}") for number in (1, 2)]
    assert list(runner(tmp_path, where).outcomes(asked)) == [DONE, DONE]
    assert where.diary == ["submit 1", "submit 2", "result 1", "result 2"]


def test_equal_cells_are_run_once(tmp_path: Path) -> None:
    where = Elsewhere([DONE])
    twice = [(cell(tmp_path, 1), "first"), (cell(tmp_path, 1), "again")]
    assert list(runner(tmp_path, where).outcomes(twice)) == [DONE, DONE]
    assert where.diary == ["submit 1", "result 1"]


def test_a_cell_that_failed_is_run_again_under_another_time_limit(tmp_path: Path) -> None:
    where = Elsewhere([LATE, DONE])
    twice = [(cell(tmp_path, 1), "first"), (cell(tmp_path, 1, timeout_seconds=100.0), "with more time")]
    assert [outcome.status for outcome in runner(tmp_path, where).outcomes(twice)] == ["failed", "ok"]
    assert where.diary == ["submit 1", "result 1", "submit 1", "result 1"]


def test_what_nobody_waits_for_any_more_is_cancelled(tmp_path: Path) -> None:
    where = Elsewhere([])
    asked = [(cell(tmp_path, number), f"cell {number}") for number in (1, 2)]
    with pytest.raises(IndexError):
        list(runner(tmp_path, where).outcomes(asked))
    assert where.diary == ["submit 1", "submit 2", "result 1", "cancel 2"]
