"""What today's release does as well is told as that."""

from pathlib import Path

import pytest

from rlaudit.audit.finding import Finding
from rlaudit.inspection.inspect import one_config
from rlaudit.severity import Severity
from rlaudit.vllm.machine import Machine

SERVER = """export VLLM_ATTENTION_BACKEND=FLASHINFER
export VLLM_USE_V1=0
vllm serve Qwen/Qwen3-8B --max-seq-len-to-capture 8192
"""
WORDS = "already: the move changes nothing of it"


def of_rule(folder: Path, rule: str, before: str, text: str = SERVER) -> Finding:
    path = folder / "serve.sh"
    path.write_text(text)
    found = one_config(path, Machine(), before, "0.18.1").findings
    return next(one for one in found if one.rule == rule)


@pytest.mark.parametrize(("rule", "severity"), [
    ("attention-backend-variable-ignored", Severity.NOTE),
    ("engine-variable-ignored", Severity.NOTE),
    ("removed-flag", Severity.WARNING),
])  # fmt: skip
def test_what_is_so_before_the_move_is_no_error_of_it_and_gets_no_fix(tmp_path, rule, severity):
    finding = of_rule(tmp_path, rule, "0.16.0")
    assert finding.severity is severity
    assert f"with vLLM 0.16.0 {WORDS}" in finding.message
    assert finding.fix is None


@pytest.mark.parametrize("rule", ["attention-backend-variable-ignored", "engine-variable-ignored", "removed-flag"])
def test_what_the_move_takes_away_stays_an_error(tmp_path, rule):
    finding = of_rule(tmp_path, rule, "0.10.2")
    assert finding.severity is Severity.ERROR
    assert WORDS not in finding.message


def test_without_a_migration_it_is_told_of_the_one_release(tmp_path):
    finding = of_rule(tmp_path, "removed-flag", "0.18.1")
    assert finding.severity is Severity.ERROR
    assert WORDS not in finding.message


def test_a_key_that_was_passed_over_and_is_refused_now_stays_an_error(tmp_path):
    text = "vllm serve Qwen/Qwen3-8B --compilation-config '{\"use_inductor\": false}'\n"
    assert of_rule(tmp_path, "removed-nested-key", "0.12.0", text).severity is Severity.ERROR
