"""Logs as crashes, resumes and other programs leave them: said where, and the rest used."""

import json
from pathlib import Path

import pytest

from rlaudit.curves.curve import Run, run_of
from rlaudit.curves.open_run import open_run
from rlaudit.errors import NotFinished


def jsonl(tmp_path: Path, text: str) -> Run:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text, encoding="utf-8")
    return run_of(open_run(str(path), None), None)


def rows(*pairs: tuple[object, object]) -> str:
    return "".join(json.dumps({"step": step, "m": value}) + "\n" for step, value in pairs)


def said(run: Run) -> str:
    return "\n".join(str(problem) for problem in run.problems)


RESUMED = rows(*((step, 1.0) for step in range(1, 11)), (6, 2.0), (7, 2.0))
# What a log holds, the curve that is read of it, and what is said of the rest.
LOGS: dict[str, tuple[str, dict[int, float], str]] = {
    "a line cut off at the end": (
        rows((1, 0.5), (2, 0.6)) + '{"step": 3, "m": 0.',
        {1: 0.5, 2: 0.6},
        "line 3: cut off in the middle",
    ),
    "a list": (rows((1, 0.5)) + "[1, 2]\n", {1: 0.5}, "line 2: a list where an object was expected"),
    "lines of a traceback": (
        rows((1, 0.5)) + "Traceback\nTraceback\n" + rows((2, 0.6)),
        {1: 0.5, 2: 0.6},
        "line 2: not JSON (2 times, this is the first)",
    ),
    "NaN and infinity": (
        rows((1, 0.5)) + '{"step": 2, "m": NaN}\n{"step": 3, "m": "Infinity"}\n' + rows((4, 0.6)),
        {1: 0.5, 4: 0.6},
        "line 2: m is not finite at 2 steps, the first is 2",
    ),
    "an integer too large for a float": (
        rows((1, 0.5)) + '{"step": 2, "m": 1' + "0" * 400 + "}\n",
        {1: 0.5},
        "line 2: m is not finite at 1 step, the first is 2",
    ),
    "a word": (rows((1, 0.5), (2, "high"), (3, 0.6)), {1: 0.5, 3: 0.6}, "line 2: m is 'high', not a number"),
    "a step twice": (
        rows((1, 0.5), (2, 0.6), (2, 0.9), (3, 0.7)),
        {1: 0.5, 2: 0.9, 3: 0.7},
        "line 3: m has one step twice with different values",
    ),
    "a resume, which drops the abandoned part": (
        RESUMED,
        {**dict.fromkeys(range(1, 6), 1.0), 6: 2.0, 7: 2.0},
        "line 11: the steps go back to 6 from 10: a resume",
    ),
    "rows out of order": (
        rows((3, 0.3), (1, 0.1), (2, 0.2)),
        {1: 0.1, 2: 0.2, 3: 0.3},
        "not in the order of its steps",
    ),
}


@pytest.mark.parametrize("log", LOGS)
def test_what_is_not_used_is_said_and_the_rest_is_read(log: str, tmp_path: Path) -> None:
    text, expected, problem = LOGS[log]
    run = jsonl(tmp_path, text)
    curve = run.curves["m"]
    assert dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True)) == expected
    assert problem in said(run)


def test_a_column_of_words_flags_and_histograms_is_no_metric(tmp_path: Path) -> None:
    row = {"step": 1, "m": 0.5, "text": "a", "flag": True, "histogram": {"bins": [1]}, "list": [1.0], "none": None}
    run = jsonl(tmp_path, json.dumps(row) + "\n")
    assert list(run.curves) == ["m"]
    assert run.problems == ()


@pytest.mark.parametrize("step", [None, "x", -1, 1.5, True, 1e300, [1]])
def test_a_row_without_a_usable_step_is_told_and_left_out(step: object, tmp_path: Path) -> None:
    run = jsonl(tmp_path, rows((1, 0.5), (step, 0.6), (3, 0.7)))
    assert run.curves["m"].steps.tolist() == [1, 3]
    assert "line 2: no step" in said(run) or f"line 2: step is {step!r}" in said(run)


def test_metrics_of_one_step_may_come_in_several_rows(tmp_path: Path) -> None:
    run = jsonl(tmp_path, '{"step": 1, "m": 0.5}\n{"step": 1, "eval": 2.0}\n{"step": 1, "m": 0.5}\n')
    assert {key: curve.values.tolist() for key, curve in run.curves.items()} == {"eval": [2.0], "m": [0.5]}
    assert run.problems == ()


def test_a_resume_is_reported_once_for_all_metrics(tmp_path: Path) -> None:
    run = jsonl(tmp_path, "".join(json.dumps({"step": step, "a": 1.0, "b": 2.0}) + "\n" for step in (1, 2, 3, 2, 3)))
    assert said(run).endswith("line 4: the steps go back to 2 from 3: a resume; the later values are used")


def test_train_and_eval_rows_of_one_step_may_differ_in_their_bookkeeping(tmp_path: Path) -> None:
    run = jsonl(tmp_path, '{"step": 1, "m": 0.5, "memory(GiB)": 1.0}\n{"step": 1, "eval": 2.0, "memory(GiB)": 1.5}\n')
    assert run.problems == ()


def test_a_table_with_ragged_lines_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("step,m\n1,0.5\n2\n3,0.7,9\n4,0.8\n")
    run = run_of(open_run(str(path), None), None)
    assert run.curves["m"].steps.tolist() == [1, 4]
    assert "line 3: 1 cells where the header has 2" in said(run)


def test_a_cut_off_dict_of_pipelinerl_is_told(tmp_path: Path) -> None:
    path = tmp_path / "info_0.log"
    path.write_text("Completed steps 1: {'m': '0.5', 'n': nan}\nCompleted steps 2: {'m': '0.\n")
    run = run_of(open_run(str(path), None), None)
    assert run.curves["m"].steps.tolist() == [1]
    assert len(run.curves["n"].not_finite_steps) == 1
    assert "line 2: cut off in the middle" in said(run)


def test_a_dict_of_pipelinerl_is_never_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "info_0.log"
    trap = tmp_path / "trap"
    path.write_text(f"Completed steps 1: {{'m': open({str(trap)!r}, 'w')}}\nCompleted steps 2: {{'m': '1.0'}}\n")
    run = run_of(open_run(str(path), None), None)
    assert run.curves["m"].steps.tolist() == [2]
    assert not trap.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trainer_state.json", b'{"log_history": [{"step": 1,'),
        ("trainer_state.json", b"{}"),
        ("t.parquet", b"PAR1 and then nothing"),
        ("metrics.jsonl", b""),
        ("run.wandb", b":W&B\xe1\xbe\x00"),
    ],
)
def test_what_holds_nothing_ends_unfinished_and_not_in_a_traceback(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NotFinished):
        open_run(str(tmp_path / name), None)
