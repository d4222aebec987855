"""What cannot be parsed and may be about rollouts is named, and an audit without it is not finished."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.inspection.files import collect
from rlaudit.inspection.read_configs import known_dialects, recognise, speaks_of_rollouts

EXAMPLES = Path(__file__).parents[2] / "examples"
ENGINE = 'llm = LLM("m", logprobs_mode="raw_logprobs")\n'
PYTHON = {
    "syntax of another Python": 'from vllm import LLM\nprint "sampling"\n' + ENGINE,
    "too many engines": "from vllm import LLM\n" + ENGINE * 301,
    "too many characters": "from vllm import LLM\n" + ENGINE + "#" * 400_001,
    "nested too deeply": "from vllm import LLM\n" + ENGINE + "x = " + "(" * 300 + "1" + ")" * 300,
}
SHELL = {
    "an open quote": 'vllm serve m --logprobs-mode "raw_logprobs\n',
    "too many words": "vllm serve m " + "a " * 20_001,
    "too many characters": "vllm serve m\n" + "#" * 500_001,
}
WRITTEN = {
    **{f"Python, {name}": ("train.py", text) for name, text in PYTHON.items()},
    **{f"shell, {name}": ("run.sh", text) for name, text in SHELL.items()},
    "YAML": ("a.yaml", "vllm: {a: [1\n"),
    "TOML": ("a.toml", "[inference]\nmodel = \n"),
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


def test_a_file_of_something_else_that_cannot_be_parsed_is_said_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hello.py").write_text('print "hello"\n')
    (tmp_path / "values.yaml").write_text("{{ if .x }}\na: [\n")
    (tmp_path / "good.sh").write_text("vllm serve m --seed 1\n")
    assert run(["inspect", str(tmp_path), "--from", "0.18.1", "--to", "0.18.1", "--fail-on", "never"]) == 0
    assert "values.yaml" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".zsh", ".ksh", ".pbs", ".lsf", ".job", ".slurm", ".sh"])
def test_every_kind_of_script_that_is_opened_is_read_as_one(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"run{suffix}").write_text("vllm serve m --logprobs-mode raw_logprobs\n")
    run(["inspect", str(tmp_path), "--from", "0.18.1", "--to", "0.18.1"])
    assert "1 rollout config" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        (None, "could not be read"),
        ("vllm: {a: [1\n", "could not be read"),
        ("print(1)\n# vllm\n", "record a run"),
        ("", "rlaudit inspect FILE"),
    ],
)
def test_without_a_config_the_first_sentence_says_why_or_what_to_name(
    text: str | None, leads: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = {None: "a.yaml", "": "."}.get(text, "train.py" if text and text.startswith("print") else "a.yaml")
    path = tmp_path / name
    if text:
        path.write_text(text)
    assert run(["inspect", str(path), "--from", "0.8.5", "--to", "0.18.1"]) == 3
    assert leads in " ".join(capsys.readouterr().out.split("\n")[2:4])
