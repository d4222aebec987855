"""Where PipelineRL's own source says what it does; its engine's arguments all come from the config."""

import re
from dataclasses import replace

from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.questions import argument, divides_by, keywords_of
from rlaudit.configs.framework_source.tell import FrameworkSource

_WORD = re.compile(r"[\w-]+")
_SERVER, _OLD_SERVER, _LAUNCH = "pipelinerl/vllm1.py", "pipelinerl/vllm0.py", "pipelinerl/launch.py"
SOURCE = FrameworkSource(
    package="pipelinerl",
    engine=(_SERVER,),
    facts={
        "divides_by_temperature": divides_by("temperature", "pipelinerl/finetune/rl/__init__.py"),
        "pause_mode": argument("pause_generation", "mode", _SERVER),
        "pause_clears_cache": argument("pause_generation", "clear_cache", _SERVER),
        "pause_arguments": keywords_of("pause_generation", _SERVER),
    },
    marks=(_SERVER, _LAUNCH),
)


def starts_old_server(checkout: Checkout | None) -> bool:
    """Whether launch.py still has the V0 server to start, whatever the vLLM."""
    if checkout is None or checkout.file(_OLD_SERVER) is None:
        return False
    launch = checkout.file(_LAUNCH)
    return launch is not None and "vllm0" in launch.text


def hands_on(checkout: Checkout | None, name: str) -> bool:
    """Whether launch.py has no word of an argument, and so leaves out none of that name; False without its source."""
    launch = checkout.file(_LAUNCH) if checkout is not None else None
    return launch is not None and not {name, name.replace("_", "-")} & set(_WORD.findall(launch.text))


def looks_for(old: bool) -> FrameworkSource:
    """What is asked of the source. old: its V0 server runs."""
    return replace(SOURCE, engine=(_OLD_SERVER,)) if old else SOURCE
