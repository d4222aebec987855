"""Which release of verl a config belongs to, as far as its keys tell.

The release decides whether a written `false` arrives and whether logprobs_mode is set, and no config names it. Keys
that only some releases have narrow it down, and so does the vLLM release, because verl's code follows vLLM's closely.

Telltales relied on: `rollout.mode: sync` (removed in v0.7.0: in-process engine), `rollout.logprobs_mode` (since
v0.7.0, verl#4755), `algorithm.rollout_correction` (since v0.6.1), `algorithm.rollout_is` (v0.6.0),
`actor.tis_imp_ratio_cap` (v0.5), a complete `rollout:` section without logprobs_mode (before v0.7.0) or without mode
(before v0.4.0: in-process engine). Where a copy of verl is there, its version decides and the vLLM release does not: an
old copy stays old whatever it is to run with.
vLLM per release, from verl's setup.py and imports: v0.5 up to 0.8.5, v0.6 up to 0.11.0, v0.7 and v0.8 up to 0.12.0,
from v0.9 on 0.18.0 and later.
"""

import ast
import re
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import known
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, engine_file, given_in
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.rollout_config import FrameworkReleases
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, within
from rlaudit.pins.package import Package

_ROLLOUT = "verl/workers/rollout/vllm_rollout"
_SERVER = f"{_ROLLOUT}/vllm_async_server.py"
# The second is the engine up to v0.2; from v0.7 on it is another thing and builds none.
_IN_PROCESS = (f"{_ROLLOUT}/vllm_rollout_spmd.py", f"{_ROLLOUT}/vllm_rollout.py")
FILES = FrameworkFiles("verl", engine=(_SERVER,), marks=_IN_PROCESS, leaves_out=("compilation_config",))
FILES_IN_PROCESS = FrameworkFiles("verl", engine=_IN_PROCESS, marks=(_SERVER,))
# How a serializer that hands a false on spells its flag.
_NEGATION = re.compile(r"""["'](?:--)?no-""")
_SERVES = re.compile(r"""["']serve["']""")
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
    """A span of verl releases, with what the copy of verl that is here has words for."""

    # The first and the last that are possible.
    first: Version = OLDEST
    last: Version = NEWEST
    # What tells so, for messages.
    because: tuple[str, ...] = ()
    in_process: bool | None = None
    # Whether the copy's serializer has a word for a false value; None without one.
    negates: bool | None = None
    # The copy's file that gives the engine keywords, and no flags.
    engine: Source | None = None

    def hands_on(self, name: str, field: str) -> bool:
        """Whether such a file gives an argument from a field of the config; True without one."""
        if self.engine is None:
            return True
        values = given_in(self.engine, frozenset({name}), 1).get(name, ())
        return any(re.search(rf"\b{field}\b", ast.unparse(value)) for value in values)

    @property
    def drops_false(self) -> bool | None:
        """Whether build_cli_args_from_config of the release skips every false value; None where it cannot be told."""
        if self.in_process or self.engine is not None:
            return False
        if self.negates is False:
            return None if self.in_process is None else True
        # What the words of the copy speak against is not known.
        return None if self.negates and self._dropped else self._dropped

    @property
    def _dropped(self) -> bool | None:
        if self.last < FIRST_DROPPING or self.first >= FIRST_FIXED:
            return False
        certain = self.first >= FIRST_DROPPING and self.last < FIRST_FIXED
        return True if certain and (self.in_process is False or self.first >= Version("0.7.0")) else None

    @property
    def builds_flags(self) -> bool | None:
        """Whether engine arguments go through vLLM's command line; before v0.6.0, and in-process, they are keywords."""
        if self.in_process or self.engine is not None or self.last < FIRST_DROPPING:
            return False
        return True if self.first >= FIRST_DROPPING and self.in_process is False else None

    @property
    def passes_engine_kwargs(self) -> bool | None:
        """Whether engine_kwargs.vllm reaches the engine: the server of v0.4 and v0.5 and all before do not read it."""
        if self.engine is not None:
            return "engine_kwargs" in self.engine.text
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
        return _of_copy(rollout, checkout, told, vllm)
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


def _of_copy(rollout: Node | None, checkout: Checkout, told: Release, vllm: Version) -> Release:
    here = checkout.version
    first, last, because = told.first, told.last, list(told.because)
    if here is not None:
        first = last = Version(here.base_version)
        because = [f"the source of verl {first} is there"]
    only_in_process = checkout.file(_SERVER) is None and any(checkout.file(file) is not None for file in _IN_PROCESS)
    if only_in_process:
        last = min(last, Version("0.6.99"))
        because.append("the source of verl that is there builds the engine in the trainer's process, and has no server")
    in_process = True if only_in_process else _in_process(rollout, first, last)
    serializers = [source for file in (f"{_ROLLOUT}/utils.py", _SERVER) if (source := checkout.file(file)) is not None]
    negates = any(_NEGATION.search(source.text) for source in serializers) if serializers else None
    server = checkout.file(_SERVER)
    gets_keywords = server is not None and _SERVES.search(server.text) is None
    engine = engine_file(checkout, _IN_PROCESS if in_process else (_SERVER,) if gets_keywords else (), vllm)
    return Release(first, last, tuple(because), in_process, negates, engine)


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
