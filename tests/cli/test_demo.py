"""`rlaudit demo`: what it prints is computed now, offline, and its files can be looked at by hand."""

import os
import socket
import subprocess
import sys

from rlaudit.cli.app import run


def no_network(*_):
    raise AssertionError("the demo is offline")


def test_one_case_from_question_to_diagnosis(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", no_network)
    assert run(["demo"]) == 0
    said = capsys.readouterr().out
    assert "ERROR raw-logprobs" in said
    assert "$ rlaudit diagnose v0 v1\n  semantic: MISMATCH raw-logprobs" in said
    assert said.count(": MATCH") + said.count(": NOTHING FOUND") == 3
    assert list(tmp_path.iterdir()) == []


def test_the_files_can_be_kept_and_say_the_same_when_compared_by_hand(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "try-it"]) == 0
    assert {path.name for path in (tmp_path / "try-it").iterdir()} == {
        "base.yaml", "vllm-0.18.1-processed.parquet", "v0", "v1"
    }  # fmt: skip
    assert run(["diagnose", "try-it/v0", "try-it/v1"]) == 1
    assert run(["compare", "try-it/vllm-0.18.1-processed.parquet", "--temperature", "0.7", "--quiet"]) == 0
    assert run(["demo", "try-it"]) == 2
    assert "not empty" in capsys.readouterr().err


def test_a_small_comparison_imports_nothing_that_it_does_not_need(tmp_path):
    program = """
import sys
from rlaudit.cli.app import run
run(["demo"])
assert not {"pandas", "torch"} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
