"""What a terminal shows while arms run: the table of arms with their figures so far, and how the layers stand."""

import re

import pytest
from laboratories import ONE_FACTOR, Laboratory


def test_arms_and_layers_stand_above_the_step_in_progress(
    shared_laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    more = {**ONE_FACTOR, "parity": ["logprobs-mode"], "repeats": 1}
    ran = shared_laboratory.ablate(shared_laboratory.recipe(more, name="on-a-terminal"))
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", ran.stderr)
    assert "what it is for" in shown and "mean ratio - 1" in shown
    assert re.search(r"^candidate +the engine to move to, as it comes +0\.\d+ \[", shown, re.MULTILINE)
    assert re.search(r"^candidate again +the noise of the candidate +to come", shown, re.MULTILINE)
    assert "1. semantic        MISMATCH" in shown
    assert "so far: " not in shown  # as lines, if piped


def test_a_narrow_terminal_keeps_the_figures(shared_laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    more = {**ONE_FACTOR, "parity": ["logprobs-mode"], "repeats": 1}
    ran = shared_laboratory.ablate(shared_laboratory.recipe(more, name="narrow"), "--seed", "2")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", ran.stderr)
    assert re.search(r"^candidate +0\.\d+ \[\S+, \S+\] +0\.\d+ \[\S+, \S+\] *$", shown, re.MULTILINE)
    assert "what it is for" not in shown


def test_a_pipe_gets_lines(shared_laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    more = {**ONE_FACTOR, "parity": ["logprobs-mode"], "repeats": 1}
    ran = shared_laboratory.ablate(shared_laboratory.recipe(more, name="piped"), "--seed", "1")
    assert "so far: 3 of " in ran.stderr and "what it is for" not in ran.stderr
