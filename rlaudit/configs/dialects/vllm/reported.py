"""What a running engine reported, as settings for one vLLM release.

For the release that reported them, values are resolved and final. For another one they are not: a value that the old
release chose by itself is no setting. So what is not known to have been set is Unknown there, and what equals a
declared default that has not moved is left out.
"""

from collections.abc import Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from rlaudit.configs.rollout_config import Origin, Setting
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.syntax.place import Place
from rlaudit.vllm.catalogue import Catalogue, known_versions

# Attributes of vLLM's config objects that EngineArgs spells differently (0.8.5 to 0.33.0).
RENAMED: Mapping[str, str] = {
    "max_seq_len": "max_model_len",
    "cache_dtype": "kv_cache_dtype",
    "chunked_prefill_enabled": "enable_chunked_prefill",
    "policy": "scheduling_policy",
}


def catalogue_of(observed: Version | None) -> Catalogue | None:
    """The release that reported, if it is not older than all that are catalogued."""
    return Catalogue.at(observed) if observed is not None and observed >= known_versions()[0] else None


def reported(name: str, value: Any, place: Place, observed: Catalogue | None, vllm: Catalogue) -> Setting | None:
    """A reported value as a setting; None where it says nothing about `vllm`."""
    name = RENAMED.get(name, name)
    if observed is None or observed.asked == vllm.asked:
        if name not in vllm.engine:
            return None
        return Setting(name, value, None, Origin.ENGINE, place, f"as vLLM {vllm.asked} reported it when it ran")
    before, after = observed.engine.get(name), vllm.engine.get(name)
    if before is None or isinstance(value, Unknown):
        return None
    if before.default == value and (after is None or after.default == before.default):
        return None
    if isinstance(before.default, bool | int | float) and before.default != value:
        return Setting(
            name, value, value, Origin.FILE, place, f"reported by vLLM {observed.asked}, whose default is another"
        )
    why = f"vLLM {observed.asked} reported {value!r}, not whether that was set or was its own choice"
    return Setting(name, Unknown(why), value, Origin.FILE, place)


def version_of(text: object) -> Version | None:
    """A release as a report names it (`0.18.1`, `0.18.1+cpu`); None for a build without one."""
    try:
        version = Version(Version(str(text)).public)
    except InvalidVersion:
        return None
    return version if version > Version("0.1") else None
