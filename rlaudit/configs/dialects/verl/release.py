"""Which release of verl a config belongs to, as far as its keys tell.

The release decides whether a written `false` arrives and whether logprobs_mode is set, and no config names it. Keys
that only some releases have narrow it down, and so does the vLLM release, because verl's code follows vLLM's closely.

Telltales relied on: `rollout.mode: sync` (removed in v0.7.0: in-process engine), `rollout.logprobs_mode` (since
v0.7.0, verl#4755), `algorithm.rollout_correction` (since v0.6.1), `algorithm.rollout_is` (v0.6.0),
`actor.tis_imp_ratio_cap` (v0.5), a complete `rollout:` section without logprobs_mode (before v0.7.0) or without mode
(before v0.4.0: in-process engine). Where verl's source is there, its files decide and the vLLM release does not: an old
copy stays old whatever it is to run with.
vLLM per release, from verl's setup.py and imports: v0.5 up to 0.8.5, v0.6 up to 0.11.0, v0.7 and v0.8 up to 0.12.0,
from v0.9 on 0.18.0 and later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.verl.source import BUILDS_FLAGS, ENGINE_KWARGS, SAYS_NO, is_in_process, passed_by
from rlaudit.configs.draft import known
from rlaudit.configs.framework_source.bindings import Bound
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.questions import ask
from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.rollout_config import FrameworkReleases
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown, within
from rlaudit.pins.package import Package

_PACKAGE = Package(("verl",), ("verl-project/verl", "volcengine/verl"))
# What the rollout section of verl's own config has had in every release from v0.1 on.
_WHOLE = (
    "gpu_memory_utilization", "enforce_eager", "load_format", "free_cache_engine", "ignore_eos", "do_sample", "dtype",
    "tensor_model_parallel_size", "max_num_batched_tokens", "prompt_length", "response_length",
)  # fmt: skip
FIRST_DROPPING, FIRST_FIXED = Version("0.6.0"), Version("0.9.1")
FIRST_SERVER = Version("0.4.0")
OLDEST, NEWEST = Version("0.1"), Version("1000")
_ANY = 99  # as a micro release: whichever there is


@dataclass(frozen=True)
class Release:
    """A span of verl releases. first and last are both possible. because: what tells so, for messages. says_no,
    server_builds_flags: what verl's own source says of its serializer, None where it was not read. reads_engine_kwargs:
    whether that source reads engine_kwargs.vllm. passed: what the engine of that source is given, in process or by a
    server that builds no flags.
    """

    first: Version = OLDEST
    last: Version = NEWEST
    because: tuple[str, ...] = ()
    in_process: bool | None = None
    says_no: bool | None = None
    server_builds_flags: bool | None = None
    reads_engine_kwargs: bool | None = None
    passed: Mapping[str, Bound] | None = None

    def computes(self, name: str) -> Bound | None:
        """Where the source computes an argument from other things than an option of its name."""
        bound = None if self.passed is None else self.passed.get(name)
        return bound if bound is not None and isinstance(bound.constant, Unknown) and not bound.option else None

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
        """Whether engine_kwargs.vllm reaches the engine: the server of v0.4 and v0.5 and all before do not read it."""
        if self.reads_engine_kwargs is not None:
            return self.reads_engine_kwargs
        if self.last < FIRST_SERVER:
            return False
        if self.first >= (FIRST_SERVER if self.in_process else FIRST_DROPPING):
            return True
        return False if self.in_process is False and self.last < FIRST_DROPPING else None

    @property
    def sets_logprobs_mode(self) -> bool | None:
        """Whether the release hands logprobs_mode on, processed_logprobs where it is not written."""
        if self.first >= Version("0.7.0"):
            return True
        return False if self.last < Version("0.7.0") else None

    @property
    def span(self) -> FrameworkReleases | None:
        """The releases in the form of every framework; None where nothing tells them."""
        if self.first == OLDEST and self.last == NEWEST:
            return None
        major, minor, micro = self.last.major, self.last.minor, self.last.micro
        after = Version(f"{major}.{minor}.{micro + 1}" if micro < _ANY else f"{major}.{minor + 1}")
        why = self.because[-1] if self.because else ""
        return FrameworkReleases(self.first, None if self.last == NEWEST else after, why, why)

    def why(self) -> str:
        """What tells the release, or that nothing does."""
        return "; ".join(self.because) or "no key of this config tells the release of verl"


def is_whole(rollout: Node | None) -> bool:
    """Whether a rollout section is complete, as verl's own config is: a key that it lacks is one the release lacks."""
    return rollout is not None and all(rollout.get(key) is not None for key in _WHOLE)


