"""The release of a framework: of the command line, pinned and not taken, or the one reason for much that is open."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from rlaudit.cli.app import run

TRL = 'from trl import GRPOConfig\nargs = GRPOConfig(output_dir="o", use_vllm=True, num_generations=8)\n'
VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.name=vllm"
    " actor_rollout_ref.rollout.temperature=0.8\n"
)


class Project:
    """Inspects each time in a new repository: the pins around a file are read once."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], enter: Callable[[Path], None]) -> None:
        self._folder, self._capsys, self._enter = folder, capsys, enter
        self.code, self.err = 0, ""

    def inspected(self, name: str, text: str, *words: str, pins: str = "") -> str:
        folder = Path(mkdtemp(dir=self._folder))
        (folder / ".git").mkdir()
        (folder / name).write_text(text)
        (folder / "requirements.txt").write_text(pins)
        self._enter(folder)
        self.code = run(["inspect", name, *words])
        out, self.err = self._capsys.readouterr()
        return out


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    return Project(tmp_path, capsys, monkeypatch.chdir)


def test_what_hangs_on_the_release_of_a_framework_is_one_line(project: Project) -> None:
    text = project.inspected("train.py", TRL, "--from", "0.10.2", "--to", "0.18.1")
    (line,) = (line for line in text.splitlines() if "TRL's release is not known" in line)
    assert line.startswith("  - TRL's release is not known: pin it, or --framework trl==X; on that depend ")
    assert line.endswith(" settings")
    assert "it depends on whether TRL" not in text


def test_the_release_that_takes_the_place_of_a_pin_is_what_is_not_known(project: Project) -> None:
    script = "swift rlhf --rlhf_type grpo --model m --use_vllm true --vllm_mode colocate\n"
    text = project.inspected("run.sh", script, "--from", "0.8.5", "--to", "0.18.1", pins="ms-swift==3.5.2\n")
    place = "ms-swift release in place of 3.5.2 (requirements.txt:1)"
    assert f"the {place} is not known: --framework ms-swift==X; on that depend " in text
    assert "release is not known" not in text


@pytest.mark.parametrize("given", [["--framework", "trl==1.7.0"], []])
def test_a_release_from_the_command_line_is_taken_like_a_pin_of_the_project(project: Project, given: list[str]) -> None:
    words = ("--from", "0.10.2", "--to", "0.18.1", "--output", "json")
    pinned = json.loads(project.inspected("train.py", TRL, *words, pins="trl==1.7.0\n"))
    report = json.loads(project.inspected("train.py", TRL, *words, *given))
    assert (report["settings"] == pinned["settings"]) is bool(given)


def test_the_command_line_wins_over_a_pin(project: Project) -> None:
    words = ("--from", "0.10.2", "--to", "0.11.0", "--output", "json", "--framework", "trl==0.23.0")
    alone = json.loads(project.inspected("train.py", TRL, *words))
    assert json.loads(project.inspected("train.py", TRL, *words, pins="trl==0.20.0\n"))["settings"] == alone["settings"]


@pytest.mark.parametrize(
    ("given", "says"),
    [("trll==1.0.0", "did you mean trl?"), ("trl", "no release is named"), ("trl>=1.0", "no release is named")],
)
def test_another_framework_or_form_is_refused(project: Project, given: str, says: str) -> None:
    project.inspected("train.py", TRL, "--framework", given)
    assert project.code == 2
    assert says in project.err


@pytest.mark.parametrize(("pins", "words"), [
    ("verl==0.4.1\n", ["--from", "0.9.1"]),
    ("verl==0.4.1\nvllm==0.9.1\n", []),
    ("", ["--from", "0.9.1", "--framework", "verl==0.4.1"]),
])  # fmt: skip
def test_a_release_that_the_user_runs_with_a_vllm_beats_what_the_vllm_suggests(
    project: Project, pins: str, words: list[str]
) -> None:
    report = json.loads(project.inspected("run.sh", VERL, *words, "--to", "0.18.1", "--output", "json", pins=pins))
    (message,) = [one["message"] for one in report["findings"] if one["rule"] == "framework-moves-too"]
    assert message.startswith("vLLM 0.9.1 goes with verl 0.4.1, ")
    assert not any("which does not run with vLLM 0.9.1" in said for said in report["configs"][0]["not_seen"])


def open_lines(project: Project, pins: str) -> list[str]:
    """What is open with the newest vLLM, since nothing says which one runs."""
    report: dict[str, Any] = json.loads(project.inspected("run.sh", VERL, "--output", "json", pins=pins))
    return list(report["configs"][0]["not_seen"])


def test_a_pin_that_is_not_taken_today_is_said_with_what_is_taken(project: Project) -> None:
    (line,) = (line for line in open_lines(project, "verl==0.6.1\n") if "0.6.1" in line)
    assert re.match(
        "requirements.txt:1 pins verl 0.6.1, which does not run with vLLM [0-9.]+: it is read as verl ", line
    )
    assert not [line for line in open_lines(project, "verl==0.9.1\n") if "pins verl" in line]


def test_a_pinned_release_is_named_as_it_is_where_the_framework_has_to_move(project: Project) -> None:
    words = ("--from", "0.11.1", "--to", "0.22.0", "--select", "framework-moves-too", "--output", "concise")
    assert "vLLM 0.11.1 goes with verl 0.7.0" in project.inspected("run.sh", VERL, *words, pins="verl==0.7.0\n")


def test_a_key_that_no_release_has_any_more_is_called_as_the_file_calls_it(project: Project) -> None:
    config = "use_vllm: true\nvllm_device: auto\nnum_generations: 8\n"
    text = project.inspected("run.yaml", config, "--from", "0.8.5", "--to", "0.18.1")
    assert "   vllm_device=auto stops the start: " in text


@pytest.mark.parametrize(("further", "sets"), [('"${ARGS[@]}"', False), ('"$@"', True)])
def test_what_an_array_may_hold_is_not_said_to_be_set_by_nothing(project: Project, further: str, sets: bool) -> None:
    script = f"swift rollout --model m {further}\n"
    text = project.inspected("run.sh", script, "--from", "0.8.5", "--to", "0.18.1", "-v")
    assert ("Nothing sets async_scheduling" in text) is sets
    assert ("This file does not show whether async_scheduling is set" in text) is not sets
