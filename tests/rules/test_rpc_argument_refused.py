"""What a weight update hands to the engine's process and no release from 0.9.0 on sends."""

from pathlib import Path

import pytest

from rlaudit.inspection.finding import Severity
from rlaudit.inspection.inspect import Request, inspect
from rlaudit.inspection.inspect_file import Context
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.selection import known_rules
from rlaudit.inspection.versions import version_named
from rlaudit.vllm.machine import Machine

NAME = "rpc-argument-refused"
LOOP = """
import torch
from vllm import LLM
{before}
llm = LLM(model="m")
def load(worker):
    return 0
for name, p in model.named_parameters():
    {call}
"""
BY_DTYPE = "llm.collective_rpc('update_weight', args=(name, p.dtype, p.shape))"


def severities(folder: Path, call: str, before: str = "", after: str = "0.18.1") -> list[Severity]:
    """What the rule says of a loop that hands its parameters over."""
    path = folder / "train.py"
    path.write_text(LOOP.replace("{call}", call).replace("{before}", before))
    rules = {NAME: known_rules()[NAME]}
    context = Context(rules, known_dialects(), Machine(), version_named("0.8.5"), version_named(after))
    return [one.finding.severity for one in inspect(Request((str(path),), context)).judged]


@pytest.mark.parametrize(("call", "said"), [
    (BY_DTYPE, [Severity.WARNING]),
    ("llm.collective_rpc('update_weight', kwargs={'dtype': torch.bfloat16})", [Severity.WARNING]),
    ("llm.collective_rpc.remote('update_weight', args=[name, p.dtype])", [Severity.WARNING]),
    ("llm.collective_rpc(load)", [Severity.WARNING]),
    ("llm.apply_model(lambda model: 0)", [Severity.WARNING]),
    ("def send(dtype): llm.collective_rpc('update_weight', args=(name, dtype, p.shape))", [Severity.NOTE]),
    ("dtype = asked['dtype']; llm.collective_rpc('update_weight', args=(name, dtype))", []),
    ("llm.collective_rpc('update_weight', args=(name, str(p.dtype), p.shape))", []),
    ("other('update_weight', args=(name, p.dtype))", []),
])  # fmt: skip
def test_functions_and_dtypes_are_refused(tmp_path: Path, call: str, said: list[Severity]) -> None:
    assert severities(tmp_path, call) == said


def test_outside_a_loop_it_is_certain(tmp_path: Path) -> None:
    assert severities(tmp_path, "pass\nllm.collective_rpc('a', args=(torch.float16,))") == [Severity.ERROR]


@pytest.mark.parametrize(("before", "after", "said"), [
    ("import os\nos.environ['VLLM_ALLOW_INSECURE_SERIALIZATION'] = '1'", "0.18.1", []),
    ("import os\nos.environ['VLLM_ENABLE_V1_MULTIPROCESSING'] = '0'", "0.18.1", []),
    ("import os\nos.environ['VLLM_ENABLE_V1_MULTIPROCESSING'] = str(x)", "0.18.1", [Severity.NOTE]),
    ("import os\nos.environ['VLLM_USE_V1'] = '0'", "0.10.2", []),
    ("", "0.8.5", []),
    ("", "0.10.2", [Severity.WARNING]),
])  # fmt: skip
def test_where_nothing_is_refused(tmp_path: Path, before: str, after: str, said: list[Severity]) -> None:
    assert severities(tmp_path, BY_DTYPE, before, after) == said
