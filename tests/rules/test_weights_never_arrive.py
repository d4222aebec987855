"""Weight updates that do not reach a V1 engine in a process of its own."""

from pathlib import Path

import pytest

from rlaudit.inspection.inspect import Request, inspect
from rlaudit.inspection.inspect_file import Context
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.versions import version_named
from rlaudit.rules import known_rules
from rlaudit.severity import Severity
from rlaudit.vllm.machine import Machine

NAME = "weights-never-arrive"
LOOP = """
import os
import torch
from vllm import LLM
{before}
llm = LLM(model="m")
def load(worker):
    return 0
for name, p in model.named_parameters():
    {call}
"""
INSIDE = "llm.llm_engine.model_executor.driver_worker.model_runner.model.load_weights([(name, p)])"
BY_DTYPE = "llm.collective_rpc('update_weight', args=(name, p.dtype, p.shape))"
PASSED_OVER = "try: {}\n    except Exception as error: print(error)"


def severities(
    folder: Path, call: str, before: str = "", after: str = "0.18.1", engine: str = 'LLM(model="m")'
) -> list[Severity]:
    """What the rule reports of a loop that updates weights."""
    path = folder / "train.py"
    loop = LOOP.replace("{call}", call).replace("{before}", before)
    path.write_text(loop.replace('LLM(model="m")', engine).replace("import LLM", "import LLM, LLMEngine, EngineArgs"))
    context = Context({NAME: known_rules()[NAME]}, known_dialects(), Machine(), version_named("0.8.5"),
                      version_named(after))  # fmt: skip
    return [one.finding.severity for one in inspect(Request((str(path),), context)).judged]


@pytest.mark.parametrize("call", [
    INSIDE,
    "model = self.engine.model_executor",
    BY_DTYPE,
    "llm.collective_rpc('update_weight', kwargs={'dtype': torch.bfloat16})",
    "llm.collective_rpc.remote('update_weight', args=[name, p.dtype])",
    "llm.collective_rpc(load)",
    "llm.apply_model(lambda model: 0)",
])  # fmt: skip
def test_an_update_that_fails_is_a_warning_and_an_error_if_the_program_goes_on(tmp_path: Path, call: str) -> None:
    assert severities(tmp_path, call) == [Severity.WARNING]
    assert severities(tmp_path, PASSED_OVER.format(call)) == [Severity.ERROR]


@pytest.mark.parametrize("call", [
    "llm.collective_rpc('update_weight', args=(name, str(p.dtype), p.shape))",
    "other('update_weight', args=(name, p.dtype))",
    "layer = vllm.model_executor.layers",
    f"if hasattr(llm.llm_engine, 'model_executor'): {INSIDE}",
    f"try: {INSIDE}\n    except AttributeError: llm.collective_rpc('reload_weights')",
])  # fmt: skip
def test_what_reaches_the_engine_or_is_dealt_with_is_left_alone(tmp_path: Path, call: str) -> None:
    assert severities(tmp_path, call) == []


def test_an_except_that_raises_again_hides_nothing(tmp_path: Path) -> None:
    assert severities(tmp_path, f"try: {INSIDE}\n    except Exception: raise") == [Severity.WARNING]


@pytest.mark.parametrize(("call", "before", "after"), [
    (INSIDE, "os.environ['VLLM_ENABLE_V1_MULTIPROCESSING'] = '0'", "0.18.1"),
    (BY_DTYPE, "os.environ['VLLM_ENABLE_V1_MULTIPROCESSING'] = '0'", "0.18.1"),
    (INSIDE, "os.environ['VLLM_ENABLE_V1_MULTIPROCESSING'] = '0'\nasked = EngineArgs(model='m')", "0.18.1"),
    (BY_DTYPE, "os.environ['VLLM_ALLOW_INSECURE_SERIALIZATION'] = '1'", "0.18.1"),
    (INSIDE, "os.environ['VLLM_USE_V1'] = '0'", "0.10.2"),
    (BY_DTYPE, "", "0.8.5"),
])  # fmt: skip
def test_an_engine_in_the_programs_own_process_gets_everything(
    tmp_path: Path, call: str, before: str, after: str
) -> None:
    assert severities(tmp_path, call, before, after) == []


def test_an_engine_in_the_programs_own_process_is_reached_and_an_open_executor_is_no_error(tmp_path: Path) -> None:
    passed_over = PASSED_OVER.format(INSIDE)
    own = "LLMEngine.from_engine_args(EngineArgs(model='m', distributed_executor_backend='external_launcher'))"
    assert severities(tmp_path, passed_over, engine=own) == []
    launched = 'LLM(model="m", distributed_executor_backend="external_launcher")'
    assert severities(tmp_path, passed_over, engine=launched) == []
    is_open = 'LLM(model="m", distributed_executor_backend=chosen())'
    assert severities(tmp_path, passed_over, engine=is_open) == [Severity.WARNING]


def test_an_update_is_said_once_if_the_file_describes_a_second_engine(tmp_path: Path) -> None:
    assert severities(tmp_path, INSIDE, "asked = EngineArgs(model='m')") == [Severity.WARNING]
