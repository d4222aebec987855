"""`rlaudit curves` from files to exit codes and reports."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlaudit.cli.app import run


def verl_log(path: Path, seed: int, shifts: dict[str, tuple[int, float]], length: int = 120) -> str:
    generator = np.random.default_rng(seed)
    levels = {"critic/rewards/mean": (0.3, 0.02), "rollout_corr/k3_kl": (1e-3, 1e-4), "actor/entropy": (0.5, 0.01)}
    with path.open("w", encoding="utf-8") as file:
        for step in range(length):
            data = {key: level + noise * generator.standard_normal() for key, (level, noise) in levels.items()}
            for key, (start, size) in shifts.items():
                data[key] += size if step >= start else 0.0
            file.write(
                json.dumps({"step": step, "data": data | {"actor/lr": 1e-6, "own": data["actor/entropy"]}}) + "\n"
            )
    return str(path)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("logs")
    shifts = {"rollout_corr/k3_kl": (30, 4e-3), "critic/rewards/mean": (70, -0.25)}
    return {
        "first": verl_log(folder / "first.jsonl", 1, {}),
        "second": verl_log(folder / "second.jsonl", 2, {}),
        "third": verl_log(folder / "third.jsonl", 3, {}),
        "moved": verl_log(folder / "moved.jsonl", 4, shifts),
        "short": verl_log(folder / "short.jsonl", 5, {}, length=8),
    }


def report(arguments: list[str], tmp_path: Path) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "report.json"
    code = run(["curves", *arguments, "--output", f"json:{path}"])
    return code, json.loads(path.read_text(encoding="utf-8"))


def metrics(document: dict[str, Any]) -> dict[str, Any]:
    return {metric["name"]: metric for metric in document["curves"]["metrics"]}


def test_a_curve_that_is_nan_to_its_end_has_separated(logs: dict[str, str], tmp_path: Path) -> None:
    nan = float("nan")
    broken = verl_log(tmp_path / "broken.jsonl", 6, {"critic/rewards/mean": (60, nan), "actor/entropy": (119, nan)})
    code, document = report([logs["first"], broken], tmp_path)
    reward, entropy = (metrics(document)[name] for name in ("critic/rewards/mean", "actor/entropy"))
    assert (code, reward["outcome"], reward["detected_step"]) == (1, "separated", 60)
    assert "NaN or infinite from step 60 to its end" in reward["because"]
    assert entropy["outcome"] == "not separated"  # one step


@pytest.mark.parametrize(
    ("key", "window", "advisory"),
    [
        ("rollout_corr/rollout_is_seq_fraction_high", "verl 0.6.0 to 0.8.0", "verl-sequence-fraction-is-zero"),
        ("rollout_corr/rollout_is_mean", "", ""),
        ("pg_loss:sum", "skyrl 0.1.0 to 0.2.0", "skyrl-tinker-logs-no-difference"),
        ("train/pg_loss:sum", "skyrl 0.1.0 to 0.2.0", "skyrl-tinker-logs-no-difference"),
        ("train/pg_loss", "", ""),
    ],
)
def test_a_curve_that_is_dead_in_some_releases_is_said(key: str, window: str, advisory: str, tmp_path: Path) -> None:
    rows = [{"step": step, "data": {"critic/rewards/mean": 0.1 * (step % 3), key: 0.0}} for step in range(20)]
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    logs = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    for arguments in (logs, [logs[0], "--gate", "reward>0"]):
        _, document = report(arguments, tmp_path)
        said = [line for line in document["not_seen"] if "rlaudit explain" in line]
        assert len(said) == bool(window)
        assert all(window in line and advisory in line for line in said)


def test_seeds_alone_exit_with_0(logs: dict[str, str], tmp_path: Path) -> None:
    code, document = report([logs["first"], logs["second"]], tmp_path)
    assert (code, document["exit_code"]) == (0, 0)
    assert {metric["outcome"] for metric in document["curves"]["metrics"]} == {"not separated"}


@pytest.mark.parametrize("references", [["first"], ["first", "second", "third"]], ids=len)
def test_a_moved_run_exits_with_1_and_says_what_moved_first(
    references: list[str], logs: dict[str, str], tmp_path: Path
) -> None:
    code, document = report([*(logs[name] for name in references), logs["moved"]], tmp_path)
    found = metrics(document)
    assert code == 1
    assert 30 <= found["rollout_corr/k3_kl"]["detected_step"] <= 36
    assert 70 <= found["critic/rewards/mean"]["detected_step"] <= 80
    assert found["actor/entropy"]["outcome"] == "not separated"
    assert document["curves"]["order"]["precedence"] == "logprobs first"
    assert found["rollout_corr/k3_kl"]["definition"] == "mean over tokens of r - 1 - d"
    assert found["rollout_corr/k3_kl"]["clipping"] == "before clipping"


def test_what_is_apart_at_the_first_step_was_not_moved_by_training(logs: dict[str, str], tmp_path: Path) -> None:
    shifts = {"rollout_corr/k3_kl": (0, 0.5), "critic/rewards/mean": (0, -0.29)}
    code, document = report([logs["first"], verl_log(tmp_path / "broken.jsonl", 7, shifts)], tmp_path)
    kl = metrics(document)["rollout_corr/k3_kl"]
    assert (code, kl["detected_step"], kl["from_the_start"]) == (1, 0, True)
    assert document["curves"]["order"]["precedence"] == "apart from the first step"


def test_a_file_with_several_runs_says_how_to_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chart.csv").write_text("Step,old - m,new - m\n0,1,2\n1,2,3\n")
    assert run(["curves", "chart.csv"]) == 2
    assert "rlaudit curves chart.csv#old chart.csv#new" in capsys.readouterr().err


def test_fail_on_never_exits_with_0(logs: dict[str, str], tmp_path: Path) -> None:
    code, document = report([logs["first"], logs["moved"], "--fail-on", "never"], tmp_path)
    assert (code, document["exit_code"]) == (0, 0)
    assert metrics(document)["rollout_corr/k3_kl"]["outcome"] == "separated"


def test_too_few_common_steps_are_unfinished(logs: dict[str, str], tmp_path: Path) -> None:
    code, document = report([logs["first"], logs["short"]], tmp_path)
    assert code == 3
    assert any("8 steps are in all runs" in line for line in document["not_seen"])


def test_a_metric_asked_for_and_missing_is_unfinished(logs: dict[str, str], tmp_path: Path) -> None:
    code, document = report([logs["first"], logs["moved"], "--metric", "absent"], tmp_path)
    assert code == 3
    assert any(line.startswith("absent: not in ") for line in document["not_seen"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["{first}"],
        ["{first}", "/absent"],
        ["{first}", "{first}", "{second}"],
        ["{first}", "{second}", "--candidates", "2"],
        ["{first}", "{second}", "{second}", "--candidates", "2"],
        ["{first}", "{second}", "--format", "nothing"],
    ],
    ids=" ".join,
)
def test_a_bad_command_line_exits_with_2(
    arguments: list[str], logs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["curves", *(argument.format(**logs) for argument in arguments)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_file_that_is_no_log_exits_with_3(logs: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0")
    assert run(["curves", logs["first"], str(tmp_path / "x.bin")]) == 3


def test_the_same_seed_gives_the_same_report(logs: dict[str, str], tmp_path: Path) -> None:
    assert report([logs["first"], logs["moved"]], tmp_path) == report([logs["first"], logs["moved"]], tmp_path)


def test_problems_of_a_log_are_in_the_report_and_do_not_decide_it(logs: dict[str, str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text(Path(logs["second"]).read_text() + '{"step": 120, "da')
    code, document = report([logs["first"], str(broken)], tmp_path)
    assert code == 0
    assert document["curves"]["candidate"]["problems"][0]["place"] == "line 121"


def test_a_candidate_that_breaks_off_says_where(logs: dict[str, str], tmp_path: Path) -> None:
    half = tmp_path / "half.jsonl"
    half.write_text("".join(Path(logs["second"]).read_text().splitlines(keepends=True)[:60]))
    _, document = report([logs["first"], str(half)], tmp_path)
    notes = metrics(document)["actor/entropy"]["notes"]
    assert notes == ["the candidate ends at step 59, and the reference goes on to 119"]


def test_long_curves_are_averaged_and_it_is_said(tmp_path: Path) -> None:
    paths = [verl_log(tmp_path / f"{seed}.jsonl", seed, {}, length=1100) for seed in (1, 2)]
    _, document = report([*paths, "--metric", "entropy"], tmp_path)
    found = metrics(document)["actor/entropy"]
    assert (found["averaged_steps"], found["steps"]["count"]) == (2, 550)


def test_the_last_runs_are_seeds_of_the_candidate_when_asked(logs: dict[str, str], tmp_path: Path) -> None:
    code, document = report([logs["first"], logs["second"], logs["third"], "--candidates", "2"], tmp_path)
    assert code == 0
    assert len(document["curves"]["reference"]) == 1
    assert [run["name"] for run in document["curves"]["candidates"]] == [logs["second"], logs["third"]]
