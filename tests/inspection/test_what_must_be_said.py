"""Dangers that published configs have and nothing was said of: each for the reason that hid it."""

import pytest
from packaging.version import Version

from rlaudit.configs.source import Source
from rlaudit.inspection.files import TextFile, decode
from rlaudit.inspection.inspect_file import Context, InspectedFile, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.selection import known_rules
from rlaudit.vllm.machine import Machine

# Why nothing was said: file, its text, and the rule that must speak.
CASES = {
    "a trainer samples from a server that another command starts": (
        "run.yaml", "use_vllm: true\nvllm_mode: server\nnum_generations: 8\ntop_p: 0.9\n", "filters-not-replayed",
    ),
    "no trainer applies penalties, whoever starts the server": (
        "run.sh",
        "swift rlhf --rlhf_type grpo --use_vllm true --vllm_mode server --vllm_server_host h --model m"
        " --repetition_penalty 1.1\n",
        "penalties-in-logprobs",
    ),
}  # fmt: skip


def inspected(path: str, text: str) -> InspectedFile:
    context = Context(known_rules(), known_dialects(), Machine(), Version("0.8.5"), Version("0.18.1"))
    return inspect_file(TextFile(Source(path, text), decode(text.encode())[1], named=True), context)


def rules_of(path: str, text: str) -> set[str]:
    return {finding.rule for finding in inspected(path, text).findings}


@pytest.mark.parametrize(("path", "text", "rule"), CASES.values(), ids=CASES.keys())
def test_an_open_danger_is_said(path: str, text: str, rule: str) -> None:
    assert rule in rules_of(path, text)


def test_an_engine_for_embeddings_returns_no_logprobs() -> None:
    text = "from vllm import LLM, SamplingParams\nllm = LLM(model='m', {})\nSamplingParams(top_p=0.9, logprobs=1)\n"
    assert "filters-not-replayed" in rules_of("run.py", text.format("seed=1"))
    assert "filters-not-replayed" not in rules_of("run.py", text.format("runner='pooling'"))


def test_variables_in_a_section_that_no_reader_takes_are_not_passed_over() -> None:
    text = (
        "launcher:\n  env_vars:\n    VLLM_ATTENTION_BACKEND: FLASH_ATTN\n    OMP_NUM_THREADS: 16\n"
        "policy:\n  generation:\n    backend: vllm\n    temperature: 1.0\n    vllm_cfg: {tensor_parallel_size: 2}\n"
    )
    (said,) = [one for one in inspected("grpo.yaml", text).not_seen if "VLLM_" in one]
    assert said.startswith("grpo.yaml:3: VLLM_ATTENTION_BACKEND: ")
    read = "services:\n  a:\n    command: vllm serve m\n    environment: {VLLM_USE_V1: '1'}\n"
    assert not [one for one in inspected("compose.yaml", read).not_seen if "VLLM_" in one]


def test_a_null_that_a_reference_brings_is_open_and_one_that_is_written_stops_the_engine() -> None:
    text = (
        "actor_rollout_ref:\n  ngpus: null\n  rollout:\n    name: vllm\n    mode: sync\n"
        "    tensor_model_parallel_size: {}\n"
    )
    for written, severity in (("null", "error"), ("${actor_rollout_ref.ngpus}", "note")):
        found = inspected("run.yaml", text.replace("{}", written)).findings
        assert [one.severity.value for one in found if one.rule == "null-refused"] == [severity]
