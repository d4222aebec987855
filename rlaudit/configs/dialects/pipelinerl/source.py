"""Where PipelineRL's own source says what it does; its engine's arguments all come from the config."""

from rlaudit.configs.framework_source.questions import argument, divides_by, keywords_of
from rlaudit.configs.framework_source.tell import FrameworkSource

_SERVER = "pipelinerl/vllm1.py"
SOURCE = FrameworkSource(
    package="pipelinerl",
    facts={
        "divides_by_temperature": divides_by("temperature", "pipelinerl/finetune/rl/__init__.py"),
        "pause_mode": argument("pause_generation", "mode", _SERVER),
        "pause_clears_cache": argument("pause_generation", "clear_cache", _SERVER),
        "pause_arguments": keywords_of("pause_generation", _SERVER),
    },
    marks=(_SERVER, "pipelinerl/launch.py"),
)
