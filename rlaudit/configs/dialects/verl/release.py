"""Which release of verl a config belongs to, as far as its keys tell.

The release decides whether a written `false` arrives and whether logprobs_mode is set, and no config names it. Keys
that only some releases have narrow it down, and so does the vLLM release, because verl's code follows vLLM's closely.

Telltales relied on: `rollout.mode: sync` (removed in v0.7.0: in-process engine), `rollout.logprobs_mode` (since
v0.7.0, verl#4755), `algorithm.rollout_correction` (since v0.6.1), `algorithm.rollout_is` (v0.6.0),
`actor.tis_imp_ratio_cap` (v0.5), a complete `rollout:` section without logprobs_mode (before v0.7.0).
vLLM per release, from verl's setup.py and imports: v0.5 up to 0.8.5, v0.6 up to 0.11.0, v0.7 and v0.8 up to 0.12.0,
from v0.9 on 0.18.0 and later.
"""

from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import known
from rlaudit.configs.syntax.node import Node, within

_WHOLE = ("gpu_memory_utilization", "enforce_eager", "load_format", "val_kwargs", "free_cache_engine")
FIRST_DROPPING, FIRST_FIXED = Version("0.6.0"), Version("0.9.1")
OLDEST, NEWEST = Version("0.4.0"), Version("1000")


@dataclass(frozen=True)
class Release:
    """A span of verl releases. first and last are both possible. because: what tells so, for messages."""

    first: Version = OLDEST
    last: Version = NEWEST
    because: tuple[str, ...] = ()
    in_process: bool | None = None

    @property
    def drops_false(self) -> bool | None:
        """Whether build_cli_args_from_config of the release skips every false value; None where it cannot be told."""
        if self.in_process or self.last < FIRST_DROPPING or self.first >= FIRST_FIXED:
            return False
        certain = self.first >= FIRST_DROPPING and self.last < FIRST_FIXED
        return True if certain and (self.in_process is False or self.first >= Version("0.7.0")) else None

    @property
    def builds_flags(self) -> bool | None:
        """Whether engine arguments go through vLLM's command line; before v0.6.0, and in-process, they are keywords."""
        if self.in_process or self.last < FIRST_DROPPING:
            return False
        return True if self.first >= FIRST_DROPPING and self.in_process is False else None

    @property
    def passes_engine_kwargs(self) -> bool | None:
        """Whether engine_kwargs.vllm reaches the engine: the server of v0.4 and v0.5 does not read it."""
        if self.in_process or self.first >= FIRST_DROPPING:
            return True
        return False if self.in_process is False and self.last < FIRST_DROPPING else None

    @property
    def sets_logprobs_mode(self) -> bool | None:
        """Whether the release hands logprobs_mode on, processed_logprobs where it is not written."""
        if self.first >= Version("0.7.0"):
            return True
        return False if self.last < Version("0.7.0") else None

    def why(self) -> str:
        """What tells the release, or that nothing does."""
        return "; ".join(self.because) or "no key of this config tells the release of verl"


def release_of(root: Node, vllm: Version) -> Release:
    """The releases of verl that the config and the vLLM release leave possible."""
    rollout = root.get("actor_rollout_ref", "rollout")
    first, last, because = OLDEST, NEWEST, []
    if rollout is not None and rollout.get("logprobs_mode") is not None:
        first = max(first, Version("0.7.0"))
        because.append("rollout.logprobs_mode exists since v0.7.0")
    elif rollout is not None and all(rollout.get(key) is not None for key in _WHOLE):
        last = min(last, Version("0.6.99"))
        because.append("the rollout section is complete and has no logprobs_mode, as before v0.7.0")
    if root.get("algorithm", "rollout_correction") is not None:
        first = max(first, Version("0.6.1"))
        because.append("algorithm.rollout_correction exists since v0.6.1")
    if root.get("algorithm", "rollout_is") is not None:
        first, last = max(first, Version("0.6.0")), min(last, Version("0.6.0"))
        because.append("algorithm.rollout_is is v0.6.0's")
    if root.get("actor_rollout_ref", "actor", "tis_imp_ratio_cap") is not None:
        last = min(last, Version("0.5.99"))
        because.append("actor.tis_imp_ratio_cap is v0.5's")
    mode: Any = known(within(rollout, "mode"))
    if mode == "sync":
        last = min(last, Version("0.6.99"))
        because.append("rollout.mode sync was removed in v0.7.0")
    oldest, newest, said = _by_vllm(vllm)
    if first <= newest and oldest <= last:
        if max(first, oldest) > first or min(last, newest) < last:
            because.append(said)
        first, last = max(first, oldest), min(last, newest)
    in_process = True if mode == "sync" else False if mode == "async" or first >= Version("0.7.0") else None
    return Release(first, last, tuple(because), in_process)


def _by_vllm(vllm: Version) -> tuple[Version, Version, str]:
    if vllm >= Version("0.18.0"):
        return Version("0.9.0"), NEWEST, "verl for vLLM 0.18.0 and later is v0.9.0 or newer"
    if vllm > Version("0.11.0"):
        return Version("0.7.0"), Version("0.8.99"), f"verl for vLLM {vllm} is v0.7 or v0.8"
    if vllm >= Version("0.9.0"):
        return Version("0.6.0"), Version("0.8.99"), f"verl for vLLM {vllm} is v0.6 to v0.8"
    return OLDEST, Version("0.8.99"), f"verl for vLLM {vllm} is older than v0.9.0"
