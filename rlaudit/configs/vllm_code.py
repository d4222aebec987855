"""Python that uses vLLM's modules and builds no engine: a worker's extension, a patch, a custom worker or scheduler.

Whether it runs is for the program that loads it to say. It is read so only where it was named by itself, which asks
whether it goes with a release; in a folder it stands among the mentions.
"""

import re
from dataclasses import replace

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.rollout_config import RolloutConfig, Stop
from rlaudit.configs.source import Source

_IMPORTS = re.compile(r"(?m)^\s*(?:from|import)\s+vllm\b")


def imports_vllm(source: Source) -> bool:
    """Whether a file is Python that imports vLLM."""
    return source.suffix == ".py" and _IMPORTS.search(source.text) is not None


def certain_stops(source: Source, vllm: Version) -> tuple[Stop, ...]:
    """What a file asks of a release in vain as soon as it is loaded."""
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.framework_source.stops import stops_in

    return tuple(stop for stop in stops_in(source, vllm) if stop.certain)


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The file with its certain stops; of the engine, which another file builds, nothing."""
    reason = "the engine is built by another file"
    draft = Draft("vllm-code", source.path, stops=certain_stops(source, vllm))
    draft.not_seen.append(f"every setting: {reason}; inspect that one")
    return (replace(draft.done(), engine=Elsewhere(reason), sampling=Elsewhere(reason)),)


CODE = Dialect("vllm-code", "Python that uses vLLM's modules", 0, imports_vllm, read)
