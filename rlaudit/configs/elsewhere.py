"""Settings that another file decides, or arguments that could not be read: Unknown, not at their defaults."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlaudit.configs.draft import Settings
from rlaudit.configs.syntax.node import Node, rest
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING


class Elsewhere(Settings):
    """The settings that are known; `get` answers with Unknown for every other name.

    Iterating yields only the known ones, so that a report does not list two hundred unknown arguments.
    """

    def __init__(
        self, reason: str, known: Mapping[str, Setting] | None = None, sentence: str = "", hangs_on: str = ""
    ) -> None:
        """sentence: the config's sentence about it in `not_seen`, which is dropped if the settings are found.

        It is that of a trainer that asks a server, or of its server; empty if the file knows of no such other.

        hangs_on: as of Unknown.
        """
        super().__init__(known or {})
        self.reason, self.hangs_on = reason, hangs_on
        self.sentence = sentence

    def get(self, name: str, default: Any = None) -> Any:
        """Return the known setting, else an unknown one; never `default`."""
        return self[name]

    def __missing__(self, name: str) -> Setting:
        return Setting(name, Unknown(self.reason, hangs_on=self.hangs_on), None, Origin.FRAMEWORK, None, self.reason)


def as_written(settings: Mapping[str, Setting], call: str) -> Elsewhere:
    """Return the settings that a file writes in a call; any other may be among its arguments that could not be read."""
    if isinstance(settings, Elsewhere):
        return settings
    written = {name: setting for name, setting in settings.items() if setting.place is not None}
    return Elsewhere(f"it may be among the further arguments of {call}", written)


def leave_open(sampling: Settings, reason: str) -> None:
    """Make the sampling parameters that are not set Unknown, so that no default is taken for them."""
    for name in (*NEUTRAL_SAMPLING, "logprobs", "prompt_logprobs"):
        sampling.unless_set(name, Unknown(reason), reason)


def left_open(config: RolloutConfig, arguments: Node | None, name: str) -> RolloutConfig:
    """Return a config with every other argument open if its mapping of engine arguments may hold more than is read."""
    why = rest(arguments)
    if not why:
        return config
    engine = Elsewhere(f"it may be among the further keys of {name}", config.engine)
    return replace(config, engine=engine, not_seen=(*config.not_seen, f"further keys of {name} are not known: {why}"))
