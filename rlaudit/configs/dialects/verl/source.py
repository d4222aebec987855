"""Where verl's own source says what it does: the server's file, or up to v0.6 the in-process engine's.

Before v0.3 that was verl's `vllm_rollout.py`, which from v0.7 on is another thing and builds no engine.

Its defaults need no question: the config that a command starts from is composed where it is there.
"""

from collections.abc import Mapping
from functools import lru_cache

from packaging.version import Version

from rlaudit.configs.framework_source.bindings import Bound, handed_over
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.questions import argument, calls, divides_by, keywords_of, mentions, reads_below
from rlaudit.configs.framework_source.tell import FrameworkSource, engine_names

_ROLLOUT = "verl/workers/rollout/vllm_rollout"
_SERVER, _SPMD = f"{_ROLLOUT}/vllm_async_server.py", f"{_ROLLOUT}/vllm_rollout_spmd.py"
_CUSTOMIZED = f"{_ROLLOUT}/vllm_rollout.py"
_IN_PROCESS = (_SPMD, _CUSTOMIZED)
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
# Whether its in-process engine reads engine_kwargs.vllm, as it does since v0.4.
ENGINE_KWARGS = reads_below("engine_kwargs", "vllm", *_IN_PROCESS)


def is_in_process(checkout: Checkout) -> bool:
    """Whether the source knows no other engine than one in the trainer's process."""
    return checkout.file(_SERVER) is None and any(checkout.file(file) is not None for file in _IN_PROCESS)


def passed_by(checkout: Checkout, vllm: Version, *, in_process: bool) -> Mapping[str, Bound] | None:
    """The arguments that the in-process engine, or a server that builds no flags, is given; None where no engine is
    found.
    """
    for file in _IN_PROCESS if in_process else (_SERVER,):
        source = checkout.file(file)
        handed = handed_over(source, engine_names(vllm)) if source is not None else None
        if handed is not None and handed.blocks:
            return {name: bound[0] for name, bound in handed.arguments.items()}
    return None


@lru_cache(maxsize=8)
def looks_for(in_process: bool) -> FrameworkSource:
    """What is asked of the source for one kind of engine."""
    engine = _IN_PROCESS if in_process else (_SERVER,)
    return FrameworkSource(
        package="verl",
        engine=engine,
        marks=(_SERVER, *_IN_PROCESS),
        facts={
            "divides_by_temperature": divides_by("temperature", *_ACTORS),
            "resets_prefix_cache": calls({"reset_prefix_cache", "sleep"}, *engine),
            **_PAUSING,
        },
    )