def release_of(source: Source, root: Node, vllm: Version, checkout: Checkout | None = None) -> Release:
    """The releases of verl that the config and the vLLM release leave possible: the one whose source is there, or the
    one that the project pins, if it is among them.
    """
    rollout = root.get("actor_rollout_ref", "rollout")
    told = _by_keys(root, rollout)
    if checkout is not None:
        return _of_source(rollout, checkout, told, vllm)
    first, last, because = told.first, told.last, list(told.because)
    oldest, newest, said = _by_vllm(vllm)
    if first <= newest and oldest <= last:
        if max(first, oldest) > first or min(last, newest) < last:
            because.append(said)
        first, last = max(first, oldest), min(last, newest)
    pinned = release_here(source, _PACKAGE, None)
    if pinned is not None and first <= (release := Version(pinned.version.base_version)) <= last:
        first, last, because = release, release, [pinned.because]
    return Release(first, last, tuple(because), _in_process(rollout, first, last))


def _by_keys(root: Node, rollout: Node | None) -> Release:
    first, last, because = OLDEST, NEWEST, []
    if rollout is not None and rollout.get("logprobs_mode") is not None:
        first = max(first, Version("0.7.0"))
        because.append("rollout.logprobs_mode exists since v0.7.0")
    elif rollout is not None and rollout.get("mode") is None and is_whole(rollout):
        last = min(last, Version("0.3.99"))
        because.append("the rollout section is complete and has no mode, as before v0.4.0")
    elif is_whole(rollout):
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
    if mode in ("sync", "async"):
        first = max(first, FIRST_SERVER)
    if mode == "sync":
        last = min(last, Version("0.6.99"))
        because.append("rollout.mode sync was removed in v0.7.0")
    return Release(first, last, tuple(because))


def _of_source(rollout: Node | None, checkout: Checkout, told: Release, vllm: Version) -> Release:
    here = checkout.version
    says_no, builds, reads = ask(SAYS_NO, checkout), ask(BUILDS_FLAGS, checkout), ask(ENGINE_KWARGS, checkout)
    first, last, because = told.first, told.last, list(told.because)
    if here is not None:
        first = last = Version(here.base_version)
        because = [f"the source of verl {first} is there"]
    in_process = True if is_in_process(checkout) else _in_process(rollout, first, last)
    if is_in_process(checkout):
        last = min(last, Version("0.6.99"))
        because.append("the source of verl that is there builds the engine in the trainer's process, and has no server")
    if says_no is not None:
        because.append(f"{says_no.where} writes {'a flag' if says_no.value else 'nothing'} for a false value")
    named = in_process or (in_process is False and builds is None)
    return Release(
        first, last, tuple(because), in_process,
        says_no=says_no.value if says_no is not None else None,
        server_builds_flags=builds.value if builds is not None else None,
        reads_engine_kwargs=None if not in_process else reads is not None,
        passed=passed_by(checkout, vllm, in_process=bool(in_process)) if named else None,
    )  # fmt: skip


def _in_process(rollout: Node | None, first: Version, last: Version) -> bool | None:
    mode: Any = known(within(rollout, "mode"))
    if mode == "sync" or last < FIRST_SERVER:
        return True
    return False if mode == "async" or first >= Version("0.7.0") else None


def _by_vllm(vllm: Version) -> tuple[Version, Version, str]:
    if vllm >= Version("0.18.0"):
        return Version("0.9.0"), NEWEST, "verl for vLLM 0.18.0 and later is v0.9.0 or newer"
    if vllm > Version("0.11.0"):
        return Version("0.7.0"), Version("0.8.99"), f"verl for vLLM {vllm} is v0.7 or v0.8"
    if vllm >= Version("0.9.0"):
        return Version("0.6.0"), Version("0.8.99"), f"verl for vLLM {vllm} is v0.6 to v0.8"
    return OLDEST, Version("0.8.99"), f"verl for vLLM {vllm} is older than v0.9.0"
