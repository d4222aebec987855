"""`rlaudit curves LOG --gate`: one log, finished or growing, held against gates."""

import json
import os
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.curves.follow import FollowedLog, follow
from rlaudit.curves.gate import Gate, Watched, parse_gate

KEY = "mismatch_kl/mean"


def write(path: Path, values: list[float | str], key: str = KEY, first: int = 0) -> None:
    with path.open("a") as file:
        for step, value in enumerate(values, first):
            file.write(json.dumps({"step": step, key: value}) + "\n")


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def report(path: Path, *words: str) -> tuple[int, dict]:
    out = path.parent / "report.json"
    code = run(["curves", str(path), *words, "--quiet", "--output", f"json:{out}"])
    return code, json.loads(out.read_text())


@pytest.mark.parametrize("text", ["k3", "k3<", "<1", "k3<nan", "k3<inf", "k3=1", "k3<1<2", ""])
def test_what_is_no_gate_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["curves", str(tmp_path), "--gate", text]) == 2
    assert "k3<0.015" in capsys.readouterr().err


def test_a_gate_is_found_by_rlaudits_name_and_by_the_logs_key(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, [0.02] * 20)
    for gate in ("k3<0.015", f"{KEY}<0.015"):
        code, document = report(log, "--gate", gate)
        (found,) = document["gates"]["gates"]
        assert (code, found["metric"], found["canonical"]) == (1, KEY, "k3")
        assert found["since_step"] == 0 and found["alarm_step"] < 12


def test_a_run_within_its_gate_ends_with_0_and_one_whose_metric_is_not_logged_with_3(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, [0.001] * 50)
    assert report(log, "--gate", "k3<0.015")[0] == 0
    code, document = report(log, "--gate", "k3<0.015", "--gate", "reward>0")
    assert code == 3 and "reward>0: nothing is logged under that name" in " ".join(document["not_seen"])


def test_a_report_of_gates_is_of_curves_rendered_again_and_no_part_of_a_diagnosis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    write(log, [0.02] * 20)
    _, document = report(log, "--gate", "k3<0.015")
    file = tmp_path / "again.json"
    file.write_text(json.dumps(document))
    capsys.readouterr()
    assert document["command"] == "curves" and run(["report", str(file)]) == 1
    assert "1 of 1 gates raised" in capsys.readouterr().out
    assert run(["diagnose", str(file)]) == 2
    assert "gates" in capsys.readouterr().err


def test_values_that_are_no_numbers_break_every_gate(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, ["NaN"] * 20)
    code, document = report(log, "--gate", "k3<0.015")
    assert code == 1 and document["gates"]["gates"][0]["last_value"] is None


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Each look finds more: no file, an empty one, good steps, half a line, bad steps."""
    log = tmp_path / "log.jsonl"
    looks = iter(
        [
            log.touch,
            lambda: write(log, [0.001] * 30),
            lambda: append(log, '{"step": 30, "mism'),
            lambda: append(log, 'atch_kl/mean": 0.001}\n'),
            lambda: write(log, [0.1] * 40, first=31),
        ]
    )

    followed = FollowedLog(str(log), None, None, (parse_gate("k3<0.015"),), 0.01)
    ended = follow(followed, 1.0, None, sleep=lambda _: next(looks)())
    assert ended == "a gate was raised"
    (found,) = followed.watched.values()
    assert found.since == 31 and found.alarm is not None and 31 < found.alarm < 65


def test_looking_often_or_once_is_the_same(tmp_path: Path) -> None:
    values = [0.02 if step % 3 else 0.001 for step in range(200)]
    # The first series of a gate has half of its share.
    once = Watched(Gate("k3", True, 0.015), KEY, 0.01 / 2)
    log = tmp_path / "log.jsonl"
    followed = FollowedLog(str(log), None, None, (once.gate,), 0.01)
    for step, value in enumerate(values):
        once.see(step, value)
        write(log, [value], first=step)
        os.utime(log, ns=(step, step))
        followed.look()
    often = followed.watched[once.gate, KEY]
    assert (once.evidence, once.alarm) == (often.evidence, often.alarm)


def test_a_log_that_is_not_there_is_said_where_one_look_was_asked_for(tmp_path: Path) -> None:
    code, document = report(tmp_path / "nowhere.jsonl", "--gate", "k3<0.015")
    assert code == 3 and f"there is no {tmp_path / 'nowhere.jsonl'} yet" in document["not_seen"]


def test_it_ends_in_silence(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, [0.001] * 30)
    seconds = iter(range(100))
    followed = FollowedLog(str(log), None, None, (parse_gate("k3<0.015"),), 0.01)
    ended = follow(followed, 1.0, 20.0, sleep=lambda _: None, clock=lambda: float(next(seconds)))
    assert (ended, followed.last_step) == ("nothing new for 20 seconds", 29)


def test_following_a_raised_gate_ends_with_1(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, [0.02] * 30)
    assert run(["curves", str(log), "--gate", "k3<0.015", "--follow", "--quiet"]) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["log.jsonl", "--follow"],
        ["log.jsonl", "other.jsonl", "--every", "1"],
        ["log.jsonl", "other.jsonl", "--gate", "k3<1"],
        ["log.jsonl", "--gate", "k3<1", "--seed", "1"],
        ["log.jsonl", "--gate", "k3<1", "--until-silent", "9"],
    ],
    ids=" ".join,
)
def test_an_option_that_would_do_nothing_is_refused(words: list[str]) -> None:
    assert run(["curves", *words]) == 2


def test_a_folder_of_rollout_dumps_is_refused_and_not_waited_for(tmp_path: Path, capsys) -> None:
    line = {"prompt_id": 0, "sample_id": 0, "rollout_logprob": [-1.0, -0.5], "trainer_logprob": [-1.0, -0.5]}
    (tmp_path / "step_1.jsonl").write_text(json.dumps(line) + "\n")
    assert run(["curves", str(tmp_path), "--gate", "k3<0.015", "--follow"]) == 2
    assert f"rlaudit compare {tmp_path}" in " ".join(capsys.readouterr().err.split())
