"""Python that starts a vLLM server, or drives one: it pauses it, updates its weights and resumes it over HTTP.

The arguments with which a program starts its server are known only when it runs: a recording has them.
"""

import re
from dataclasses import replace

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.engine_arguments.weight_updates import posted, take_weight_updates
from rlaudit.configs.readers.python import DIALECT as IN_PROCESS
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.settings.rollout_config import RolloutConfig

NAME = "vllm-http"
_UPDATES = {"update_weights", "update_named_param", "start_weight_update"}
_STARTS = re.compile(r"""(["'])vllm\1\s*,\s*(["'])serve\2|(["'])vllm\.entrypoints\.(?:openai\.)?api_server\3""")


def recognise(source: Source) -> bool:
    """Return whether a file starts a server, or posts an update of weights, and does not build the engine itself.

    A pause alone is not enough: players, queues and timers have one too.
    """
    if source.suffix != ".py" or not (_starts(source) or any(call.name in _UPDATES for call in posted(source))):
        return False
    return not IN_PROCESS.recognise(source)


def _starts(source: Source) -> "re.Match[str] | None":
    return _STARTS.search(source.text)


def read(source: Source, _vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return the updates. The engine's settings are unknown: its command is elsewhere, or made by the program."""
    calls, started = posted(source), _starts(source)
    draft = Draft(NAME, source.path)
    reason = "another command starts the server; inspect that command"
    if started is not None:
        reason = "the program makes the server's command when it runs; `rlaudit record` shows that command"
    take_weight_updates(draft, (source,), calls, offline=False)
    draft.not_seen.append(f"no engine argument was seen, because {reason}")
    place = LineIndex(source.text, source.path).place(*started.span(), "") if started is not None else calls[0].place
    return (replace(draft.done(place=place), engine=Elsewhere(reason), sampling=Elsewhere(reason)),)


DIALECT = Dialect(NAME, "Python that starts or drives a vLLM server", 0, recognise, read)
