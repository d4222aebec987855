"""What a study asks of an executor: everything at once, and the answers in the order of its questions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.executor import Asked, OnEvent, unheard
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.runner import Runner
from rlaudit.text.progress import Progress

DONE = Outcome("ok", {}, None, {})
LATE = Outcome("failed", {}, Failure("timeout", "too late"), {})


@dataclass
class Elsewhere:
    """An executor that keeps a diary."""

    answers: list[Outcome]
    diary: list[str] = field(default_factory=list)

    def run(self, asked: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        numbers = [one.cell.job["number"] for one in asked]
        self.diary += [f"take {number}" for number in numbers]
        return map(self._outcome, numbers)

    def _outcome(self, number: int) -> Outcome:
        self.diary.append(f"outcome {number}")
        return self.answers.pop(0)


def cell(tmp_path: Path, number: int, timeout_seconds: float = 10.0) -> Cell:
    script = tmp_path / "script.py"
    script.write_text("")
    return Cell({"script": str(script), "number": number}, ("python",), {}, timeout_seconds, {})


def runner(tmp_path: Path, where: Elsewhere) -> Runner:
    return Runner(RunFolder(tmp_path), where, Progress(quiet=True))


def test_everything_is_handed_over_before_the_first_answer_is_waited_for(tmp_path: Path) -> None:
    where = Elsewhere([DONE, DONE])
    asked = [(cell(tmp_path, number), f"cell {number}") for number in (1, 2)]
    assert list(runner(tmp_path, where).outcomes(asked)) == [DONE, DONE]
    assert where.diary == ["take 1", "take 2", "outcome 1", "outcome 2"]


def test_equal_cells_are_run_once(tmp_path: Path) -> None:
    where = Elsewhere([DONE])
    twice = [(cell(tmp_path, 1), "first"), (cell(tmp_path, 1), "again")]
    assert list(runner(tmp_path, where).outcomes(twice)) == [DONE, DONE]
    assert where.diary == ["take 1", "outcome 1"]


def test_a_cell_that_failed_is_run_again_under_another_time_limit(tmp_path: Path) -> None:
    where = Elsewhere([LATE, DONE])
    twice = [(cell(tmp_path, 1), "first"), (cell(tmp_path, 1, timeout_seconds=100.0), "with more time")]
    assert [outcome.status for outcome in runner(tmp_path, where).outcomes(twice)] == ["failed", "ok"]
    assert where.diary == ["take 1", "outcome 1", "take 1", "outcome 1"]


def test_a_cell_that_an_earlier_question_has_under_way_is_waited_for_there(tmp_path: Path) -> None:
    where = Elsewhere([DONE, DONE, DONE])
    run = runner(tmp_path, where)
    first = run.outcomes([(cell(tmp_path, number), f"cell {number}") for number in (1, 2)])
    assert list(run.outcomes([(cell(tmp_path, number), "again") for number in (2, 3)])) == [DONE, DONE]
    assert list(first) == [DONE, DONE]
    assert where.diary == ["take 1", "take 2", "take 3", "outcome 1", "outcome 2", "outcome 3"]
