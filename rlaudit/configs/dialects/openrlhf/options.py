"""OpenRLHF's options: flat until 0.9 (`--vllm_num_engines`), dotted from 0.10 on (`--vllm.num_engines`).

Read in the released wheels 0.8.6, 0.8.11, 0.9.9, 0.10.4 and 0.11.2, openrlhf/cli/train_ppo_ray.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rlaudit.configs.syntax.node import Node

# What a flag means -> its dotted and its flat spelling.
SPELT: Mapping[str, tuple[str, str]] = {
    "model": ("actor.model_name_or_path", "pretrain"),
    "num_engines": ("vllm.num_engines", "vllm_num_engines"),
    "tensor_parallel_size": ("vllm.tensor_parallel_size", "vllm_tensor_parallel_size"),
    "enable_prefix_caching": ("vllm.enable_prefix_caching", "enable_prefix_caching"),
    "enforce_eager": ("vllm.enforce_eager", "enforce_eager"),
    "enable_sleep_mode": ("vllm.enable_sleep", "vllm_enable_sleep"),
    "gpu_memory_utilization": ("vllm.gpu_memory_utilization", "vllm_gpu_memory_utilization"),
    "sync_backend": ("vllm.sync_backend", "vllm_sync_backend"),
    "sync_with_ray": ("vllm.sync_with_ray", "vllm_sync_with_ray"),
    "generate_batch_size": ("rollout.vllm_generate_batch_size", "vllm_generate_batch_size"),
    "max_len": ("data.max_len", "max_len"),
    "max_tokens": ("rollout.max_new_tokens", "max_new_tokens"),
    "temperature": ("rollout.temperature", "temperature"),
    "top_p": ("rollout.top_p", "top_p"),
    "n": ("rollout.n_samples_per_prompt", "n_samples_per_prompt"),
    "seed": ("train.seed", "seed"),
    "full_determinism": ("train.full_determinism_enable", "full_determinism"),
    "async": ("train.async_enable", "async_train"),
    "partial_rollout": ("train.partial_rollout_enable", "partial_rollout"),
    "colocate_all": ("train.colocate_all", "colocate_all_models"),
    "agent": ("train.agent_func_path", "agent_func_path"),
    "policy_loss_type": ("actor.policy_loss_type", "policy_loss_type"),
    "param_dtype": ("ds.param_dtype", "param_dtype"),
    "correction_threshold": ("algo.advantage.is_correction_threshold", "vllm_is_truncated_threshold"),
    "correction_type": ("algo.advantage.is_correction_type", "vllm_is_correction_type"),
}
# Options without a value (store_true), by meaning.
SWITCHES = (
    "enable_prefix_caching", "enforce_eager", "enable_sleep_mode", "sync_with_ray", "full_determinism", "async",
    "partial_rollout", "colocate_all",
)  # fmt: skip
_CORRECTED = ("algo.advantage.is_correction_enable", "enable_vllm_is_correction", "bf16")


def is_switch(name: str) -> bool:
    """Whether an option, as it is spelt, takes no value."""
    return name in _CORRECTED or any(name in SPELT[meaning] for meaning in SWITCHES)


@dataclass(frozen=True)
class Options:
    """The options of one command. nodes: by their own names."""

    nodes: Mapping[str, Node]

    @property
    def dotted(self) -> bool:
        """Whether the command is of OpenRLHF 0.10 or later."""
        return any("." in name for name in self.nodes)

    def get(self, meaning: str) -> Node | None:
        """The node of an option by what it means, in this command's own generation."""
        return self.nodes.get(SPELT[meaning][0 if self.dotted else 1])

    def is_on(self, meaning: str) -> bool:
        """Whether a switch is given."""
        return self.get(meaning) is not None

    def known_names(self) -> set[str]:
        """Every spelling that this reader knows."""
        names = {name for pair in SPELT.values() for name in pair}
        return names | {*_CORRECTED, "algo.advantage.is_correction_level", "algo.advantage.is_correction_mode",
                        "algo.advantage.is_correction_gating", "prompt_max_len", "generate_max_len"}  # fmt: skip
