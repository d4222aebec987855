"""What published configs were told and was false, and what was a danger and not said: each for its reason."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.source import Source
from rlaudit.inspection.files import TextFile, decode
from rlaudit.inspection.inspect_file import Context, InspectedFile, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.rules import known_rules
from rlaudit.vllm.machine import Machine

SAMPLED = "from vllm import LLM, SamplingParams\nllm = LLM(model='m')\n"
UNSLOTH = """\
from unsloth import FastLanguageModel
from trl import GRPOConfig
model, _ = FastLanguageModel.from_pretrained("m", load_in_4bit=True, fast_inference=True)
args = GRPOConfig(use_vllm=True, temperature=1.0, num_generations=8)
"""
VERL_FP8 = """\
python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.mode=async \\
  +actor_rollout_ref.rollout.quantization=fp8 actor_rollout_ref.rollout.calculate_log_probs=True
"""
# Why nothing was said: file, its text, and the rule that must speak.
SAID = {
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
# Why it was false: file, its text, the releases, and the rule that must be silent.
CASES = {
    "no logprobs are asked for": (
        "run.py", f"{SAMPLED}llm.generate(['x'], SamplingParams(temperature=0.7))\n", "0.8.5", "0.18.1", "raw-logprobs",
    ),
    "the evaluation's temperature is not the training's": (
        "run.py",
        f"{SAMPLED}a = SamplingParams(temperature=1.0, logprobs=1)\nb = SamplingParams(temperature=0.0)\n",
        "0.18.1", "0.18.1", "greedy-rollouts",
    ),
    "FlashInfer takes 2, 4 and 8 ranks": (
        "run.sh", "vllm serve m --tensor-parallel-size 16\n", "0.8.5", "0.18.1", "fuse-allreduce-rms",
    ),
    "an NPU is no H100": (
        "run.sh", "export VLLM_ASCEND_ENABLE_NZ=0\nvllm serve m -tp 2\n", "0.8.5", "0.18.1", "fuse-allreduce-rms",
    ),
    "the trainer shares the quantized weights": ("run.py", UNSLOTH, "0.18.1", "0.18.1", "quantized-rollout"),
    "either dtype runs on V1": ("run.py", UNSLOTH, "0.8.5", "0.10.2", "engine-chosen-silently"),
    "a subclass takes the argument itself": (
        "run.py",
        "from vllm import LLM\nclass Mine(LLM):\n    def __init__(self, *args, bundle_indices, **kwargs):\n"
        "        super().__init__(*args, **kwargs)\nllm = Mine(model='m', bundle_indices=[0])\n",
        "0.18.1", "0.18.1", "unknown-key-ignored",
    ),
    "fp8 weights say nothing of the cache": ("run.sh", VERL_FP8, "0.8.5", "0.18.1", "kv-cache-dtype-from-checkpoint"),
    "a LLM of another package is not vLLM's": (
        "run.py", "from verl.third_party.vllm import LLM\nllm = LLM(model=None, swap_space=4)\n",
        "0.8.5", "0.18.1", "removed-flag",
    ),
    "open-instruct of this vLLM sets generation_config itself": (
        "run.sh", "python open_instruct/grpo_fast.py --vllm_num_engines 2 --temperature 0.7\n",
        "0.18.1", "0.19.1", "generation-config-auto",
    ),
    "salted in some releases and reset in others is no danger": (
        "rl.toml", "[inference.model]\nname = 'm'\n[orchestrator]\n[trainer]\n", "0.18.1", "0.18.1",
        "prefix-cache-across-updates",
    ),
}  # fmt: skip


def inspected(path: Path, text: str, before: str = "0.8.5", after: str = "0.18.1") -> InspectedFile:
    """A file, with every rule."""
    path.write_text(text)
    source = Source(str(path), text)
    context = Context(known_rules(), known_dialects(), Machine(), Version(before), Version(after))
    return inspect_file(TextFile(source, decode(text.encode())[1], named=True), context)


def rules_of(path: Path, text: str) -> set[str]:
    return {finding.rule for finding in inspected(path, text).findings}


@pytest.mark.parametrize("why", CASES)
def test_it_is_not_said_where(why: str, tmp_path: Path) -> None:
    name, text, before, after, rule = CASES[why]
    found = inspected(tmp_path / name, text, before, after)
    assert not found.bugs and not found.unreadable
    assert rule not in {finding.rule for finding in found.findings if finding.severity != "note"}
    assert rule in known_rules()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "accelerate launch grpo.py --use_vllm False --num_generations 8 --vllm_mode server\n"),
        ("run.yaml", "use_vllm: false\nnum_generations: 8\ntemperature: 0.7\n"),
        ("run.py", UNSLOTH.replace("inference=True", "inference=False").replace("vllm=True", "vllm=False")),
    ],
)  # fmt: skip
def test_vllm_that_is_switched_off_is_no_rollout_config(name: str, text: str, tmp_path: Path) -> None:
    assert not inspected(tmp_path / name, text).configs


@pytest.mark.parametrize(("path", "text", "rule"), SAID.values(), ids=SAID.keys())
def test_an_open_danger_is_said(path: str, text: str, rule: str, tmp_path: Path) -> None:
    assert rule in rules_of(tmp_path / path, text)


def test_an_engine_for_embeddings_returns_no_logprobs(tmp_path: Path) -> None:
    text = "from vllm import LLM, SamplingParams\nllm = LLM(model='m', {})\nSamplingParams(top_p=0.9, logprobs=1)\n"
    assert "filters-not-replayed" in rules_of(tmp_path / "run.py", text.format("seed=1"))
    assert "filters-not-replayed" not in rules_of(tmp_path / "run.py", text.format("runner='pooling'"))


def test_variables_in_a_section_that_no_reader_takes_are_not_passed_over(tmp_path: Path) -> None:
    text = (
        "launcher:\n  env_vars:\n    VLLM_ATTENTION_BACKEND: FLASH_ATTN\n    OMP_NUM_THREADS: 16\n"
        "policy:\n  generation:\n    backend: vllm\n    temperature: 1.0\n    vllm_cfg: {tensor_parallel_size: 2}\n"
    )
    (said,) = [one for one in inspected(tmp_path / "grpo.yaml", text).not_seen if "VLLM_" in one]
    assert said.startswith(f"{tmp_path}/grpo.yaml:3: VLLM_ATTENTION_BACKEND: ")
    read = "services:\n  a:\n    command: vllm serve m\n    environment: {VLLM_USE_V1: '1'}\n"
    assert not [one for one in inspected(tmp_path / "compose.yaml", read).not_seen if "VLLM_" in one]


def test_a_null_that_a_reference_brings_is_open_and_one_that_is_written_stops_the_engine(tmp_path: Path) -> None:
    text = (
        "actor_rollout_ref:\n  ngpus: null\n  rollout:\n    name: vllm\n    mode: sync\n"
        "    tensor_model_parallel_size: {}\n"
    )
    for written, severity in (("null", "error"), ("${actor_rollout_ref.ngpus}", "note")):
        found = inspected(tmp_path / "run.yaml", text.replace("{}", written)).findings
        assert [one.severity.value for one in found if one.rule == "null-refused"] == [severity]


@pytest.mark.parametrize(
    ("more", "said"),
    [("", []), ("async_training: {partial_rollout: true}\n", ["note"]), (None, ["warning"])],
    ids=["a class of its own", "open", "mp"],
)
def test_async_scheduling_is_judged_by_the_executor_that_a_framework_gives(
    more: str | None, said: list[str], tmp_path: Path
) -> None:
    text = "actor_rollout_ref:\n  rollout:\n    name: vllm\n    mode: async\n    tensor_model_parallel_size: 2\n"
    # A key of v0.6.0, whose server has an executor of its own.
    text += f"algorithm: {{rollout_is: true}}\n{more}" if more is not None else ""
    found = inspected(tmp_path / "run.yaml", text).findings
    assert [one.severity.value for one in found if one.rule == "async-scheduling-on"] == said


@pytest.mark.parametrize(
    ("before", "own", "severity"),
    [("0.11.2", True, "error"), ("0.11.2", False, "warning"), ("0.12.0", False, "error")],
)
def test_a_false_that_both_releases_lose_is_a_warning_if_it_is_only_inherited(
    before: str, own: bool, severity: str, tmp_path: Path
) -> None:
    written = "actor_rollout_ref: {rollout: {name: vllm, mode: async, enable_prefix_caching: false}}\n"
    (tmp_path / "base.yaml").write_text(written)
    text = written if own else "defaults: [base, _self_]\n"
    (found,) = [
        one for one in inspected(tmp_path / "run.yaml", text, before, "0.12.0").findings
        if one.rule == "written-false-dropped"
    ]  # fmt: skip
    assert found.severity.value == severity
    assert found.so_today is (None if before == "0.12.0" else True)
