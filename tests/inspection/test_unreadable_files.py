"""What cannot be parsed and may be about rollouts is named, and an audit without it is not finished."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.inspection.files import collect
from rlaudit.inspection.read_configs import known_dialects, recognise, speaks_of_rollouts

EXAMPLES = Path(__file__).parents[2] / "examples"
ENGINE = 'llm = LLM("m", logprobs_mode="raw_logprobs")\n'
# Those that are short enough for a table stand in inspections.yaml.
WRITTEN = {
    "Python, too many engines": ("train.py", "from vllm import LLM\n" + ENGINE * 301),
    "Python, too many characters": ("train.py", "from vllm import LLM\n" + ENGINE + "#" * 400_001),
    "Python, nested too deeply": ("train.py", "from vllm import LLM\n" + ENGINE + "x = " + "(" * 300 + "1" + ")" * 300),
    "shell, too many words": ("run.sh", "vllm serve m " + "a " * 20_001),
    "shell, too many characters": ("run.sh", "vllm serve m\n" + "#" * 500_001),
}


@pytest.mark.parametrize(("name", "text"), WRITTEN.values(), ids=WRITTEN)
def test_a_folder_with_what_cannot_be_parsed_is_not_finished(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "good.sh").write_text("vllm serve m --seed 1\n")
    assert run(["inspect", str(tmp_path), "--from", "0.8.5", "--to", "0.18.1"]) == 3
    said = capsys.readouterr().out
    lead = said.split("\n\n")[1].replace("\n", " ")
    assert f"{name} could not be read: " in lead


def test_every_config_that_is_read_speaks_of_rollouts() -> None:
    files = collect([str(EXAMPLES)], "", lambda _path: False).files
    configs = [file for file in files if recognise(file.source, known_dialects())[0]]
    silent = [file.path for file in configs if not speaks_of_rollouts(file.source.text)]
    assert len(configs) > 30
    assert silent == []


def test_a_report_of_ours_beside_configs_is_no_config_however_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [{"name": f"vllm {number}", "engine_args": {"logprobs_mode": "raw_logprobs"}} for number in range(30_000)]
    (tmp_path / "report.json").write_text(json.dumps({"schema": "rlaudit-report/1", "arms": arms}, indent=1))
    (tmp_path / "run.sh").write_text("vllm serve m --logprobs-mode processed_logprobs\n")
    assert run(["inspect", str(tmp_path), "--from", "0.18.1", "--to", "0.18.1", "--fail-on", "never"]) == 0
    assert "larger than a config" not in capsys.readouterr().out
