"""Where ROLL's own source says what it does."""

from rlaudit.configs.framework_source.questions import calls, stored
from rlaudit.configs.framework_source.tell import FrameworkSource

_STRATEGY = "roll/distributed/strategy/vllm_strategy.py"
_ENGINE = "roll/third_party/vllm/__init__.py"
SOURCE = FrameworkSource(
    package="roll",
    engine=(_STRATEGY,),
    defaults=(("roll/configs/generating_args.py", "GeneratingArguments"),),
    facts={"resets_prefix_cache": calls({"reset_prefix_cache"}, _STRATEGY)},
    options={name: name for name in ("temperature", "top_p", "top_k", "repetition_penalty")},
)
# What it puts into every engine's arguments on the way.
STORED = {name: stored(name, _ENGINE) for name in ("enable_sleep_mode", "attention_config")}
