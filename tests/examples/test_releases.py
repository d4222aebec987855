"""The measured releases under examples: what `report` prints of them, and what `explain` knows."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.vllm.measured import measured

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = {"cpu": EXAMPLES / "releases", "cuda": EXAMPLES / "gpu" / "releases"}
MATRICES = {**FOLDERS, **{name: EXAMPLES / "releases" / name for name in ("sampling-parameters", "updates")}}


@pytest.mark.parametrize("folder", MATRICES.values(), ids=MATRICES)
def test_the_matrix_is_what_report_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert run(["report", str(folder)]) == document["exit_code"]
    assert capsys.readouterr().out == (folder / "matrix.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("platform", FOLDERS)
def test_explain_knows_the_figures_of_the_same_run(platform: str) -> None:
    document = json.loads((FOLDERS[platform] / "report.json").read_text(encoding="utf-8"))
    for release in document["releases"]["measured"]:
        known = measured(release["version"], platform)
        if not release["cells"]:  # its engine failed
            assert known is None and release["why"]
            continue
        assert known is not None and known.date == release["date"] and known.on.startswith(platform)
        assert known.cells["temperature/candidate/logprobs"]["word"] in ("raw", "processed")
    assert measured("0.33.0", platform) is None
    assert measured("0.26.0", "tpu") is None
