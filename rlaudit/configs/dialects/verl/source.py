"""Where verl's own source says what it does: the server's file, or up to v0.6 the in-process engine's.

Its defaults need no question: the config that a command starts from is composed where it is there.
"""

from functools import lru_cache

from rlaudit.configs.framework_source.questions import argument, calls, divides_by, keywords_of, mentions
from rlaudit.configs.framework_source.tell import FrameworkSource

_ROLLOUT = "verl/workers/rollout/vllm_rollout"
_SERVER, _SPMD = f"{_ROLLOUT}/vllm_async_server.py", f"{_ROLLOUT}/vllm_rollout_spmd.py"
_ACTORS = ("verl/workers/actor/dp_actor.py", "verl/workers/engine/fsdp/transformer_impl.py",
           "verl/utils/torch_functional.py")  # fmt: skip
_PAUSING = {
    "pause_arguments": keywords_of("pause_generation", _SERVER),
    "pause_mode": argument("pause_generation", "mode", _SERVER),
}

# Whether its serializer, which was a part of launch_server in v0.6, has a word for a false value, and whether there is
# one at all.
SAYS_NO = mentions({"build_cli_args_from_config", "launch_server"}, "no-", f"{_ROLLOUT}/utils.py", _SERVER)
BUILDS_FLAGS = mentions({"launch_server"}, "serve", _SERVER)


@lru_cache(maxsize=8)
def looks_for(in_process: bool) -> FrameworkSource:
    """What is asked of the source for one kind of engine."""
    engine = _SPMD if in_process else _SERVER
    return FrameworkSource(
        package="verl",
        engine=(engine,),
        facts={
            "divides_by_temperature": divides_by("temperature", *_ACTORS),
            "resets_prefix_cache": calls({"reset_prefix_cache", "sleep"}, engine),
            **_PAUSING,
        },
    )
