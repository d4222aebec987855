"""Where OpenRLHF's own source says what it does."""

from rlaudit.configs.framework_source.questions import argument, divides_by, keywords_of
from rlaudit.configs.framework_source.tell import FrameworkSource

_ENGINE = "openrlhf/trainer/ray/vllm_engine.py"
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
