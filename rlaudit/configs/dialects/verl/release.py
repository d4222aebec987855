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

from rlaudit.configs.dialects.verl.source import BUILDS_FLAGS, SAYS_NO
from rlaudit.configs.draft import known
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.questions import ask
from rlaudit.configs.syntax.node import Node, within

_WHOLE = ("gpu_memory_utilization", "enforce_eager", "load_format", "val_kwargs", "free_cache_engine")
FIRST_DROPPING, FIRST_FIXED = Version("0.6.0"), Version("0.9.1")
OLDEST, NEWEST = Version("0.4.0"), Version("1000")


@dataclass(frozen=True)
class Release:
    """A span of verl releases. first and last are both possible. because: what tells so, for messages. says_no,
    server_builds_flags: what verl's own source says of its serializer, None where it was not read.
    """

    first: Version = OLDEST
    last: Version = NEWEST
    because: tuple[str, ...] = ()
    in_process: bool | None = None
    says_no: bool | None = None
    server_builds_flags: bool | None = None

    @property
    def drops_false(self) -> bool | None:
        """Whether build_cli_args_from_config of the release skips every false value; None where it cannot be told."""
        if self.in_process or self.server_builds_flags is False:
            return False
        if self.says_no is not None:
            return None if self.in_process is None else not self.says_no
        if self.last < FIRST_DROPPING or self.first >= FIRST_FIXED:
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


def release_of(root: Node, vllm: Version, checkout: Checkout | None = None) -> Release:
    """The releases of verl that the config and the vLLM release leave possible, or the one whose source is there."""
    rollout = root.get("actor_rollout_ref", "rollout")
    here = checkout.version if checkout is not None else None
    if checkout is not None and here is not None:
        return _of_source(rollout, checkout, Version(here.base_version))
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
    return Release(first, last, tuple(because), _in_process(mode, first))


def _of_source(rollout: Node | None, checkout: Checkout, here: Version) -> Release:
    says_no, builds = ask(SAYS_NO, checkout), ask(BUILDS_FLAGS, checkout)
    because = f"the source of verl {here} is there"
    if says_no is not None:
        because = f"{because}; {says_no.where} writes {'a flag' if says_no.value else 'nothing'} for a false value"
    in_process = _in_process(known(within(rollout, "mode")), here)
    told = (None if one is None else one.value for one in (says_no, builds))
    return Release(here, here, (because,), in_process, *told)


def _in_process(mode: Any, first: Version) -> bool | None:
    return True if mode == "sync" else False if mode == "async" or first >= Version("0.7.0") else None


def _by_vllm(vllm: Version) -> tuple[Version, Version, str]:
    if vllm >= Version("0.18.0"):
        return Version("0.9.0"), NEWEST, "verl for vLLM 0.18.0 and later is v0.9.0 or newer"
    if vllm > Version("0.11.0"):
        return Version("0.7.0"), Version("0.8.99"), f"verl for vLLM {vllm} is v0.7 or v0.8"
    if vllm >= Version("0.9.0"):
        return Version("0.6.0"), Version("0.8.99"), f"verl for vLLM {vllm} is v0.6 to v0.8"
    return OLDEST, Version("0.8.99"), f"verl for vLLM {vllm} is older than v0.9.0"
