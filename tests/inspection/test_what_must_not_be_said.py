"""Findings that published configs once got and that were false: each for the reason that made it so."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.source import Source
from rlaudit.inspection.files import TextFile, decode
from rlaudit.inspection.inspect_file import Context, InspectedFile, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.selection import known_rules
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
SUBPROCESS = """\
import os, subprocess
env = os.environ.copy()
env["VLLM_SERVER_DEV_MODE"] = "1"
subprocess.Popen(["vllm", "serve", "m", "--weight-transfer-config", '{"backend": "nccl"}'], env=env)
"""
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
        "stale-kv-after-update",
    ),
}  # fmt: skip


def inspected(path: Path, text: str, before: str, after: str) -> InspectedFile:
    """A file, with every rule."""
    path.write_text(text)
    source = Source(str(path), text)
    context = Context(known_rules(), known_dialects(), Machine(), Version(before), Version(after))
    return inspect_file(TextFile(source, decode(text.encode())[1], named=True), context)


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
    assert not inspected(tmp_path / name, text, "0.8.5", "0.18.1").configs


def test_a_variable_that_is_handed_to_a_subprocess_is_the_servers(tmp_path: Path) -> None:
    (config,) = inspected(tmp_path / "run.py", SUBPROCESS, "0.18.1", "0.18.1").configs
    assert config.audit.config.environment["VLLM_SERVER_DEV_MODE"].value == "1"
