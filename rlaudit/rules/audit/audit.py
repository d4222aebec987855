"""What a rule looks at: one config under the version it runs on today, and under the one it moves to."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.syntax.node import Node
from rlaudit.rules.audit.finding import Fix
from rlaudit.settings.place import Edit, Place
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING, keeps_every_token
from rlaudit.vllm.resolve import Resolution, resolution_rules, resolve, task_of

FILTERS = ("top_p", "top_k", "min_p")


@dataclass(frozen=True, eq=False)
class Side:
    """The config under one vLLM version."""

    version: Version
    catalogue: Catalogue
    config: RolloutConfig
    machine: Machine
    resolution: Resolution

    @property
    def is_v1(self) -> bool | None:
        """Whether the V1 engine runs; None if it is unknown."""
        return self.resolution.is_v1

    def exists(self, name: str) -> bool:
        """Return whether this version has the engine argument."""
        return name in self.catalogue.engine

    def engine(self, name: str) -> Setting:
        """Return an engine argument as the engine will run it: written, set by the framework, or vLLM's own default.

        Its `value` is None if this version lacks the argument.
        """
        return self.resolution.setting(name)

    def value(self, name: str) -> Any:
        """Return the value of an engine argument; Unknown compares unequal to everything."""
        return self.engine(name).value

    def sampling(self, name: str) -> Any:
        """Return a sampling parameter of the rollout, by default neutral; Unknown if the config leaves it open."""
        setting = self.config.sampling.get(name)
        value = NEUTRAL_SAMPLING.get(name) if setting is None or setting.value is None else setting.value
        return 0 if name == "top_k" and keeps_every_token(value) else value

    def variable(self, name: str) -> Setting | None:
        """Return an environment variable that the config or the framework sets."""
        return self.config.environment.get(name)


# A value that is not known, as text.
UNKNOWN_VALUE = "unknown"


@dataclass(frozen=True, eq=False)
class Audit:
    """The config before and after the migration; without one, both sides have the same version."""

    before: Side
    after: Side

    @property
    def config(self) -> RolloutConfig:
        """The config as the version after the migration gets it."""
        return self.after.config

    @property
    def migrates(self) -> bool:
        """Whether there are two versions."""
        return self.before.version != self.after.version

    @property
    def generates(self) -> bool:
        """Whether the engine samples tokens: one for embeddings or scores returns no logprobs.

        An engine of unknown task, such as a server that another command starts, counts unless another file sets its
        sampling.
        """
        task = task_of(self.after.resolution)
        if isinstance(task, Unknown):
            return not isinstance(self.config.sampling, Elsewhere)
        return task in (None, "auto", "generate", "draft")

    def crosses(self, first: Version) -> bool:
        """Return whether the migration brings a behaviour. first: the first release with it."""
        return self.before.version < first <= self.after.version

    def only_reported(self, name: str) -> bool:
        """Return whether an argument cannot be compared.

        That is so if the release before the migration reported its value, and the value after it is unknown.
        """
        reported = self.before.config.engine.get(name)
        if reported is None or reported.origin is not Origin.ENGINE or name in self.after.config.engine:
            return False
        before, after = self.before.catalogue.engine.get(name), self.after.catalogue.engine.get(name)
        if before is None or after is None or name in resolution_rules():
            return False
        return before.default == after.default or after.default is None

    def place(self, name: str, by: Sequence[str] = ()) -> Place:
        """Return the place at which an engine argument, sampling parameter, variable or trainer setting is written.

        An unwritten one gets the place of the first of `by` that is written, else the config's own, else line 1. by:
        settings that decide it, in order of preference.
        """
        config = self.config
        written = self._written(name)
        if written is not None:
            return written
        places = (place for decider in by if (place := self._written(decider)) is not None)
        home = next(places, config.place or Place(config.path, 1, 1, ""))
        return Place(home.path, home.line, home.column, name, home.start, home.end)

    def _written(self, name: str) -> Place | None:
        config = self.config
        if name == "model":
            return config.model.place if config.model is not None else None
        for settings in (config.engine, config.sampling, config.environment, config.trainer):
            if name in settings and settings[name].place is not None:
                return settings[name].place
        return None

    def fix(self, description: str, safe: bool, **wanted: Any) -> Fix:
        """Return edits that set engine arguments in the file's own spelling; none if the file cannot be written so."""
        # What is taken away is not set.
        sets = tuple((name, as_text(value)) for name, value in wanted.items() if value is not None)
        edits: list[Edit] = []
        for name, value in wanted.items():
            made = self.config.write(name, value)
            if made is None:
                return Fix(description, (), safe, sets)
            edits += made
        return Fix(description, tuple(edits), safe, sets)


def audit_of(before: RolloutConfig, after: RolloutConfig, versions: tuple[Version, Version], machine: Machine) -> Audit:
    """Resolve one config under both versions."""
    sides = []
    for config, version in zip((before, after), versions, strict=True):
        catalogue = Catalogue.at(version)
        sides.append(Side(version, catalogue, config, machine, resolve(config, catalogue, machine)))
    return Audit(sides[0], sides[1])


def as_text(value: Any) -> str:
    """Return a value as configs spell it: JSON, and text without quotes."""
    if isinstance(value, Unknown):
        return UNKNOWN_VALUE
    return value if isinstance(value, str) else json.dumps(as_json(value), sort_keys=True)


def as_json(value: Any) -> Any:
    """Return a value as JSON data: an Unknown as {"unknown": reason}, anything without a form in JSON as its text."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, Node):
        return as_json(value.plain())
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(item) for item in value]
    return str(value)
