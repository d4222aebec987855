"""What vLLM will really run: the config's values, and vLLM's own decisions where the config leaves them open.

Most migrations break on values that are not written: 0.8.5 declares `enable_prefix_caching = None` as 0.18.1 does, and
the one means off, the other on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.configs.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.configs.syntax.node import Unknown
from rlaudit.discover import discover
from rlaudit.vllm import resolution
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.checkpoint import checkpoint_file
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.machine import DeviceDecides, Machine
from rlaudit.vllm.resolution_rule import ResolutionRule, Resolved
from rlaudit.vllm.review import unreviewed

# Rules ask for a few releases thousands of times.
_release = lru_cache(maxsize=512)(Version)


@lru_cache(maxsize=1)
def resolution_rules() -> dict[str, ResolutionRule]:
    """Return every resolution rule, by the name of the value it decides."""
    return discover(resolution, "RESOLUTION", ResolutionRule)


@dataclass(eq=False)
class Resolution:
    """One config under one release on one machine.

    Beside engine arguments it knows by name what no argument carries: the names of resolution_rules() that are no
    engine argument, such as `engine`, `model_runner`, `cudagraph_mode`, `flashinfer_sampler`, `logprobs_semantics`.
    """

    config: RolloutConfig
    catalogue: Catalogue
    machine: Machine
    _settings: dict[str, Setting] = field(default_factory=dict, repr=False)
    _open: set[str] = field(default_factory=set, repr=False)

    @property
    def version(self) -> Version:
        """The catalogued release."""
        return self.catalogue.version

    @property
    def is_v1(self) -> bool | None:
        """Whether the V1 engine runs; None if the config does not tell."""
        engine = self.value("engine")
        return None if isinstance(engine, Unknown) else engine == "V1"

    @property
    def why_engine(self) -> str:
        """Why V0 or V1 runs, or why that is not known."""
        return self.setting("engine").note

    def setting(self, name: str) -> Setting:
        """Return a value as the engine will run it.

        The origin is FILE, OVERRIDE or FRAMEWORK if they set it; ENGINE, with vLLM's reason and its source line as
        note, if vLLM decides, also against what is written. `value` is None if this release has no such argument,
        Unknown if it is not known.
        """
        if name not in self._settings:
            if name in self._open:
                raise RecursionError(f"resolution rules ask each other for {name}")
            self._open.add(name)
            self._settings[name] = self._resolve(name)
            self._open.discard(name)
        return self._settings[name]

    def value(self, name: str) -> Any:
        """Return the value of `setting(name)`."""
        return self.setting(name).value

    def given(self, name: str) -> Any:
        """Return what config or framework set for an engine argument; None if they leave it to vLLM."""
        said = self.config.engine.get(name)
        return None if said is None else said.value

    def variable(self, name: str) -> Any:
        """Return an environment variable as text or Unknown, None if the config does not set it."""
        said = self.config.environment.get(name)
        if said is None or said.value is None:
            return None
        if isinstance(said.value, Unknown):
            return said.value
        return str(int(said.value)) if isinstance(said.value, bool) else str(said.value)

    def since(self, version: str | Version) -> bool:
        """Return whether this release is `version` or later."""
        return self.version >= (_release(version) if isinstance(version, str) else version)

    @property
    def offline(self) -> bool:
        """Whether an in-process `LLM` runs the engine and not a server."""
        return self.config.offline

    @property
    def bare(self) -> bool:
        """Whether a program makes the engine's class itself, which is neither `LLM` nor vLLM's server."""
        return self.config.bare

    @cached_property
    def checkpoint(self) -> Mapping[str, Any] | None:
        """The checkpoint's config.json, of a folder on this machine or as a recorded run loaded it."""
        return checkpoint_file(self.config) or self.config.checkpoint

    def _resolve(self, name: str) -> Setting:
        rule = resolution_rules().get(name)
        declared = self.catalogue.engine.get(name)
        # What vLLM only derives (`engine`, `cudagraph_mode`) is no argument: no config can have said it.
        derived = rule is not None and lifetime("engine", name) is None
        said = None if derived else self.config.engine.get(name)
        if rule is None and declared is None:
            return _absent(name, said, self.version)
        if said is not None and said.origin is Origin.ENGINE:
            # The release itself reported what it resolved, when it ran.
            return said
        try:
            resolved = rule.apply(self) if rule is not None else None
        except DeviceDecides as error:
            resolved = Resolved(Unknown(str(error)), "the platform decides")
        if said is not None and said.value is not None and not (resolved is not None and resolved.overrules):
            return said if declared is not None else _absent(name, said, self.version)
        if resolved is not None:
            written = said.written if said is not None else None
            place = said.place if said is not None else None
            return Setting(name, resolved.value, written, Origin.ENGINE, place, self._note(name, resolved))
        if declared is None:
            return _absent(name, said, self.version)
        note = f"declared default ({declared.line})"
        return Setting(name, declared.default, None, Origin.ENGINE, None, note)

    def _note(self, name: str, resolved: Resolved) -> str:
        found = self.catalogue.resolvers.get(name)
        if found is None or not found.lines:
            return resolved.because
        doubt = "; this release's code has not been reviewed" if name in unreviewed(self.version) else ""
        line = next((line for line in found.lines if line.startswith(resolved.at)), found.lines[0])
        return f"{resolved.because} ({line}{doubt})"


def resolve(config: RolloutConfig, catalogue: Catalogue, machine: Machine) -> Resolution:
    """Return the settings of a config under one release."""
    return Resolution(config, catalogue, machine)


def _absent(name: str, said: Setting | None, version: Version) -> Setting:
    note = f"vLLM {version} has no {name}"
    if said is None:
        return Setting(name, None, None, Origin.ENGINE, None, note)
    return Setting(name, None, said.written, said.origin, said.place, note)
