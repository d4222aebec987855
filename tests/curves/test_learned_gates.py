"""`rlaudit curves NEW --gates-from RUN`: limits learned from runs of today's stack."""

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from histories import HISTORIES, KEY, LEVEL, History, run_of
from scipy.stats import nct, norm
from synthetic_runs import Floats, Noise

from rlaudit.cli.app import run
from rlaudit.curves.gate_file import read_gates, written
from rlaudit.curves.learned_gates import GateSet, Part, Verdict, judge, learn
from rlaudit.curves.open_run import runs_below
from rlaudit.errors import NotFinished
from rlaudit.statistics.tolerance import tolerance_factor

QUIET = History(Noise("white"), between=0.03)
ALPHA = 0.05


def learned(values: Floats, alpha: float = ALPHA) -> GateSet:
    return learn([run_of(row, f"run {place}") for place, row in enumerate(values)], [], alpha)


def leaves(gates: GateSet, values: Floats) -> bool:
    return any(held.verdict is Verdict.OUTSIDE for held in judge(gates, run_of(values)))


def write_log(path: Path, values: Floats, first: int = 1, key: str = KEY) -> str:
    rows = ({"step": step, "data": {key: float(value)}} for step, value in enumerate(values, first))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten runs of today's stack, and new.jsonl: one more."""
    (tmp_path / "runs").mkdir()
    values = QUIET.values(11, np.random.default_rng(4))
    for place, row in enumerate(values[:-1]):
        write_log(tmp_path / "runs" / f"{place}.jsonl", row)
    write_log(tmp_path / "new.jsonl", values[-1])
    write_log(tmp_path / "moved.jsonl", 1.5 * values[-1])
    return tmp_path


