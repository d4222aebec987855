"""The measured releases under examples/releases: what `report` prints of them, and what `explain` knows."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.vllm import measured

RELEASES = Path(__file__).parents[2] / "examples" / "releases"


def test_the_matrix_is_what_report_prints(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((RELEASES / "report.json").read_text(encoding="utf-8"))
    assert run(["report", str(RELEASES)]) == document["exit_code"]
    assert capsys.readouterr().out == (RELEASES / "matrix.txt").read_text(encoding="utf-8")


def test_explain_knows_the_figures_of_the_same_run() -> None:
    document = json.loads((RELEASES / "report.json").read_text(encoding="utf-8"))
    for one in document["releases"]["measured"]:
        found = measured.measured(one["version"])
        if not one["cells"]:  # its engine failed
            assert found is None and one["why"]
            continue
        assert found is not None and found.date == one["date"]
        assert found.cells["temperature/candidate/logprobs"]["word"] in ("raw", "processed")
    assert measured.measured("0.33.0") is None
