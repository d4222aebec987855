"""Where open-instruct's own source says what it does."""

from rlaudit.configs.framework_source.questions import default, divides_by, in_words, uses
from rlaudit.configs.framework_source.tell import FrameworkSource

_OPTIONS = tuple(f"open_instruct/{name}.py" for name in ("data_loader", "grpo_utils", "grpo_fast"))
_ENGINE = "open_instruct/vllm_utils.py"
SOURCE = FrameworkSource(
    package="open_instruct",
    engine=(_ENGINE, "open_instruct/vllm_utils3.py"),
    defaults=tuple((file, "") for file in _OPTIONS),
    prefix="vllm_",
    facts={
        "divides_by_temperature": divides_by("temperature", *_OPTIONS, "open_instruct/model_utils.py"),
        "weight_updates": in_words(
            default("inflight_updates", *_OPTIONS), {True: "in flight", False: "between rollouts"}
        ),
        "salts_prefix_cache": uses("cache_salt", _ENGINE),
        "importance_sampling_correction": default("use_rho_correction", *_OPTIONS),
    },
    options={"temperature": "temperature", "top_p": "vllm_top_p"},
)
