"""What vLLM will really run: the config's values, and vLLM's own decisions where the config leaves them open.

Most migrations break on values that are not written: 0.8.5 declares `enable_prefix_caching = None` as 0.18.1 does, and
the one means off, the other on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.discover import discover
from rlaudit.files.parse_json import parse_json
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm import resolution
from rlaudit.vllm.catalogue import Catalogue, Resolver
from rlaudit.vllm.checkpoint import cached_config, checkpoint_file
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.machine import DeviceDecides, Machine
from rlaudit.vllm.review import unreviewed

# Rules name a few releases thousands of times.
_release = lru_cache(maxsize=512)(Version)


@dataclass(frozen=True)
class Resolved:
    """A decision of vLLM."""

    # May be Unknown.
    value: Any
    # One clause for a reader.
    because: str
    # Whether vLLM takes this value even if the config has another.
    overrules: bool = False
    # The deciding file, if it is not the rule's first one.
    at: str = ""


@dataclass(frozen=True)
class Function:
    """A function, class or name of vLLM that decides a value, with words that mark the deciding statements.

    Without words all of it counts. A release may lack the function: functions move.
    """

    path: str
    name: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResolutionRule:
    """How one value is decided."""

    # The engine argument, or a name of its own for what no argument carries (`engine`, `model_runner`).
    name: str
    # The code that decides it in any release. Their fingerprints tell when a new release must be read again.
    functions: tuple[Function, ...]
    # Returns None if the value stays as written or declared.
    apply: Callable[["Resolution"], Resolved | None]


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
        """Whether the V1 engine runs; None if it is unknown."""
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
        """Return the value that config or framework set for an engine argument; None if they leave it to vLLM."""
        setting = self.config.engine.get(name)
        return None if setting is None else setting.value

    def variable(self, name: str) -> Any:
        """Return an environment variable as text or Unknown, None if the config does not set it."""
        setting = self.config.environment.get(name)
        if setting is None or setting.value is None:
            return None
        if isinstance(setting.value, Unknown):
            return setting.value
        return str(int(setting.value)) if isinstance(setting.value, bool) else str(setting.value)

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
        """The checkpoint's config.json: of a folder here, as a recorded run loaded it, or in the hub's cache."""
        return checkpoint_file(self.config) or self.config.checkpoint or cached_config(self.config)

    def _resolve(self, name: str) -> Setting:
        rule = resolution_rules().get(name)
        declared = self.catalogue.engine.get(name)
        # A value that vLLM only derives (`engine`, `cudagraph_mode`) is no argument, which a config could write.
        derived = rule is not None and lifetime("engine", name) is None
        setting = None if derived else self.config.engine.get(name)
        if rule is None and declared is None:
            return _absent(name, setting, self.version)
        if setting is not None and setting.origin is Origin.ENGINE:
            # The release itself reported this value when it ran.
            return setting
        try:
            resolved = rule.apply(self) if rule is not None else None
        except DeviceDecides as error:
            resolved = Resolved(Unknown(str(error)), "the platform decides")
        if setting is not None and setting.value is not None and not (resolved is not None and resolved.overrules):
            return setting if declared is not None else _absent(name, setting, self.version)
        if resolved is not None:
            written = setting.written if setting is not None else None
            place = setting.place if setting is not None else None
            return Setting(name, resolved.value, written, Origin.ENGINE, place, self._note(name, resolved))
        if declared is None:
            return _absent(name, setting, self.version)
        note = f"declared default ({declared.line})"
        return Setting(name, declared.default, None, Origin.ENGINE, None, note)

    def _note(self, name: str, resolved: Resolved) -> str:
        resolver = self.catalogue.resolvers.get(name)
        if resolver is None or not resolver.lines:
            return resolved.because
        doubt = "this release's code has not been reviewed" if name in unreviewed(self.version) else ""
        evidence = "; ".join(filter(None, (self._line(resolver, resolved), doubt)))
        return f"{resolved.because} ({evidence})" if evidence else resolved.because

    def _line(self, resolver: Resolver, resolved: Resolved) -> str | None:
        """Return the first line of the decision; if it assigns another value, the first that assigns this one.

        What another platform decides is not cited. None if nothing is left.
        """
        value = str(resolved.value)
        here = [line for line in (*resolver.lines, *(line for line, _ in resolver.assigned)) if self._is_here(line)]
        first = next((line for line in here if line.startswith(resolved.at)), here[0] if here else None)
        others = {line for line, _ in resolver.assigned if (line, value) not in resolver.assigned}
        if first not in others or isinstance(resolved.value, Unknown):
            return first
        return next((line for line in here if (line, value) in resolver.assigned), None)

    def _is_here(self, line: str) -> bool:
        folder, _, file = line.rpartition("/")
        return folder != "vllm/platforms" or file.partition(".")[0] in {"__init__", "interface", self.machine.platform}


def resolve(config: RolloutConfig, catalogue: Catalogue, machine: Machine) -> Resolution:
    """Return the settings of a config under one release."""
    return Resolution(config, catalogue, machine)


def _absent(name: str, setting: Setting | None, version: Version) -> Setting:
    note = f"vLLM {version} has no {name}"
    if setting is None:
        return Setting(name, None, None, Origin.ENGINE, None, note)
    return Setting(name, None, setting.written, setting.origin, setting.place, note)


def engine_unknown(view: Resolution, what: str) -> Resolved:
    """Return an open decision, for a value that depends on whether V0 or V1 runs."""
    engine = view.value("engine")
    if not isinstance(engine, Unknown):
        engine = Unknown("V0 or V1 is not known")
    unknown = Unknown(f"{what} depends on the engine: {engine.reason}", hangs_on=engine.fact)
    return Resolved(unknown, "V0 and V1 decide differently")


def task_of(view: Resolution) -> Any:
    """Return the engine's task if the config names one: `generate`, `pooling`, `embed`...; None otherwise."""
    runner = view.given("runner")
    return runner if runner is not None else view.given("task")


def object_of(value: Any) -> dict[str, Any]:
    """Return a mapping, also from its JSON text; empty if a value is neither."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def part(view: Resolution, name: str, *path: str) -> Any:
    """Return a value inside a config object, a mapping or its JSON text; None if it is not given."""
    value = view.given(name)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = parse_json(value)
        except ValueError:
            return Unknown(f"{name} is not JSON")
    for key in path:
        if isinstance(value, Unknown):
            return value
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def number(value: Any) -> int | None:
    """Return a value as a whole number; None if it is no number, or unknown."""
    if isinstance(value, bool | Unknown):
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
