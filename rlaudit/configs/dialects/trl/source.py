"""Where TRL's own source says what it does: the trainer's file up to 0.28, vllm_generation.py from 0.29 on."""

from functools import lru_cache

from rlaudit.configs.framework_source.questions import calls, default, divides_by
from rlaudit.configs.framework_source.tell import FrameworkSource

_GENERATION = "trl/generation/vllm_generation.py"
# Trainer -> its file and the file and class of its config. Others build no engine of their own.
_FILES = {
    "GRPO": ("trl/trainer/grpo_trainer.py", "trl/trainer/grpo_config.py", "GRPOConfig"),
    "RLOO": ("trl/trainer/rloo_trainer.py", "trl/trainer/rloo_config.py", "RLOOConfig"),
}


@lru_cache(maxsize=8)
def looks_for(trainer: str) -> FrameworkSource:
    """What is asked of the source for one trainer."""
    file, config, owner = _FILES.get(trainer, _FILES["GRPO"])
    facts = {
        "divides_by_temperature": divides_by("temperature", file),
        "resets_prefix_cache": calls({"reset_prefix_cache"}, _GENERATION, file),
    }
    if trainer == "GRPO":
        facts["importance_sampling_correction"] = default("vllm_importance_sampling_correction", config, owner=owner)
        facts["importance_sampling_mode"] = default("vllm_importance_sampling_mode", config, owner=owner)
    return FrameworkSource(
        package="trl",
        engine=(_GENERATION, file) if trainer in _FILES else (),
        defaults=((config, owner),),
        prefix="vllm_",
        facts=facts if trainer in _FILES else {},
        options={name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")}
        if trainer in _FILES else {},
    )  # fmt: skip
