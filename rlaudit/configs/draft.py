"""A rollout config while a reader collects it.

Every dialect answers the same questions: what is written, what of it arrives, and who decided everything else.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod
from typing import Any, TypeGuard

from rlaudit.configs.merging import MANDATORY
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import taken_at_default
from rlaudit.settings.place import Edit, Place
from rlaudit.settings.rollout_config import (
    Copy,
    FrameworkRelease,
    FrameworkReleases,
    Loss,
    Lost,
    LostUpdate,
    Origin,
    RefusedPin,
    RolloutConfig,
    Setting,
    VersionGuard,
)
from rlaudit.settings.trainer_facts import TrainerFacts
from rlaudit.unknown import Unknown

# A null that is not written itself: it comes from an OmegaConf reference to another key, or from a program's option.
_REFERENCE = re.compile(r"\$\{|^[A-Za-z_]\w*\.[A-Za-z_]")
_AS_WRITTEN: Any = object()


def unwritten(_name: str, _value: Any) -> tuple[Edit, ...] | None:
    """Write nothing: the write function of a file that cannot be edited."""
    return None


class Settings(dict[str, Setting]):
    """Settings of one kind by name."""

    def by_file(self, name: str, node: Node, value: Any = _AS_WRITTEN, note: str = "") -> None:
        """Set what the file writes; `value` if another one arrives."""
        self[name] = by_file(name, node, value, note)

    def by_code(self, name: str, value: Any, note: str) -> None:
        """Set what the framework's code decides."""
        self[name] = by_code(name, value, note)

    def unless_set(self, name: str, value: Any, note: str) -> None:
        """Set what the framework's code decides if nothing else did."""
        if name not in self:
            self.by_code(name, value, note)


