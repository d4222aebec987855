"""One config under one dialect: what its keys, the copy around it and the releases answer to clauses and conditions."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.framework_source.release_here import OPTION, ReleaseHere, release_here
from rlaudit.configs.source import Source
from rlaudit.dialects.clause import Clause, Outcome
from rlaudit.dialects.condition import Truth, compared_releases, condition
from rlaudit.dialects.framework_code import FrameworkCode, filled
from rlaudit.dialects.keys import Keys
from rlaudit.dialects.span import Span, carried, span_of
from rlaudit.dialects.spec import Spec, package_of
from rlaudit.dialects.tree import Tree
from rlaudit.pins.pin import VLLM, Package
from rlaudit.settings.rollout_config import FrameworkRelease
from rlaudit.unknown import Unknown
from rlaudit.vllm import milestones

# Conditions name a few releases thousands of times.
_release = lru_cache(maxsize=512)(Version)


class Reading(Keys):
    """One config under one dialect, as one vLLM release gets it."""

    def __init__(self, spec: Spec, tree: Tree, source: Source, vllm: Version) -> None:
        assert tree.layout is not None
        super().__init__(tree, tree.layout)
        self.spec, self.source, self.vllm = spec, source, vllm
        self.draft = Draft(spec.name, source.path, parts=tree.parts)
        self.code = _code_around(source, spec)
        # Conditions on the config alone, once the release is known.
        self._held: dict[str, Truth] = {}
        # The release of the framework, and that of the one whose releases count.
        self.framework: ReleaseHere | None = None
        self._counts: ReleaseHere | None = None
        self.span = Span()
        self.span = self._span()
        self._held.clear()

    def _span(self) -> Span:
        """Return the releases that this config may be of."""
        declared, checkout = self.spec.declared.get("release", {}), self.code.checkout
        release = release_here(self.source, self.spec.package, checkout) if self.spec.package is not None else None
        is_copy = checkout is not None
        self.framework = release
        if "package" in declared:
            is_copy = False
            if release is not None and "carried" in declared:
                release = carried(declared["carried"], release, self.spec.title)
            else:
                release = release_here(self.source, package_of(declared["package"]), None)
        self._counts = release
        vllm = release_here(self.source, VLLM, None)
        pins_vllm = vllm is not None and vllm.version == self.vllm
        return span_of(declared, self.of, self.vllm, self.holds, self.is_written, release, is_copy, pins_vllm)

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
        return f"{title}'s release is not known: {f'pin it, or {option}' if option else 'nothing here says it'}"

    def value(self, reference: str) -> Any:
        """Return what a reference of a condition or a sum refers to (`condition.py`)."""
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
            value = super().value(key)
            return int(default) if value is None else value
        return super().value(reference)

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Return how a reference compares to a value; releases compare as releases."""
        if reference == "release":
            truth = self.span.compared(sign, _release(str(other)), self.of)
            return replace(truth, hangs_on=self.which) if isinstance(truth, Unknown) else truth
        if reference == "framework":
            if self.framework is None:
                reason = f"nothing pins the release of {self.spec.title}"
                return Unknown(reason, hangs_on=self._which(self.spec.title))
            return compared_releases(self.framework.version, sign, _release(str(other)))
        if reference == "vllm":
            version = getattr(milestones, str(other), None) or _release(str(other))
            return compared_releases(self.vllm, sign, version)
        return super().compare(reference, sign, other)

    def holds(self, text: str | None) -> Truth:
        """Return whether a condition, or one of the dialect's own by its name, holds."""
        if text is None:
            return True
        if text not in self._held:
            named = self.spec.declared.get("conditions", {}).get(text)
            truth = condition(named if named is not None else text)(self)
            if not self.spec.may_change(text):
                self._held[text] = truth
            return truth
        return self._held[text]

    @property
    def has_defaults(self) -> bool:
        """Whether the framework's own defaults stand behind the config."""
        return self.holds(self.spec.declared.get("defaults if")) is True

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
        where = self._files(clause)
        return f"{clause['because']} ({where})" if where else str(clause["because"])

    def _files(self, clause: Clause) -> str:
        files = [file.rpartition("/")[2] for file in filled(clause.get("at", {}), None, self.tree.call)]
        return f"{self.spec.title} {', '.join(dict.fromkeys(files))}, {self.spec.declared['read']}" if files else ""


# Called under each version.
@lru_cache(maxsize=64)
def _code_around(source: Source, spec: Spec) -> FrameworkCode:
    folder = spec.declared.get("package", {}).get("folder")
    return FrameworkCode(checkout_of(source, folder, *spec.markers) if folder else None)
