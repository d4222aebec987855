"""`rlaudit report --table`: a run's mismatch as projects want it in pull requests that move vLLM."""

import json
from pathlib import Path
from typing import Any

import pytest
from documents import curves, records

from rlaudit.cli.app import run
from rlaudit.errors import NotFinished
from rlaudit.report.rendering.mismatch_table import TABLES, rendered

EXAMPLE = Path(__file__).parents[2] / "examples" / "vllm" / "v0-to-v1" / "report.json"


def cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def report() -> Any:
    return json.loads(EXAMPLE.read_text(encoding="utf-8"))


def test_each_arm_is_held_against_the_projects_bar_with_the_noise_floor_beside_it() -> None:
    document = report()
    header, *rows = cells(rendered(TABLES["prime-rl"], records(document)))
    assert header[1:4] == ["mismatch KL", "threshold", "ratio"]
    floors = {block["name"]: block["noise_floor"]["k2"]["value"] for block in document["blocks"]}
    assert len(set(floors.values())) == 2
    for row, arm in zip(rows, (arm for arm in document["arms"] if "k3" in arm["measurements"]), strict=True):
        value = arm["measurements"]["k3"]["value"]
        assert float(row[1]) == pytest.approx(value, rel=1e-3)
        assert float(row[3]) == pytest.approx(value / 0.015, rel=0.1)
        assert row[6] == ("below" if value < 0.015 else "**not below**")
        assert float(row[5].removeprefix("k2 ")) == pytest.approx(floors[arm["block"]], rel=0.05)


def test_a_bar_over_one_counts_the_room_above_one() -> None:
    rows = cells(rendered(TABLES["nemo-rl"], records(report())))
    (candidate,) = (row for row in rows if row[0] == "migration: candidate" and row[2] == "1.05")
    assert float(candidate[3]) == pytest.approx((float(candidate[1]) - 1) / 0.05, rel=0.02)
    assert {"token_mult_prob_error", "gen_kl_error"} <= {row[1] for row in rows}


def test_steps_of_a_training_are_rows_and_no_more_than_are_asked_for() -> None:
    document = curves()
    points = [
        {"step": step, "reference": 0.01, "candidate": 0.001 * step, "low": 0.0, "high": 0.02} for step in range(30)
    ]
    document["curves"]["metrics"] = [document["curves"]["metrics"][0] | {"canonical": "k3", "points": points}]
    text = rendered(TABLES["prime-rl"], records(document))
    rows = cells(text)[1:]
    assert [row[0] for row in rows] == [f"step {step}" for step in range(20)]
    assert [row[6] for row in rows].count("below") == 15
    assert "15 of 20 below 0.015" in text
    assert "0 to 0.02, the reference's band" in rows[0][5]
    document["curves"]["metrics"][0]["points"] = points[:7]
    assert "Both logs have 7 steps" in rendered(TABLES["prime-rl"], records(document))


@pytest.mark.parametrize("name", list(TABLES))
def test_a_report_without_the_metric_is_said(name: str) -> None:
    document = report()
    document["arms"] = []
    with pytest.raises(NotFinished, match="this report has no"):
        rendered(TABLES[name], records(document))


def test_the_command_prints_the_table_and_keeps_the_runs_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "report.md"
    assert run(["report", str(EXAMPLE), "--table", "prime-rl", "--output", f"markdown:{written}"]) == 1
    assert capsys.readouterr().out.startswith("|  | mismatch KL |")
    assert written.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--table", "verl"], "there are: nemo-rl, prime-rl"),
        (["--table", "prime-rl", "--output", "json"], "give the report"),
    ],
)
def test_what_cannot_be_meant_is_said(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(EXAMPLE), *words]) == 2
    assert says in capsys.readouterr().err
