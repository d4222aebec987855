"""The settings that a rollout engine gets, each with its origin: what `inspect` is about.

A finding says "you did not set it, and the default moved". That is true only if no framework sets it in code. A written
value arrives only if the framework's serializer hands it on: several drop a written `false`. So every setting carries
what was written, what arrives, and what decided it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from packaging.version import Version

from rlaudit.settings.place import Edit, Place
from rlaudit.settings.trainer_facts import OF_UPDATES, TrainerFacts
from rlaudit.unknown import Unknown

# Every dialect names the model in a place of its own; vLLM's default model is no choice of a user.
NAMED_BY_EVERY_DIALECT = ("model", "tokenizer", "served_model_name")


class Origin(StrEnum):
    """Who decided a value."""

    FILE = "file"
    OVERRIDE = "override"
    FRAMEWORK = "framework"
    ENGINE = "engine"


@dataclass(frozen=True)
class Setting:
    """One value on its way to the engine, the sampler, the environment or the trainer."""

    # vLLM's field name (`enable_prefix_caching`), SamplingParams' (`top_p`), a variable's or a field of TrainerFacts.
    name: str
    # What arrives, or Unknown.
    value: Any
    # What the file says.
    written: Any
    origin: Origin
    # None if code sets it.
    place: Place | None = None
    # Why `value` and `written` differ, or which code sets it, with its source.
    note: str = ""
    # The `${...}` reference that is null here, and that the launcher may fill.
    through: str = ""

    @property
    def known(self) -> bool:
        """Whether the value is known from the file or the framework's code."""
        return not isinstance(self.value, Unknown)


class Loss(StrEnum):
    """Why something written never arrives. REFUSED: the program that reads it stops with an error."""

    FALSE_DROPPED = "false dropped"
    UNKNOWN_KEY = "unknown key"
    REFUSED = "refused"
    OVERRULED = "overruled"
    NOT_PASSED = "not passed on"


@dataclass(frozen=True)
class Lost:
    """Something that is written and has no effect."""

    name: str
    written: Any
    place: Place
    loss: Loss
    reason: str
    # Whether that holds for every release of the framework.
    certain: bool = True


@dataclass(frozen=True)
class FrameworkRelease:
    """The release of a framework, or of transformers, that a config is run with."""

    version: Version
    # `requirements.txt:3 pins 0.6.0`.
    because: str


@dataclass(frozen=True)
class FrameworkReleases:
    """The releases of the framework that run with a vLLM and read the config."""

    oldest: Version
    # The first release that no longer runs with it; None if unknown.
    newest: Version | None
    # The source of `oldest`.
    because: str = ""
    # The source of `newest`.
    until: str = ""
    # The package, if it is not the framework's own.
    of: str = ""


@dataclass(frozen=True)
class Copy:
    """The copy of the framework around the config."""

    # Its folder.
    where: str
    # None if it names none.
    release: Version | None


@dataclass(frozen=True)
class RefusedPin:
    """The release of the framework that the project pins, if it does not run with the vLLM release."""

    # `file:line` of the pin.
    where: str
    # Why, as the rest of a sentence.
    because: str


@dataclass(frozen=True)
class VersionGuard:
    """A line of a program, or of a framework's copy, that stops under this release of vLLM."""

    place: Place
    text: str


@dataclass(frozen=True)
class LostUpdate:
    """A line of a program by which new weights do not reach an engine in a process of its own."""

    # What the line does, as the rest of a sentence.
    what: str
    place: Place
    # Whether vLLM refuses what the line sends; otherwise the engine lacks the attribute that the line uses.
    sends: bool
    # The line of the `except` that goes on as if the update had been made; 0 if none does.
    passed_over_at: int = 0


@dataclass(frozen=True)
class RolloutConfig:
    """Everything in one file about one rollout engine, for one vLLM version."""

    # The dialect's name.
    framework: str
    # Of the file.
    path: str
    # Settings by name.
    engine: Mapping[str, Setting] = field(default_factory=dict)
    sampling: Mapping[str, Setting] = field(default_factory=dict)
    environment: Mapping[str, Setting] = field(default_factory=dict)
    trainer: Mapping[str, Setting] = field(default_factory=dict)
    # The framework's own switches for rollouts and their correction, as it spells them.
    options: Mapping[str, Setting] = field(default_factory=dict)
    # What is written and never arrives.
    lost: tuple[Lost, ...] = ()
    model: Setting | None = None
    # Whether the engine is an in-process `LLM` and not a server (defaults differ).
    offline: bool = False
    # Whether it is neither, and a program makes AsyncLLM or LLMEngine itself.
    bare: bool = False
    # Whether a program builds AsyncLLM, V1's own class, which stops where V0 would run.
    needs_v1: bool = False
    # Whether it is built in an actor of a Ray placement group.
    placed_by_ray: bool = False
    # The image that the engine is started in, or the framework's option for the device.
    device: Setting | None = None
    place: Place | None = None
    # What the file calls the engine, if it sets up several: `roles[1].config (rollout)`.
    called: str = ""
    # What a reader could not find out, in sentences.
    not_seen: tuple[str, ...] = ()
    # What a recording shows of its run, in sentences.
    recorded: tuple[str, ...] = ()
    # Of recorded processes that did not end in order.
    # The model's config.json as a recorded run loaded it.
    checkpoint: Mapping[str, Any] | None = None
    # The other files that were read with this one.
    parts: tuple[str, ...] = ()
    # The work trees in which the files of its model may be read; None if the user's command names the model.
    trees: tuple[str, ...] | None = None
    # By setting, the line of the framework's source that decides it, if that source was read.
    decided: Mapping[str, str] = field(default_factory=dict)
    # Of the framework; None if they are unknown.
    releases: FrameworkReleases | None = None
    copy: Copy | None = None
    # Returns the release of a package, as the command line, its source or a pin gives it; None if nothing does.
    release_of: Callable[[str], FrameworkRelease | None] = lambda _package: None
    # Of its environment; None if nothing gives it.
    transformers: FrameworkRelease | None = None
    # The line of a program that takes token ids from a chat template, and leaves open whether it gets a dict.
    renders: Place | None = None
    # The pinned release that is not among them.
    refused_pin: RefusedPin | None = None
    # A pin of the framework with which the config or the vLLM release does not go, in a sentence.
    unused_pin: str = ""
    # Lines of the program by which weights do not reach the engine.
    lost_updates: tuple[LostUpdate, ...] = ()
    version_guards: tuple[VersionGuard, ...] = ()
    # Makes the edits that set an engine argument in this file's spelling; None if it cannot be written.
    write: Callable[[str, Any], tuple[Edit, ...] | None] = lambda _name, _value: None

    @property
    def has_trainer(self) -> bool:
        """Whether anything is known of the trainer's own computation."""
        return not OF_UPDATES.issuperset(self.trainer)

    @cached_property
    def facts(self) -> TrainerFacts:
        """What is known of the trainer's side, without the places and notes of `trainer`."""
        return TrainerFacts.of({name: setting.value for name, setting in self.trainer.items()})
