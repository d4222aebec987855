"""One config under one dialect: what its keys, the copy around it and the releases answer to clauses and conditions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.clause import Clause, Outcome
from rlaudit.configs.dialects.condition import Truth, compared, condition
from rlaudit.configs.dialects.framework_code import FrameworkCode, filled
from rlaudit.configs.dialects.span import OLDEST, Span, carried, span_of
from rlaudit.configs.dialects.spec import Spec, package_of
from rlaudit.configs.dialects.tree import Tree, node_at
from rlaudit.configs.draft import Draft, arriving, is_said
from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.framework_source.release_here import OPTION, ReleaseHere, release_here
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.settings.rollout_config import FrameworkRelease
from rlaudit.unknown import Unknown
from rlaudit.vllm import milestones
from rlaudit.vllm.pins.pin import VLLM, Package

_FACTS: Mapping[str, Callable[[Tree], Any]] = {
    "layout": lambda tree: tree.layout and tree.layout.name,
    "call": lambda tree: tree.call,
    "missing": lambda tree: bool(tree.missing),
    "command": lambda tree: tree.command is not None,
    "program": lambda tree: tree.python_call is not None,
}
# Conditions name a few releases thousands of times.
_release = lru_cache(maxsize=512)(Version)


class Reading:
    """One config under one dialect, as one vLLM release gets it."""

    def __init__(self, spec: Spec, tree: Tree, source: Source, vllm: Version) -> None:
        assert tree.layout is not None
        section = tree.layout.section(tree.root)
        assert section is not None
        self.spec, self.source, self.vllm = spec, source, vllm
        self.layout, self.section = tree.layout, section
        self._nodes: dict[str, Node | None] = {}
        # Conditions that do not change while the config is read.
        self._held: dict[str, Truth] = {}
        self._span: Span | None = None
        # The release that decides: the framework's own, or that of the one whose releases count.
        self._counts: ReleaseHere | None = None
        # What decides in the framework's place, if the program has a trainer that is not the framework's.
        self.trainer = ""
        kinds = spec.declared.get("kinds", {})
        self.tree = tree
        self.tree = replace(
            tree, call=next((kind for kind, text in kinds.items() if self.holds(text) is True), tree.call)
        )
        self._held.clear()
        self.draft = Draft(spec.name, source.path, parts=tree.parts)

    @cached_property
    def code(self) -> FrameworkCode:
        """The copy of the framework around the config."""
        return _code_around(self.source, self.spec)

    @cached_property
    def framework(self) -> ReleaseHere | None:
        """The framework's own release."""
        package = self.spec.package
        return release_here(self.source, package, self.code.checkout) if package is not None else None

    @property
    def span(self) -> Span:
        """The releases that this config may be of."""
        if self._span is None:
            # Until they are known, any release: conditions ask while they are found.
            self._span = Span()
            declared, release, is_copy = self.spec.declared.get("release", {}), self.framework, False
            if "package" not in declared:
                is_copy = self.code.checkout is not None
            elif release is not None and "carried" in declared:
                release = carried(declared["carried"], release, self.spec.title)
            else:
                release = release_here(self.source, package_of(declared["package"]), None)
            self._counts = release
            vllm = release_here(self.source, VLLM, None)
            pins_vllm = vllm is not None and vllm.version == self.vllm
            self._span = span_of(declared, self.of, self.vllm, self.holds, self.is_written, release, is_copy, pins_vllm)
            self._held.clear()
        return self._span

    def release_of(self, name: str) -> FrameworkRelease | None:
        """Return the release of a package that the config is run with; None if nothing gives it."""
        package = self.spec.package
        own = package is not None and name in package.names
        here = self.framework if own else release_here(self.source, Package((name,), ()), None)
        return FrameworkRelease(here.version, here.because) if here is not None else None

    @property
    def of(self) -> str:
        """The framework whose releases count."""
        return str(self.spec.declared.get("release", {}).get("of", self.spec.title))

    @property
    def which(self) -> str:
        """The fact that is missing if the release decides and is not known."""
        return self._which(self.of)

    def _which(self, title: str) -> str:
        """Return the fact that is missing where a framework's release decides."""
        package, here = self.spec.package, self.framework if title == self.spec.title else self._counts
        if title != self.spec.title and "package" in (release := self.spec.declared["release"]):
            package = package_of(release["package"])
        option = f"{OPTION} {package.names[0]}==X" if package is not None else ""
        if here is not None and here.pinned_at and option:
            return f"the {title} release in place of {here.version} ({here.pinned_at}) is not known: {option}"
        return f"{title}'s release is not known: {f'pin it, or give {option}' if option else 'nothing here names it'}"

    def node(self, path: str) -> Node | None:
        """Return the node at a path: `a.b`, `@key` below the layout's root, `a | b` for the first that is written."""
        if path not in self._nodes:
            nodes = [self._node(part.strip()) for part in path.split("|")]
            present = next((node for node in nodes if node is not None), None)
            self._nodes[path] = next((node for node in nodes if is_said(node)), present)
        return self._nodes[path]

    def _node(self, path: str) -> Node | None:
        if not path.startswith("@"):
            return node_at(self.tree.root, path.removeprefix("/"))
        key = path[1:]
        return node_at(self.section, self.layout.renames.get(key, key)) if key else self.section

    def from_the_root(self, path: str) -> str:
        """Return a dotted path from the file's root."""
        if not path.startswith("@"):
            return path
        return ".".join(part for part in (self.layout.root, self.layout.renames.get(path[1:], path[1:])) if part)

    def is_written(self, reference: str) -> bool:
        """Return whether the config has a key."""
        return self.node(reference) is not None

    def value(self, reference: str) -> Any:
        """Return what a reference of a condition or a sum refers to (`condition.py`)."""
        if reference in _FACTS:
            return _FACTS[reference](self.tree)
        if reference.startswith("$"):
            kind, _, name = reference[1:].partition(".")
            setting = getattr(self.draft, kind).get(name)
            return None if setting is None else setting.value
        if reference in self.spec.declared.get("conditions", {}):
            return self.holds(reference)
        if reference.startswith("code:"):
            checkout = self.code.checkout
            return None if checkout is None else checkout.file(reference.removeprefix("code:")) is not None
        key, _, default = reference.rpartition("|")
        if default.strip().isdigit() and key:
            value = self.value(key)
            return int(default) if value is None else value
        node = self.node(reference)
        return self.tree.unread if node is None else arriving(node)

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Return how a reference compares to a value; releases compare as releases."""
        if reference == "release":
            truth = self.span.compared(sign, _release(str(other)), self.of)
            return replace(truth, hangs_on=self.which) if isinstance(truth, Unknown) else truth
        if reference == "framework":
            if self.framework is None:
                reason = f"nothing pins the release of {self.spec.title}"
                return Unknown(reason, hangs_on=self._which(self.spec.title))
            return compared(self.framework.version, sign, _release(str(other)))
        if reference == "vllm":
            version = getattr(milestones, str(other), None) or _release(str(other))
            return compared(self.vllm, sign, version)
        return compared(self.value(reference), sign, other)

    def holds(self, text: str | bool | None) -> Truth:
        """Return whether a condition, or one of the dialect's own by its name, holds."""
        if text is None or isinstance(text, bool):
            return text is not False
        if text not in self._held:
            named = self.spec.declared.get("conditions", {}).get(text)
            truth = named if isinstance(named, bool) else condition(named if named is not None else text)(self)
            if not self.spec.may_change(text):
                self._held[text] = truth
            return truth
        return self._held[text]

    def with_null(self, kind: str, clause: Clause) -> Clause:
        """Return a clause of the engine with what a null means in this dialect, unless the clause defines it."""
        arrives = self.spec.declared.get("nulls arrive if")
        if arrives is None or kind != "engine" or "key" not in clause or "null" in clause:
            return clause
        return {**clause, "null": "keep" if self.holds(arrives) is True else "nothing"}

    def note(self, outcome: Outcome, clause: Clause) -> str:
        """Return why a value arrives: the clause's own words, and the file that decides it."""
        default = f"{self.spec.title}'s default of {clause['key'].lstrip('@')}" if "key" in clause else self.spec.title
        because = clause.get("because", "" if outcome.node is not None else default)
        where = self._files(clause)
        return f"{because} ({where})" if because and where else because or where

    def sentence(self, clause: Clause) -> str:
        """Return the reason that a clause gives, with the file that decides it."""
        files = self._names_of_files(clause)
        where = f"[source: {files} in {self.spec.title} {self.spec.declared['read']}]" if files else ""
        return f"{clause['because']} {where}".strip()

    def _files(self, clause: Clause) -> str:
        files = self._names_of_files(clause)
        return f"{self.spec.title} {files}, {self.spec.declared['read']}" if files else ""

    def _names_of_files(self, clause: Clause) -> str:
        files = (file.rpartition("/")[2] for file in filled(clause.get("at", {}), None, self.tree.call))
        return ", ".join(dict.fromkeys(files))


def sets_up_rollouts(spec: Spec, tree: Tree, source: Source) -> Truth:
    """Return whether a config has what the dialect requires of one: if not, it is not read."""
    return Reading(spec, tree, source, OLDEST).holds(spec.declared.get("rollouts if"))


# Called under each version.
@lru_cache(maxsize=64)
def _code_around(source: Source, spec: Spec) -> FrameworkCode:
    folder = spec.declared.get("package", {}).get("folder")
    return FrameworkCode(checkout_of(source, folder, *spec.markers) if folder else None)
