"""Where axolotl's own source says what it does: the server that it starts by default builds the engine itself."""

from functools import lru_cache

from rlaudit.configs.framework_source.questions import Question, falls_through
from rlaudit.configs.framework_source.tell import FrameworkSource

_SERVE = "axolotl/cli/vllm_serve.py"
# The module that serves where the config names no other.
SERVER = "axolotl.scripts.vllm_serve_lora"
_SERVER = f"{SERVER.replace('.', '/')}.py"
SOURCE = FrameworkSource(
    package="axolotl",
    engine=(_SERVER,),
    defaults=(("axolotl/utils/schemas/vllm.py", "VllmConfig"), (_SERVER, "LoRAScriptArguments")),
    marks=(_SERVE,),
)


@lru_cache(maxsize=32)
def drops_false(name: str) -> Question:
    """Whether a false of the config falls through: `cfg.vllm.name or ...`."""
    return falls_through(name, _SERVE)
