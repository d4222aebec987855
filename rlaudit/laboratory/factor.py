"""A factor: one thing that may differ between two engines, how to set it, and how to see that it took effect.

A requested level is not yet in force: platforms turn settings off, releases ignore them, caches are never hit. So every
factor also *observes* its level on what the engine did, and a contrast between two arms counts only when the observed
levels differ. To add a factor, add a file to `factors/` that binds FACTOR; its module docstring is its documentation.

On a config that moves from one release to another, the level that is tried of a factor is the one before the move,
which is then a step of the way back; if the migration does not move it, another one than the new release would run.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlaudit.errors import UsageError
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.rules.audit.audit import Audit


@dataclass(frozen=True)
class Move:
    """A level to try."""

    level: str
    # Whether it is what ran before the migration.
    to_reference: bool = False


def switched(audit: Audit, setting: str) -> Move:
    """Return the level to try for a factor that turns one engine argument on and off."""
    before, after = audit.before.value(setting), audit.after.value(setting)
    level = "off" if after is True else "on"
    return Move(level, isinstance(before, bool | None) and bool(before) == (level == "on") and before != after)


def always(level: str) -> Callable[[Audit, str], Move]:
    """Try this level with any config: for a factor with one level that tells most."""
    return lambda audit, setting: Move(level)


def never(audit: Audit, setting: str) -> None:
    """Try no level: for a factor that does not belong into the experiment of a config."""


@dataclass(frozen=True)
class ArmTrace:
    """What a finished arm left for its factors to look at."""

    treatment: Treatment
    # The engine's loaded configuration.
    resolved: Mapping[str, Any]
    # Prompt tokens served from the prefix cache, of all requests together.
    cached_tokens: int
    # The largest number of prompt tokens that were submitted at once.
    prompt_tokens_per_round: int
    # The precision seen in the logprobs of each side: "bfloat16", "float32", or None if unknown.
    rollout_head: str | None
    trainer_head: str | None
    head_because: str
    # The distribution that the engine was asked to sample from.
    requested: Semantics = RAW
    # The meaning that its logprobs follow.
    reported: Semantics = RAW
    # What the workers loaded and ran (engines/inside/scripts/loaded_engine.py).
    loaded: Mapping[str, Any] = field(default_factory=dict)
    # The same request alone and in a batch (engines/inside/scripts/batch_probe.py).
    batch_probe: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Observation:
    """The level in force, or None if it is unknown, and the evidence in one clause."""

    level: str | None
    because: str


@dataclass(frozen=True)
class Factor:
    """One factor."""

    name: str
    layer: Layer
    # The values that a recipe may name; empty if any string will do (a version).
    levels: tuple[str, ...]
    # Pure.
    set_level: Callable[[Treatment, str], Treatment]
    observe: Callable[[ArmTrace], Observation]
    # What it sets, in vLLM's name if it has one.
    setting: str
    # From its setting to the level to try on a config that changes its release (`ablate CONFIG --from --to`).
    move: Callable[[Audit, str], Move | None]
    # What `observe` needs beyond the settings every engine reports (RESOLVED in engines/inside/scripts/generate.py),
    # each with its paths in the loaded VllmConfig: {"disable_cascade_attn": ("model_config.disable_cascade_attn",)}.
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Matches the message of an engine that does not start with this factor: the arm is *unsupported*, not failed.
    refusal: re.Pattern[str] | None = None
    # Whether it changes when a step begins, so that an engine running beside it could change what is seen.
    timed: bool = False

    def apply(self, treatment: Treatment, level: str) -> Treatment:
        """Return the treatment with this factor at `level`; raises UsageError for a level that does not exist."""
        if self.levels and level not in self.levels:
            raise UsageError(f"factor {self.name} has no level {level!r}; it has {', '.join(self.levels)}")
        return self.set_level(treatment, level)


def resolved_switch(field: str, trace: ArmTrace) -> Observation:
    """Read on or off from the engine's loaded configuration, for settings that need no further proof."""
    value = trace.resolved.get(field)
    if value is None:
        return Observation(None, f"this engine's configuration has no {field}")
    return Observation("on" if value else "off", f"loaded configuration: {field}={value}")
