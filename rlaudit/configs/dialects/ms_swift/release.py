"""Which release of ms-swift reads a config: the one that the project pins, else what keys and the vLLM beside it tell.

Arguments and calls were read in the released wheels 3.8.0, 3.9.3, 3.10.3, 3.11.3, 3.12.6, 4.0.4, 4.3.2 and 4.6.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.configs.draft import is_said
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.pins.package import Package

_PACKAGE = Package(("ms-swift",), ("modelscope/ms-swift", "modelscope/swift"))
# Names of ms-swift 3 up to 3.9.
COMPATIBLE: Mapping[str, str] = {
    "gpu_memory_utilization": "vllm_gpu_memory_utilization",
    "tensor_parallel_size": "vllm_tensor_parallel_size",
    "max_model_len": "vllm_max_model_len",
    "limit_mm_per_prompt": "vllm_limit_mm_per_prompt",
    "data_parallel_size": "vllm_data_parallel_size",
    "use_async_engine": "vllm_use_async_engine",
}
# Argument -> the first release with it.
_FIRST: Mapping[str, str] = {
    "rollout_importance_sampling_mode": "3.11",
    "log_rollout_offpolicy_metrics": "3.11",
    "vllm_mm_processor_cache_gb": "3.11",
    "tuner_type": "4.0",
}


@dataclass(frozen=True)
class Releases:
    """A span of releases. newest: exclusive, None where nothing ends it. because: what tells so."""

    oldest: Version
    newest: Version | None = None
    because: str = "the ms-swift release is not known"

    def since(self, release: str) -> bool | None:
        """Whether `release` or a later one reads the config; None where both are possible."""
        if self.oldest >= Version(release):
            return True
        return False if self.newest is not None and self.newest <= Version(release) else None


def releases_of(
    source: Source, arguments: Mapping[str, Node], vllm: Version, checkout: Checkout | None = None
) -> Releases:
    """The release of the source that is there leaves no doubt. A pin counts where the release has every argument and
    knows the vLLM: none before 3.11 knows one from 0.12 on.
    """
    here = release_here(source, _PACKAGE, checkout)
    if checkout is not None and here is not None:
        return Releases(here.version, here.version, here.because)
    newest = None
    if any(name in arguments for name in COMPATIBLE):
        newest = Version("3.10")
    elif "rlhf_type" in arguments and not is_said(arguments.get("vllm_mode")):
        newest = Version("3.11")
    firsts = {Version(_FIRST[name]): f"{name} is there since {_FIRST[name]}" for name in arguments if name in _FIRST}
    if vllm >= Version("0.12") and newest is None:
        firsts.setdefault(Version("3.11"), "no ms-swift release before 3.11 knows a vLLM this new")
    oldest = max(firsts, default=Version("3"))
    if here is not None and here.version >= oldest and (newest is None or here.version < newest):
        return Releases(here.version, here.version, here.because)
    return Releases(oldest, newest, firsts[oldest]) if firsts else Releases(oldest, newest)
