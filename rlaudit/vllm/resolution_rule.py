"""What one resolution rule is: how a release decides a value that the config leaves open."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from packaging.version import Version

from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.syntax.node import Unknown
from rlaudit.parse_json import parse_json
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import Machine


@dataclass(frozen=True)
class Resolved:
    """A decision of vLLM.

    value: may be Unknown. because: one clause for a reader. overrules: vLLM takes this value even if the config has
    another. at: the file that decides, if it is not the rule's first one.
    """

    value: Any
    because: str
    overrules: bool = False
    at: str = ""


class View(Protocol):
    """What a rule may look at. Values that the config leaves open come back resolved by the other rules."""

    @property
    def config(self) -> RolloutConfig:
        """The config as this release gets it."""

    @property
    def catalogue(self) -> Catalogue:
        """What the release declares."""

    @property
    def machine(self) -> Machine:
        """The machine that the engine runs on."""

    @property
    def version(self) -> Version:
        """The catalogued release."""

    @property
    def is_v1(self) -> bool | None:
        """Whether the V1 engine runs; None if it cannot be told."""

    @property
    def offline(self) -> bool:
        """Whether an in-process `LLM` runs the engine and not a server."""

    @property
    def bare(self) -> bool:
        """Whether a program makes the engine's class itself, which is neither `LLM` nor vLLM's server."""

    @property
    def checkpoint(self) -> Mapping[str, Any] | None:
        """The checkpoint's config.json, of a folder on this machine or as a recorded run loaded it."""

    def since(self, version: str | Version) -> bool:
        """Return whether this release is `version` or later."""

    def value(self, name: str) -> Any:
        """Return an engine argument or derived value as the engine will run it."""

    def given(self, name: str) -> Any:
        """Return what config or framework set; None if they leave it to vLLM."""

    def variable(self, name: str) -> Any:
        """Return an environment variable as text or Unknown, None if the config does not set it."""


@dataclass(frozen=True)
class Function:
    """A function, class or name of vLLM that decides, and the words by which its statements about the value are found.

    Without words all of it counts. A release that has no such function is no error: functions move.
    """

    path: str
    name: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResolutionRule:
    """How one value is decided.

    name: the engine argument, or a name of its own for what no argument carries (`engine`, `model_runner`). functions:
    where vLLM decides it, over all releases; their fingerprints tell when a new release must be read again. apply:
    None if the value stays as written or declared.
    """

    name: str
    functions: tuple[Function, ...]
    apply: Callable[[View], Resolved | None]


def engine_unknown(view: View, what: str) -> Resolved:
    """Return the decision if V0 and V1 differ and it is not known which of them runs."""
    engine = view.value("engine")
    if not isinstance(engine, Unknown):
        engine = Unknown("V0 or V1 cannot be told")
    unknown = Unknown(f"{what} depends on the engine: {engine.reason}", hangs_on=engine.fact)
    return Resolved(unknown, "V0 and V1 decide differently")


def task_of(view: View) -> Any:
    """Return what the engine is for, if the config says so: `generate`, `pooling`, `embed`...; None otherwise."""
    runner = view.given("runner")
    return runner if runner is not None else view.given("task")


def object_of(value: Any) -> dict[str, Any]:
    """Return an argument that takes a mapping or its JSON text; empty if it is neither."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def part(view: View, name: str, *path: str) -> Any:
    """Return a value inside a config object that is given as a mapping or as JSON text; None if it is not given."""
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
    """Return a value as a whole number; None if it is none, or unknown."""
    if isinstance(value, bool | Unknown):
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
