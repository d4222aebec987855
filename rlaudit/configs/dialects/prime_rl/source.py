"""Where prime-rl's own source says what it does: the fields of its config are arguments of the engine themselves."""

from rlaudit.configs.framework_source.questions import argument, calls, default, in_words, keywords_of, uses
from rlaudit.configs.framework_source.tell import FrameworkSource

_CONFIGS = ("packages/prime-rl-configs/src/prime_rl/configs/inference.py", "src/prime_rl/configs/inference.py",
            "prime_rl/configs/inference.py")  # fmt: skip
# While inference was flat: fields of the config became arguments in `to_vllm`.
_FLAT_CONFIGS = ("src/prime_rl/inference/config.py", *_CONFIGS)
_SERVER = ("src/prime_rl/inference/vllm/server.py", "prime_rl/inference/vllm/server.py")
_ORCHESTRATOR = tuple(f"{root}prime_rl/orchestrator/{name}.py" for root in ("src/", "") for name in
                      ("dispatcher", "scheduler", "envs", "orchestrator"))  # fmt: skip
SOURCE = FrameworkSource(
    package="prime_rl",
    engine=_SERVER,
    fields=(*((file, "VllmConfig") for file in _CONFIGS), *((file, "InferenceConfig") for file in _FLAT_CONFIGS)),
    facts={
        "pause_mode": argument("pause_generation", "mode", *_SERVER),
        "pause_clears_cache": argument("pause_generation", "clear_cache", *_SERVER),
        "pause_arguments": keywords_of("pause_generation", *_SERVER),
        "rollout_head_dtype": in_words(default("enable_fp32_lm_head", *_CONFIGS), {True: "float32", False: None}),
        "salts_prefix_cache": uses("cache_salt", *_ORCHESTRATOR),
        "resets_prefix_cache": calls({"reset_prefix_cache"}, *_SERVER),
    },
)
