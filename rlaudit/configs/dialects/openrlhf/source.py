"""Where OpenRLHF's own source says what it does."""

from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.questions import argument, ask, divides_by, keywords_of, lacks
from rlaudit.configs.framework_source.tell import FrameworkSource

_ENGINE = "openrlhf/trainer/ray/vllm_engine.py"
_LOSS = "openrlhf/models/loss.py"
_CORRECTION = lacks(r"vllm_is|is_correction|vllm_kl|rollout_log_probs", _LOSS)
SOURCE = FrameworkSource(
    package="openrlhf",
    engine=(_ENGINE,),
    defaults=(("openrlhf/cli/train_ppo_ray.py", ""),),
    prefix="vllm.",
    facts={
        "divides_by_temperature": divides_by("temperature", "openrlhf/models/utils.py", "openrlhf/models/actor.py"),
        "pause_mode": argument("pause_generation", "mode", _ENGINE),
        "pause_clears_cache": argument("pause_generation", "clear_cache", _ENGINE),
        "pause_arguments": keywords_of("pause_generation", _ENGINE),
    },
)


def without_correction(draft: Draft, checkout: Checkout) -> None:
    """Of a release from before the correction: there is none that could be off, and nothing logs a mismatch."""
    none = ask(_CORRECTION, checkout)
    if none is None:
        return
    for name in ("importance_sampling_mode", "importance_sampling_correction"):
        draft.trainer.pop(name, None)
        draft.decided[name] = none.where
    for name in ("logs_mismatch", "uses_rollout_logprobs"):
        draft.trains(name, False, f"{none.where}: no word of a rollout correction or of its metrics")
        draft.decided[name] = none.where
