"""The pre-commit hook and the GitHub action run the command as it is."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlaudit.cli.inspect_arguments import parse

ROOT = Path(__file__).parents[2]
CONFIG = "vllm_config:\n  use_v1: false\n  vllm_kwargs:\n    dtype: bfloat16\nfinetune:\n  rl: {}\nworld: {}\n"


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return loaded


def test_the_hooks_entry_is_a_command_line_that_inspect_takes() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    command, *words = hook["entry"].split()
    assert (command, words[0]) == ("rlaudit", "inspect")
    asked = parse([*words[1:], "conf/a.yaml", "conf/b.yaml"])
    assert asked.paths == ["conf/a.yaml", "conf/b.yaml"]
    assert asked.allow_no_config


def test_inputs_of_the_action_never_become_words_of_a_script() -> None:
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert step.get("shell", "bash") == "bash"


def test_what_the_action_uses_is_pinned_by_commit() -> None:
    used = [step["uses"] for step in action()["runs"]["steps"] if "uses" in step]
    assert len(used) == 3
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one) for one in used)


def test_the_action_leaves_the_path_and_the_python_of_the_job_alone() -> None:
    steps = action()["runs"]["steps"]
    assert steps[0]["with"]["update-environment"] is False
    scripts = [step["run"] for step in steps if "run" in step]
    assert not any("GITHUB_PATH" in script or "GITHUB_ENV" in script for script in scripts)
    # No program is looked up that a job, or a file of its checkout, may have put on the PATH.
    assert not any(re.search(r"^\s*(python|pip|uv|rlaudit)\s", script, re.MULTILINE) for script in scripts)


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The environment of a GitHub runner on which the action has installed rlaudit."""
    programs = tmp_path / "runner temp" / "rlaudit" / "environment" / "bin"
    programs.mkdir(parents=True)
    program = programs / "python"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    inputs = {f"INPUT_{name}": "" for name in ("FROM", "TO", "BUMP", "FAIL_ON", "ARGUMENTS")}
    files = {f"GITHUB_{name}": str(tmp_path / name) for name in ("OUTPUT", "STEP_SUMMARY")}
    return {
        "PATH": os.environ["PATH"],
        "RUNNER_TEMP": str(tmp_path / "runner temp"),
        "INPUT_PATHS": ".",
        **inputs,
        **files,
    }


def inspect_step(folder: Path, environment: dict[str, str]) -> tuple[str, dict[str, str]]:
    """What the step prints, and its outputs."""
    script = next(step["run"] for step in action()["runs"]["steps"] if step.get("id") == "inspect")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    lines = Path(environment["GITHUB_OUTPUT"]).read_text().splitlines()
    return finished.stdout, dict(line.split("=", 1) for line in lines)


def test_the_action_annotates_summarises_and_keeps_the_exit_code(tmp_path: Path, runner: dict[str, str]) -> None:
    work = tmp_path / "work"
    (work / "my conf").mkdir(parents=True)
    (work / "my conf" / "base.yaml").write_text(CONFIG)
    said, outputs = inspect_step(
        work, {**runner, "INPUT_FROM": "0.8.5", "INPUT_TO": "0.18.1", "INPUT_FAIL_ON": "warning"}
    )
    assert "::warning file=my conf/base.yaml,line=" in said
    assert outputs["exit-code"] == "1"
    assert json.loads(Path(outputs["report"]).read_text())["exit_code"] == 1
    assert json.loads(Path(outputs["sarif"]).read_text())["version"] == "2.1.0"
    assert "PipelineRL" in Path(runner["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_command_line_that_cannot_be_meant_ends_the_action_with_2(tmp_path: Path, runner: dict[str, str]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    _, outputs = inspect_step(work, {**runner, "INPUT_FROM": "$(touch pwned)"})
    assert outputs["exit-code"] == "2"
    assert outputs["sarif"] == ""
    assert list(work.iterdir()) == []