@dataclass
class Draft:
    """Settings by kind, in the order in which they are read. A later setting replaces an earlier one of its name."""

    framework: str
    path: str
    engine: Settings = field(default_factory=Settings)
    sampling: Settings = field(default_factory=Settings)
    environment: Settings = field(default_factory=Settings)
    trainer: Settings = field(default_factory=Settings)
    options: Settings = field(default_factory=Settings)
    lost: list[Lost] = field(default_factory=list)
    not_seen: list[str] = field(default_factory=list)
    recorded: tuple[str, ...] = ()
    checkpoint: Mapping[str, Any] | None = None
    parts: tuple[str, ...] = ()
    decided: dict[str, str] = field(default_factory=dict)
    releases: FrameworkReleases | None = None
    copy: Copy | None = None
    release_of: Callable[[str], FrameworkRelease | None] = lambda _package: None
    refused_pin: RefusedPin | None = None
    unused_pin: str = ""
    lost_updates: tuple[LostUpdate, ...] = ()
    version_guards: tuple[VersionGuard, ...] = ()
    bare: bool = False
    needs_v1: bool = False
    device: Setting | None = None

    def list_options(self, root: Node, *paths: str) -> None:
        """Add the framework's options at dotted paths of the file, with everything below them."""
        for path in paths:
            node = root.get(*path.split("."))
            if node is not None and isinstance(node.value, dict):
                for name, leaf in leaves(node, f"{path}."):
                    self.options.by_file(name, leaf)
            elif node is not None:
                self.options.by_file(path, node)

    def list_rest(self, section: Node | None, prefix: str, of_framework: Callable[[str], bool]) -> None:
        """Add as options what a section writes and no setting was made of, so that nothing is passed over in silence.
        of_framework: whether a file is the framework's own, of which nothing is listed.
        """
        kinds = (self.engine, self.sampling, self.environment, self.options)
        taken = {setting.place for kind in kinds for setting in kind.values()} | {lost.place for lost in self.lost}
        for name, leaf in leaves(section, f"{prefix}.") if section is not None else ():
            if leaf.place not in taken and not of_framework(leaf.place.path):
                self.options.by_file(name, leaf)

    def lose(self, name: str, node: Node, loss: Loss, reason: str, *, certain: bool = True) -> None:
        """Add something written that never arrives."""
        self.lost.append(Lost(name, written(node), node.place, loss, reason, certain))

    def trains(self, facts: TrainerFacts, note: str, node: Node | None = None) -> None:
        """Add trainer facts: of the file with a node, else of the framework's code."""
        for name, value in facts.given().items():
            if node is None:
                self.trainer.by_code(name, value, note)
            else:
                self.trainer.by_file(name, node, value, note)

    def count_replicas(
        self, devices: Any, ranks: Sequence[Any], note: str, missing: str, node: Node | None = None
    ) -> None:
        """Add the number of engines side by side: the devices divided by the ranks of one engine, if both are known."""
        counted = isinstance(devices, int) and bool(ranks) and all(isinstance(rank, int) for rank in ranks)
        if counted and 0 < prod(ranks) <= devices:
            self.trains(TrainerFacts(replicas=devices // prod(ranks)), f"{note} / ranks of one engine", node)
        else:
            self.not_seen.append(f"the number of rollout engines is not known: {missing}")

    def done(
        self,
        *,
        model: Node | None = None,
        offline: bool = False,
        place: Place | None = None,
        write: Callable[[str, Any], tuple[Edit, ...] | None] = unwritten,
    ) -> RolloutConfig:
        """Return the collected config: every field of the draft under its own name."""
        if model is not None and isinstance(model.value, Unknown) and model.value.at_default is not None:
            variable, default = model.value.at_default
            self.not_seen.append(taken_at_default(variable, default))
            model = replace(model, value=default)
        collected: dict[str, Any] = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        collected |= {"lost": tuple(self.lost), "not_seen": tuple(dict.fromkeys(self.not_seen))}
        return RolloutConfig(
            **{**collected, "bare": self.bare and not offline},
            model=by_file("model", model) if model is not None and model.value is not None else None,
            offline=offline,
            place=place,
            write=write,
        )


def written(node: Node) -> Any:
    """Return what the file says, as Python data; the text if its value is unknown."""
    return node.text if isinstance(node.value, Unknown) and node.text else node.plain()


def arriving(node: Node) -> Any:
    """Return the value as Python data; Unknown if the command line must give it, or if a part of it is unknown."""
    if node.value == MANDATORY:
        return Unknown("the file leaves it to the command line (???)")
    unknown = next(_unknowns(node), None)
    return node.plain() if unknown is None else unknown


def by_file(name: str, node: Node, value: Any = _AS_WRITTEN, note: str = "") -> Setting:
    """Return a setting that the file writes; `value` if another one arrives."""
    arrives = arriving(node) if value is _AS_WRITTEN else value
    through = node.text if node.value is None and _REFERENCE.search(node.text) else ""
    return Setting(name, arrives, written(node), Origin.FILE, node.place, note, through)


def by_code(name: str, value: Any, note: str) -> Setting:
    """Return a setting that the framework's code decides."""
    return Setting(name, value, None, Origin.FRAMEWORK, None, note)


def known(node: Node | None, default: Any = None) -> Any:
    """Return the plain value of a node, or the default if it is missing or unknown."""
    if node is None or isinstance(arriving(node), Unknown):
        return default
    return node.plain()


def is_said(node: Node | None) -> TypeGuard[Node]:
    """Return whether a node is neither missing nor null: otherwise the framework's own default holds."""
    return node is not None and node.value is not None


def leaves(node: Node, prefix: str = "") -> Iterator[tuple[str, Node]]:
    """Yield the dotted name and the node of every value below a mapping; an empty mapping counts as a value."""
    for key, child in node.items():
        name = f"{prefix}{key}"
        if isinstance(child.value, dict) and child.value:
            yield from leaves(child, f"{name}.")
        else:
            yield name, child


def _unknowns(node: Node) -> Iterator[Unknown]:
    if isinstance(node.value, Unknown):
        yield node.value
    children = (child for _, child in node.items())
    for child in (*children, *node.elements()):
        yield from _unknowns(child)
