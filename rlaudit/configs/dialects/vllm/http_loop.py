"""Python that drives a vLLM server which another command starts: it pauses it, updates its weights and resumes it."""

from dataclasses import replace

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.vllm.python import DIALECT as IN_PROCESS
from rlaudit.configs.dialects.vllm.weight_updates import posted, take_weight_updates
from rlaudit.configs.draft import Draft
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source

NAME = "vllm-http"
_UPDATES = {"update_weights", "update_named_param", "start_weight_update"}


def recognise(source: Source) -> bool:
    """Return whether a file posts an update of weights, and does not build the engine itself.

    A pause alone tells nothing: players, queues and timers have one too.
    """
    if not any(call.name in _UPDATES for call in posted(source)):
        return False
    return not IN_PROCESS.recognise(source)


def read(source: Source, _vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return the updates. The engine's settings are unknown: its command is elsewhere."""
    calls = posted(source)
    draft = Draft(NAME, source.path)
    reason = "the server is started by another command; inspect that command"
    take_weight_updates(draft, source, calls, offline=False)
    draft.not_seen.append(f"every engine argument: {reason}")
    return (replace(draft.done(place=calls[0].place), engine=Elsewhere(reason), sampling=Elsewhere(reason)),)


DIALECT = Dialect(NAME, "Python that drives a vLLM server over HTTP", 0, recognise, read)
