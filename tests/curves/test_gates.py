"""`rlaudit curves LOG --gate`: one log, finished or growing, held against gates."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.curves.gate import Gate
from rlaudit.curves.gated_log import hold

KEY = "mismatch_kl/mean"


def write(path: Path, values: list[float | str], key: str = KEY, first: int = 0) -> None:
    with path.open("a") as file:
        for step, value in enumerate(values, first):
            file.write(json.dumps({"step": step, key: value}) + "\n")


def report(path: Path, *words: str) -> tuple[int, dict]:
    out = path.parent / "report.json"
    code = run(["curves", str(path), *words, "--output", f"json:{out}"])
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


@pytest.mark.parametrize("name", ["mismatch_kl", "gen/mismatch_kl", "mismatch_kl/mean"])
def test_a_logged_name_is_taken_without_what_stands_around_it(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, [0.02] * 20, key="gen/mismatch_kl/mean")
    code, document = report(log, "--gate", f"{name}<0.015")
    assert (code, document["gates"]["gates"][0]["metric"]) == (1, "gen/mismatch_kl/mean")


def test_a_name_that_is_not_logged_brings_the_logged_ones_with_the_likest_first(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, [0.02], key="a")
    write(log, [0.02])
    code, document = report(log, "--gate", "mismatch_kll<0.015")
    assert code == 3
    assert f"nothing is logged under that name; there are {KEY} (k3), a" in " ".join(document["not_seen"])


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
    assert "1 of 1 gate violated" in capsys.readouterr().out
    assert run(["diagnose", str(file)]) == 2
    assert "gates" in capsys.readouterr().err


def test_values_that_are_no_numbers_break_every_gate(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, ["NaN"] * 20)
    code, document = report(log, "--gate", "k3<0.015")
    assert code == 1 and document["gates"]["gates"][0]["last_value"] is None


def test_looking_after_every_step_or_once_is_the_same(tmp_path: Path) -> None:
    """The last line of a log that grows may be half a line."""
    log, gate = tmp_path / "log.jsonl", Gate("k3", True, 0.015)
    alarms = []
    for step in range(40):
        write(log, [0.02 if step > 10 else 0.001], first=step)
        half = tmp_path / "half.jsonl"
        half.write_text(log.read_text() + '{"step": 99, "mism')
        looks = [hold(str(path), None, None, (gate,), 0.01).held[0] for path in (log, half)]
        assert looks[0] == looks[1]
        alarms.append(looks[0].alarm_step)
    first = next(alarm for alarm in alarms if alarm is not None)
    assert 11 < first < 39 and set(alarms) == {None, first} and alarms.index(first) == first


def test_a_log_that_is_not_there_yet_is_said(tmp_path: Path) -> None:
    code, document = report(tmp_path / "nowhere.jsonl", "--gate", "k3<0.015")
    assert code == 3 and f"there is no {tmp_path / 'nowhere.jsonl'} yet" in document["not_seen"]


@pytest.mark.parametrize(
    "words",
    [
        ["log.jsonl", "other.jsonl", "--gate", "k3<1"],
        ["log.jsonl", "--gate", "k3<1", "--seed", "1"],
    ],
    ids=" ".join,
)
def test_an_option_that_would_do_nothing_is_refused(words: list[str]) -> None:
    assert run(["curves", *words]) == 2


def test_a_folder_of_rollout_dumps_is_refused(tmp_path: Path, capsys) -> None:
    line = {"prompt_id": 0, "sample_id": 0, "rollout_logprob": [-1.0, -0.5], "trainer_logprob": [-1.0, -0.5]}
    (tmp_path / "step_1.jsonl").write_text(json.dumps(line) + "\n")
    assert run(["curves", str(tmp_path), "--gate", "k3<0.015"]) == 2
    assert f"rlaudit compare {tmp_path}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("below", [True, False])
def test_beside_a_violated_gate_stands_the_narrowest_limit_that_would_have_passed(below: bool, tmp_path: Path) -> None:
    log, sign = tmp_path / "log.jsonl", "<" if below else ">"
    values = [0.001 * (1 + number % 3) for number in range(20)] + [0.02 + 0.0001 * (number % 7) for number in range(60)]
    write(log, values if below else [-value for value in values])
    code, document = report(log, "--gate", f"{KEY}{sign}{'' if below else '-'}0.01")
    (held,) = document["gates"]["gates"]
    limit = abs(held["would_pass"])
    assert code == 1 and 0.02 <= limit <= 0.0206 and "would have passed" in held["because"]
    ends = sorted((abs(held["would_pass_low"]), abs(held["would_pass_high"])))
    assert 0.02 <= ends[0] <= ends[1] <= 0.0206
    assert report(log, "--gate", f"{KEY}{sign}{held['would_pass']}")[0] == 0
    narrower = held["would_pass"] - (1 if below else -1) * 0.0002
    assert report(log, "--gate", f"{KEY}{sign}{narrower}")[0] == 1


def test_no_limit_passes_a_log_without_numbers(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, ["NaN"] * 20)
    (held,) = report(log, "--gate", "k3<0.015")[1]["gates"]["gates"]
    assert held.get("would_pass") is None and "would have passed" not in held["because"]
