"""`vllm serve` and the API server module: shell, slurm, docker-compose and Kubernetes.

What stands on the command line is what arrives: vLLM's own parser is modelled release by release. Arguments of the
HTTP front end (host, port, api key) are no engine settings. Sampling parameters come with every request, from a client
that this file does not show.
"""

from dataclasses import replace

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.vllm.invocations import invocations
from rlaudit.configs.dialects.vllm.server import server_config
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source

NAME = "vllm-serve"
MOST_SERVERS = 200


def recognise(source: Source) -> bool:
    """Return whether the file starts a vLLM server."""
    if "vllm" not in source.text.lower():
        return False
    try:
        return bool(invocations(source))
    except (ValueError, RecursionError) as error:
        source.refuse("commands", error)
        return False


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every server that the file starts."""
    started = invocations(source)
    configs = [server_config(NAME, source, one, vllm) for one in started[:MOST_SERVERS]]
    if len(started) > MOST_SERVERS:
        more = f"the other {len(started) - MOST_SERVERS} servers that this file starts"
        configs[-1] = replace(configs[-1], not_seen=(*configs[-1].not_seen, more))
    return tuple(configs)


DIALECT = Dialect(NAME, "vLLM server command line", 0, recognise, read)