def report(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    out = folder / "report.json"
    code = run(["curves", *words, "--output", f"json:{out}"])
    return code, json.loads(out.read_text())


@pytest.mark.parametrize("count", [2, 5, 10])
def test_the_factor_is_that_of_the_tables(count: int) -> None:
    # Hahn & Meeker, table A.12: one-sided, 95 % of the population, 90 % confidence.
    assert tolerance_factor(count, 0.05, 0.9) == pytest.approx({2: 13.090, 5: 3.400, 10: 2.568}[count], abs=2e-3)
    assert tolerance_factor(count, 0.01, 0.9) == pytest.approx(
        nct.ppf(0.9, count - 1, norm.isf(0.01) * count**0.5) / count**0.5
    )


@pytest.mark.parametrize("count", [3, 10], ids=lambda count: f"{count} runs")
@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_runs_of_the_same_stack_leave_their_gates_no_more_often_than_stated(history: History, count: int) -> None:
    """Of 60 runs at a rate of 0.05 more than 8 are outside once in 1,000 tests."""
    generator = np.random.default_rng(0)
    histories = [history.values(count + 1, generator) for _ in range(60)]
    assert sum(leaves(learned(values[:-1]), values[-1]) for values in histories) <= 8


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_ten_runs_show_a_mismatch_of_three_times_and_of_half_as_much_again(history: History) -> None:
    generator = np.random.default_rng(1)
    histories = [history.values(11, generator) for _ in range(20)]
    for factor, least in ((3.0, 20), (1.5, 16)):
        assert sum(leaves(learned(values[:-1]), factor * values[-1]) for values in histories) >= least, factor


def test_a_single_spike_leaves_no_gate_however_high() -> None:
    values = QUIET.values(11, np.random.default_rng(2))
    values[-1, 40] = 1e6
    assert not leaves(learned(values[:-1]), values[-1])


def test_a_change_at_the_end_leaves_the_gate_of_the_end_alone() -> None:
    values = QUIET.values(11, np.random.default_rng(3))
    values[-1, 88:] *= 3
    outside = [held for held in judge(learned(values[:-1]), run_of(values[-1])) if held.verdict is Verdict.OUTSIDE]
    assert [held.gate.part for held in outside] == [Part.END]


def test_a_mismatch_that_shrinks_is_no_alarm_and_a_reward_that_does_is_one() -> None:
    values = QUIET.values(11, np.random.default_rng(3))
    assert not leaves(learned(values[:-1]), values[-1] / 3)
    for key, factor, outside in (("critic/rewards/mean", 3, False), ("critic/rewards/mean", 1 / 3, True)):
        gates = learn([run_of(row, key=key) for row in values[:-1]], [], ALPHA)
        verdicts = {held.verdict for held in judge(gates, run_of(factor * values[-1], key=key))}
        assert (Verdict.OUTSIDE in verdicts) == outside


def test_few_runs_say_what_that_costs_and_one_run_is_refused() -> None:
    values = QUIET.values(10, np.random.default_rng(5))
    assert not learned(values).notes
    (note,) = learned(values[:2]).notes
    assert "2 runs are few" in note and "times as far" in note
    with pytest.raises(NotFinished, match="no spread"):
        learned(values[:1])


def test_a_run_that_is_unlike_the_others_is_named() -> None:
    values = QUIET.values(10, np.random.default_rng(6))
    values[3] *= 2
    assert any(note.startswith("run 3 lies outside") for note in learned(values).notes)


def test_runs_that_do_not_differ_give_no_gate() -> None:
    with pytest.raises(NotFinished, match="shows no spread"):
        learned(np.zeros((5, 50)))


def test_a_run_without_numbers_is_outside_and_one_that_is_too_short_is_not_judged() -> None:
    values = QUIET.values(11, np.random.default_rng(7))
    gates = learned(values[:-1])
    broken = values[-1].copy()
    broken[30:] = np.nan
    assert {held.verdict for held in judge(gates, run_of(broken))} == {Verdict.OUTSIDE}
    short = judge(gates, run_of(values[-1, :50]))
    assert {held.verdict for held in short} == {Verdict.UNKNOWN} and "ends at step 49" in short[0].because
    assert {held.verdict for held in judge(gates, run_of(values[-1], key="other"))} == {Verdict.UNKNOWN}


def test_the_limit_that_would_have_passed_passes_and_its_interval_holds_repeats() -> None:
    generator = np.random.default_rng(8)
    inside = 0
    for _ in range(40):
        values = QUIET.values(12, generator)
        values[10:] *= 1.5
        held = judge(learned(values[:10]), run_of(values[10]))[0]
        assert held.verdict is Verdict.OUTSIDE and held.value is not None and held.would_pass is not None
        assert held.value <= held.would_pass < held.value * 1.001
        assert held.would_pass_low is not None and held.would_pass_high is not None
        inside += held.would_pass_low <= float(np.median(values[11])) <= held.would_pass_high
    assert inside >= 34


def test_a_moved_run_ends_with_1_and_one_of_the_same_stack_with_0(folder: Path) -> None:
    code, document = report(folder, str(folder / "new.jsonl"), "--gates-from", str(folder / "runs"))
    assert code == 0 and len(document["learned_gates"]["runs"]) == 10
    code, document = report(folder, str(folder / "moved.jsonl"), "--gates-from", str(folder / "runs"))
    assert code == 1
    outside = [held for held in document["learned_gates"]["judged"] if held["verdict"] == "outside"]
    assert outside and all(held["would_pass"] > held["gate"]["high"] for held in outside)
    moved = [str(folder / "moved.jsonl"), "--gates-from", str(folder / "runs")]
    assert run(["curves", *moved, "--fail-on", "never"]) == 0


def test_the_report_is_rendered_again_and_is_no_part_of_a_diagnosis(folder: Path, capsys) -> None:
    report(folder, str(folder / "moved.jsonl"), "--gates-from", str(folder / "runs"))
    assert run(["report", str(folder / "report.json")]) == 1
    assert "is outside 2 of 2 gates" in capsys.readouterr().out
    assert run(["diagnose", str(folder / "report.json")]) == 2


def test_the_same_gates_come_from_runs_named_one_by_one(folder: Path) -> None:
    one_by_one = [word for number in range(10) for word in ("--gates-from", str(folder / "runs" / f"{number}.jsonl"))]
    gates = [
        report(folder, str(folder / "new.jsonl"), *words)[1]["learned_gates"]["gates"]
        for words in (one_by_one, ["--gates-from", str(folder / "runs")])
    ]
    assert gates[0] == gates[1]


def test_a_folder_of_trainers_output_folders_holds_a_run_in_each(folder: Path) -> None:
    runs = folder / "trl"
    for number, values in enumerate(QUIET.values(3, np.random.default_rng(9))):
        for end in (50, 100):
            history = [{"step": step, "sampling/sampling_logp_difference/mean": values[step]} for step in range(end)]
            place = runs / f"seed-{number}" / f"checkpoint-{end}"
            place.mkdir(parents=True)
            (place / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    _, document = report(folder, "--gates-from", str(runs))
    assert document["learned_gates"]["runs"] == [str(runs / f"seed-{number}") for number in range(3)]
    assert document["learned_gates"]["gates"][0]["last_step"] == 99


def test_a_table_of_several_runs_is_as_many(folder: Path) -> None:
    values = QUIET.values(3, np.random.default_rng(10))
    header = ",".join(["Step", *(f"seed{number} - {KEY}" for number in range(3))])
    rows = [",".join(map(str, [step, *values[:, step]])) for step in range(100)]
    (folder / "panel.csv").write_text("\n".join([header, *rows]))
    _, document = report(folder, "--gates-from", str(folder / "panel.csv"))
    assert [name.rpartition("#")[2] for name in document["learned_gates"]["runs"]] == ["seed0", "seed1", "seed2"]


def test_tables_of_one_folder_are_runs_if_they_begin_alike_and_one_run_if_they_hold_other_metrics(folder: Path) -> None:
    (folder / "alike").mkdir()
    (folder / "parts").mkdir()
    for name in ("a", "b"):
        (folder / "alike" / f"{name}.csv").write_text("step,reward\n1,0.5\n2,0.6\n")
        (folder / "parts" / f"{name}.csv").write_text(f"step,{name}\n1,0.5\n2,0.6\n")
    assert runs_below(str(folder / "alike"), None) == [str(folder / "alike" / f"{name}.csv") for name in ("a", "b")]
    assert runs_below(str(folder / "parts"), None) == [str(folder / "parts")]


def test_a_gate_file_gives_the_gates_back_and_an_edited_limit_counts(folder: Path) -> None:
    file = folder / "gates.yaml"
    learning = ["--gates-from", str(folder / "runs"), "--gate-file", str(file)]
    _, first = report(folder, str(folder / "moved.jsonl"), *learning)
    code, again = report(folder, str(folder / "moved.jsonl"), "--gate-file", str(file))
    limits = [[(gate["metric"], gate["high"]) for gate in found["learned_gates"]["gates"]] for found in (first, again)]
    assert code == 1 and limits[0] == limits[1]
    document = yaml.safe_load(file.read_text())
    for gate in document["gates"]:
        gate["high"] = 1.0
    file.write_text(yaml.safe_dump(document))
    assert report(folder, str(folder / "moved.jsonl"), "--gate-file", str(file))[0] == 0


def test_gates_are_learned_without_a_new_run(folder: Path) -> None:
    code, document = report(folder, "--gates-from", str(folder / "runs"))
    assert code == 0 and not document["learned_gates"]["judged"] and document["learned_gates"]["gates"]


@pytest.mark.parametrize(
    "change",
    [
        {"rlaudit-gates": 2},
        {"gates": []},
        {"gates": ["x"]},
        {"false_alarms": "often"},
        {"gate": {"of": "mode"}},
        {"gate": {"highest": 1}},
        {"gate": {"high": "much"}},
        {"gate": {"high": None}},
        {"gate": {"runs": [1.0]}},
        {"gate": {"steps": [1]}},
    ],
    ids=str,
)
def test_a_broken_gate_file_is_refused_with_its_place(
    change: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gates = learned(QUIET.values(5, np.random.default_rng(11)))
    document = yaml.safe_load(written(gates)) | {name: value for name, value in change.items() if name != "gate"}
    if "gate" in change:
        document["gates"][0] |= change["gate"]
    file = folder / "gates.yaml"
    file.write_text(yaml.safe_dump(document))
    assert run(["curves", str(folder / "new.jsonl"), "--gate-file", str(file)]) == 2
    assert "gates.yaml" in capsys.readouterr().err


def test_a_written_file_is_read_as_what_was_learned(tmp_path: Path) -> None:
    gates = learned(QUIET.values(5, np.random.default_rng(12)))
    (tmp_path / "gates.yaml").write_text(written(gates))
    read = read_gates(tmp_path / "gates.yaml")
    assert [(gate.low, gate.high) for gate in read.gates] == [(gate.low, gate.high) for gate in gates.gates]
    assert read.notes == gates.notes and read.alpha == gates.alpha


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--export", "skyrl"],
        ["new.jsonl", "other.jsonl", "--gates-from", "runs"],
        ["new.jsonl", "--gates-from", "runs", "--gate", "k3<1"],
        ["new.jsonl", "--gates-from", "runs", "--seed", "1"],
        ["new.jsonl", "--gates-from", "runs", "--gates-from", "runs"],
        ["new.jsonl", "--gates-from", "runs", "--export", "skyrll"],
        ["new.jsonl", "--gates-from", "runs", "--export", "skyrl", "--output", "json"],
        ["new.jsonl", "--gate-file", "none.yaml"],
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run(["curves", *words]) == 2


def exported(folder: Path, framework: str, log: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    run(["curves", str(folder / log), "--gates-from", str(folder / "runs"), "--export", framework])
    return capsys.readouterr().out


def quoted(text: str) -> list[str]:
    return [line.strip().removesuffix(" \\").strip("'") for line in text.splitlines() if line.startswith("  '")]


def test_nemo_rl_evaluates_the_checks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `tests/check_metrics.py` does: the value is what stands before the first sign, and must not be cut there."""
    checks = quoted(exported(folder, "nemo-rl", "new.jsonl", capsys))
    assert len(checks) == 2
    for log, holds in (("new.jsonl", True), ("moved.jsonl", False)):
        rows = [json.loads(line) for line in (folder / log).read_text().splitlines()]
        names = {
            "data": {KEY: {str(row["step"]): row["data"][KEY] for row in rows}},
            "median": lambda series: statistics.median(series.values()),
        }
        for check in checks:
            assert eval(check, dict(names)) is holds
            assert 0 < eval(check.split(">")[0].split("<")[0].strip(), dict(names)) < 1


def test_skyrl_reads_the_asserts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = quoted(exported(folder, "skyrl", "new.jsonl", capsys))
    metric, sign, limit = text.split()
    assert (metric, sign) == (KEY, "<=") and LEVEL < float(limit) < 2 * LEVEL


def test_prime_rl_gets_its_table_of_twenty_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = exported(folder, "prime-rl", "new.jsonl", capsys)
    assert text.startswith(f"| step | {KEY} | limit |") and text.count("| below |") == 20
    assert "100 of 100 steps below" in text
    assert "not below" in exported(folder, "prime-rl", "moved.jsonl", capsys)


def test_report_table_says_what_replaces_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(tmp_path), "--table", "prime-rl"]) == 2
    assert "--gates-from RUNS --export prime-rl" in " ".join(capsys.readouterr().err.split())
